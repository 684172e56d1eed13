import type { LevelFacts } from '../../../domain/admission/index.ts'
import { marks, numberOf, type Query, type Row, sized, textOf, textOrNull, tuples } from '../query.ts'
import { type LevelLimits, levelFacts } from './levels.ts'
import { type Second, TIME_DIGITS } from './window.ts'

/** Reads and writes the counters of live calls and of calls per second. */

const LEVEL_USES = sized(
  count => `select u.level, u.subject_id, u.live, u.takes, d.spent_minor from level_use u
    left join spend_day d on d.subject_id = u.subject_id and d.level = u.level and d.day = ?
    where u.subject_id in (${marks(count)})`,
)
const SPEND_HOURS = sized(
  count => `select level, subject_id, sum(spent_minor) as spent_minor from spend_minute
    where subject_id in (${marks(count)}) and minute between ? and ? group by level, subject_id`,
)

/** The times under which usage is counted. */
export interface UseTimes {
  /** Day in the organization's time zone. */
  readonly day: string
  readonly minute: number
  readonly second: Second
  /** Whether the call may cost money. */
  readonly priced: boolean
}

export interface SlotUsage {
  readonly levels: readonly LevelFacts[]
  /** Ids of subjects that have a counter row. */
  readonly counted: ReadonlySet<string>
}

/** Reads the usage of each level's ceilings. */
export function levelUsage(
  query: Query,
  limits: readonly LevelLimits[],
  { day, minute, second, priced }: UseTimes,
): SlotUsage {
  const { tally } = query
  const found = (tally?.read ?? query)(LEVEL_USES(limits.length), day, ...limits.map(({ id }) => id))
  const used = tally ? tally.uses(found, day) : found
  const capped = priced ? limits.filter(limit => limit.velocity_cap_minor !== null).map(({ id }) => id) : []
  const hour = capped.length === 0 ? [] : query(SPEND_HOURS(capped.length), ...capped, ...hourUntil(minute))
  return {
    levels: limits.map(limit => levelFacts(limit, used, hour, second)),
    counted: new Set(used.map(row => textOf(row, 'subject_id'))),
  }
}

/** Returns the minute of the store's clock under which velocity is counted. */
export const minuteOf = (store_ms: number): number => Math.floor(store_ms / 60_000)

/** Returns the 61 minutes that cover the rolling hour. Later minutes are from before the clock was set back. */
export const hourUntil = (minute: number): [first: number, last: number] => [minute - 60, minute]

// Stands for "no ceiling", because SQL comparisons with null are never true.
const NO_CEILING = Number.MAX_SAFE_INTEGER

const IN_LEVEL = 'where subject_id = ? and level = ? and live < ?'
const COUNT = `update level_use set live = live + 1, takes = '' ${IN_LEVEL}`
// The oldest of `cps` takes must have left the second. The statement cuts off times that had left the second when they
// were read. If others have taken a slot since, the next take cuts them off.
const time = `substr(takes, ?, ${TIME_DIGITS})`
const COUNT_IN_SECOND = `update level_use set live = live + 1,
    takes = ? || case when ${time} between ? and ? then takes else substr(takes, 1, ?) end
  ${IN_LEVEL} and ${time} not between ? and ?`
const BEGIN_COUNTING = `insert into level_use (level, subject_id, live, takes) values (?, ?, 1, ?)
    on conflict (subject_id, level) do nothing`

/**
 * Counts a call at each level, in order. Each statement compares the counter with the ceiling again.
 * @throws FactsChanged when another writer has taken the last slot since the facts were read
 */
export function takeSlots(query: Query, { levels, counted }: SlotUsage, second: Second): void {
  for (const facts of levels) countCall(query, facts, counted.has(facts.id), second)
}

function countCall(query: Query, { level, id, concurrency, cps }: LevelFacts, counted: boolean, second: Second) {
  const { now, first, last } = second
  const slots = `slots of ${level} ${id}`
  if (!counted) return query.must(slots, 1, BEGIN_COUNTING, level, id, cps.limit === null ? '' : now)
  const most = concurrency.limit ?? NO_CEILING
  if (cps.limit === null) return query.must(slots, 1, COUNT, id, level, most)
  const recent = TIME_DIGITS * cps.used
  const oldest = TIME_DIGITS * (cps.limit - 1) + 1
  const values = [now, recent + 1, first, last, recent, id, level, most, oldest, first, last]
  query.must(slots, 1, COUNT_IN_SECOND, ...values)
}

const HELD_AT = [
  ['subtrunk', 'subtrunk_id'],
  ['trunk', 'trunk_id'],
  ['policy', 'policy_id'],
  ['policy', 'parent_policy_id'],
  ['subaccount', 'subaccount_id'],
  ['project', 'project_id'],
] as const

// "ended_at is null" would let PostgreSQL read the index of all running calls.
const OPEN = "coalesce(ended_at, '') = ''"
const OPEN_LEASES = `select id, subtrunk_id, trunk_id, policy_id, parent_policy_id, subaccount_id, project_id
  from lease where call_sid = ? and ${OPEN}`
const END_LEASE = `update lease set ended_at = ? where id = ? and call_sid = ? and ${OPEN}`

/** Releases the slots of a call. Returns the number of leases that it ended. */
export function returnSlots(query: Query, call_sid: string, ended_at: string): number {
  const leases = query(OPEN_LEASES, call_sid)
  for (const lease of leases) {
    // Only the writer that ends the lease decrements the counters.
    query.must(`the lease of ${call_sid}`, 1, END_LEASE, ended_at, numberOf(lease, 'id'), call_sid)
    countOff(query, lease)
  }
  return leases.length
}

function countOff(query: Query, lease: Row): void {
  const held = HELD_AT.flatMap(([level, column]) => {
    const id = textOrNull(lease, column)
    return id === null ? [] : [[id, level] as const]
  })
  if (query.tally) query.tally.countOff(held)
  else query(COUNT_OFF(held.length), ...held.flat())
}

const COUNT_OFF = sized(
  count => `update level_use set live = case when live > 0 then live - 1 else 0 end
    where (subject_id, level) in (values ${tuples(count, 2)})`,
)

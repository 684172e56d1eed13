import { type Selectable, sql } from 'kysely'
import { iso } from '../../runtime/clock.ts'
import type { Db, OutboxTable } from '../db.ts'
import type { State } from '../index.ts'
import { dropOldRows } from '../maintenance/old-rows.ts'
import { readTogether, statement } from '../port.ts'

/** The delivering half of the outbox: takes due rows and stores the outcomes. */

/** A callback to deliver, with its account's settings. */
export interface DueCallback
  extends Pick<
    Selectable<OutboxTable>,
    | 'id'
    | 'ordering_key'
    | 'project_id'
    | 'kind'
    | 'call_sid'
    | 'url'
    | 'method'
    | 'parameters'
    | 'event_id'
    | 'attempts'
    | 'created_at'
  > {
  /** Null when the project no longer has a voice account: its callbacks cannot be signed. */
  readonly auth_token_sealed: string | null
  readonly call_event_history: 'enabled' | 'disabled' | null
  /** Name of the process that has taken it. */
  readonly lease_by: string
}

interface OriginOfProject {
  readonly project_id: string
  /** Scheme, user, host and port, as in URLs. */
  readonly origin: string
}

interface Taking {
  /** Name of the taking process (core/runtime/machine.ts). */
  readonly by: string
  readonly now_ms: number
  readonly lease_ms: number
  readonly limit: number
  /** Those for which their project has reached its limit of concurrent deliveries. */
  readonly but_not: readonly OriginOfProject[]
  /** Projects that have their share of the concurrent deliveries. */
  readonly but_not_of?: readonly string[]
  /** Rows that the taking process is delivering. It never retakes them, even if a clock jump expires their leases. */
  readonly under_way: readonly number[]
}

/** Reports whether any callback has had no attempt. The literal zeros match the partial index of waiting rows. */
export const untriedCallbacks = async (db: Db): Promise<boolean> => {
  const { rows } = await sql`
    select 1 from outbox where delivered = 0 and given_up = 0 and attempts = 0 limit 1`.execute(db)
  return rows.length > 0
}

/** The literal zeros match the partial index of waiting rows. */
const ANY_WAITING = statement((db, _: object) =>
  db.selectFrom('outbox').select('id').where('delivered', '=', sql.lit(0)).where('given_up', '=', sql.lit(0)).limit(1),
)

const notOf = ({ project_id, origin }: OriginOfProject) =>
  sql`and not (
    o.project_id = ${project_id} and substr(o.url, 1, ${origin.length}) = ${origin}
    and substr(o.url, ${origin.length + 1}, 1) in ('', '/', '?', '#')
  )`

/** Leaves out the rows under way, and those of full origins and projects. */
const otherThan = ({ under_way, but_not, but_not_of = [] }: Taking) =>
  sql.join(
    [
      ...(under_way.length > 0 ? [sql`and o.id not in (${sql.join([...under_way])})`] : []),
      ...(but_not_of.length > 0 ? [sql`and o.project_id not in (${sql.join([...but_not_of])})`] : []),
      ...but_not.map(notOf),
    ],
    sql` `,
  )

/**
 * Leases due callbacks in order: none while an earlier one with its ordering key waits. Leases expire, so callbacks of
 * a killed process are taken again.
 */
export async function takeDueCallbacks(db: Db, taking: Taking): Promise<DueCallback[]> {
  const [waiting] = await readTogether(db, ANY_WAITING({}))
  if (waiting.length === 0) return []
  const now = iso(taking.now_ms)
  const lease_until = iso(taking.now_ms + taking.lease_ms)
  // The planner uses the partial index of waiting rows only with literal zeros, not with bound ones.
  const { rows: due } = await sql<{ id: number }>`
    select o.id from outbox o
    where o.delivered = 0 and o.given_up = 0
      and o.next_attempt_at <= ${now}
      and (o.lease_until is null or o.lease_until <= ${now})
      and not exists (
        select 1 from outbox e
        where e.delivered = 0 and e.given_up = 0 and e.ordering_key = o.ordering_key and e.id < o.id
      )
      ${otherThan(taking)}
    order by o.next_attempt_at, o.id limit ${taking.limit}`.execute(db)
  if (due.length === 0) return []
  const taken = await db
    .updateTable('outbox')
    .set({ lease_until, lease_by: taking.by })
    .where(
      'id',
      'in',
      due.map(({ id }) => id),
    )
    .where('delivered', '=', 0)
    .where('given_up', '=', 0)
    .where(eb => eb.or([eb('lease_until', 'is', null), eb('lease_until', '<=', now)]))
    .returning('id')
    .execute()
  if (taken.length === 0) return []
  const rows = await db
    .selectFrom('outbox')
    .leftJoin('voice_account', 'voice_account.project_id', 'outbox.project_id')
    .select([
      'outbox.id',
      'outbox.ordering_key',
      'outbox.project_id',
      'outbox.kind',
      'outbox.call_sid',
      'outbox.url',
      'outbox.method',
      'outbox.parameters',
      'outbox.event_id',
      'outbox.attempts',
      'outbox.created_at',
      'voice_account.auth_token_sealed',
      'voice_account.call_event_history',
    ])
    .where(
      'outbox.id',
      'in',
      taken.map(({ id }) => id),
    )
    .orderBy('outbox.id')
    .execute()
  return rows.map(row => ({ ...row, lease_by: taking.by }))
}

/** The outcome of an attempt: delivered, to be retried at a time, or given up. */
export interface Attempted {
  readonly attempts: number
  readonly status: number | null
  readonly error: string | null
  readonly next: { readonly at_ms: number } | 'delivered' | 'given_up'
}

/**
 * Stores the outcome of an attempt. Returns false when another process has taken or settled the callback meanwhile,
 * because this one stood still: its outcome no longer counts.
 */
export async function callbackAttempted(
  db: Db,
  row: Pick<DueCallback, 'id' | 'ordering_key' | 'lease_by'>,
  attempted: Attempted,
): Promise<boolean> {
  const { attempts, status, error, next } = attempted
  const { numUpdatedRows } = await db
    .updateTable('outbox')
    .set({
      attempts,
      last_status: status,
      last_error: error,
      lease_until: null,
      delivered: next === 'delivered' ? 1 : 0,
      given_up: next === 'given_up' ? 1 : 0,
      ...(typeof next === 'object' ? { next_attempt_at: iso(next.at_ms) } : {}),
    })
    .where('id', '=', row.id)
    .where('lease_by', '=', row.lease_by)
    .where('delivered', '=', 0)
    .where('given_up', '=', 0)
    .executeTakeFirst()
  if (numUpdatedRows === 0n) return false
  if (typeof next !== 'object') return true
  // Callbacks behind it wait until the same time, so that they are not polled while the receiver is down.
  await sql`update outbox set next_attempt_at = ${iso(next.at_ms)}
    where delivered = 0 and given_up = 0 and ordering_key = ${row.ordering_key} and id > ${row.id}`.execute(db)
  return true
}

/** Rows may be from a moment after `now_ms`: the clocks of machines differ, and writers wait for their turn. */
export const MEND_SLACK_MS = 60_000

/** Makes rows due now whose due time or lease lies too far ahead to be real: the clock was set back. */
export async function mendCallbackTimes(
  db: Db,
  limits: { readonly now_ms: number; readonly lease_ms: number; readonly longest_wait_ms: number },
): Promise<void> {
  const now = iso(limits.now_ms)
  await sql`update outbox set next_attempt_at = ${now} where delivered = 0 and given_up = 0
    and next_attempt_at > ${iso(limits.now_ms + limits.longest_wait_ms + MEND_SLACK_MS)}`.execute(db)
  await sql`update outbox set lease_until = null where delivered = 0 and given_up = 0
    and lease_until > ${iso(limits.now_ms + limits.lease_ms + MEND_SLACK_MS)}`.execute(db)
}

/** Returns callbacks that the process `by` has taken but not attempted. */
export async function returnCallbacks(db: Db, ids: readonly number[], by: string): Promise<void> {
  if (ids.length === 0) return
  await db
    .updateTable('outbox')
    .set({ lease_until: null })
    .where('id', 'in', [...ids])
    .where('lease_by', '=', by)
    .execute()
}

/** Frees the callbacks of processes that are gone before their leases expire. */
export async function freeCallbacks(db: Db, isGone: (by: string) => boolean): Promise<void> {
  const taken = await db
    .selectFrom('outbox')
    .select('lease_by')
    .distinct()
    .where('delivered', '=', 0)
    .where('given_up', '=', 0)
    .where('lease_until', 'is not', null)
    .execute()
  // Leases from before 0060 have no owner: there was only one delivering process.
  const gone = taken.flatMap(({ lease_by }) => (lease_by === null || isGone(lease_by) ? (lease_by ?? '') : []))
  if (gone.length === 0) return
  await db
    .updateTable('outbox')
    .set({ lease_until: null })
    .where('delivered', '=', 0)
    .where('given_up', '=', 0)
    .where('lease_until', 'is not', null)
    .where(eb => eb(eb.fn.coalesce('lease_by', eb.val('')), 'in', gone))
    .execute()
}

export async function countWaitingCallbacks(db: Db): Promise<number> {
  const { rows } = await sql<{ waiting: number }>`
    select count(*) as waiting from outbox where delivered = 0 and given_up = 0`.execute(db)
  return Number(rows[0]?.waiting ?? 0)
}

/** Deletes callbacks that were delivered or given up. Returns their number. */
export const pruneCallbacks = (state: State, before_ms: number, goesOn?: () => boolean): Promise<number> =>
  dropOldRows(
    state,
    { name: 'outbox', number: 'id', at: 'created_at', over: sql`(delivered = 1 or given_up = 1)` },
    iso(before_ms),
    goesOn,
  )

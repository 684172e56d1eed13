import { type Insertable, sql } from 'kysely'
import type { DestinationGroup, ServiceTraffic, SourceSeen } from '../../domain/alerts/index.ts'
import { dayOf } from '../../domain/rating/day.ts'
import { MICRO_PER_MINOR } from '../../domain/rating/types.ts'
import { iso } from '../../runtime/clock.ts'
import type { Db, DestinationProfileTable, Trx } from '../db.ts'
import type { State } from '../index.ts'
import { readTogether, statement } from '../port.ts'

/** The facts that fraud is judged by: destinations of services, their costs, and the sources of trunks' calls. */

interface Project {
  readonly id: string
  readonly name: string
  readonly currency: string
}

const NIGHT_ENDS_HOUR = 5
const hourOf = (epoch_ms: number, time_zone: string): number =>
  Number(new Intl.DateTimeFormat('en-GB', { timeZone: time_zone, hour: '2-digit', hourCycle: 'h23' }).format(epoch_ms))

/**
 * The project of a reservation, in a form that no index serves: the window has fewer rows than the project, and a plan
 * by the project reads all its calls, every second.
 */
const OF_PROJECT = sql<string>`coalesce(r.project_id, '')`

const SPEND = sql<number>`sum(case when r.settled_at is null then r.held_minor else coalesce(r.charge_minor, 0) end)`

/**
 * The reservation `r` is that of the call `c`, which is found by its position once it is settled. By their ids, which
 * are random, each call of the window would be looked up in a page of its own.
 */
const OF_CALL = sql<boolean>`(c.position = r.call_position
  or c.sid = case when r.call_position is null then r.call_sid end)`

/**
 * The service of a call: the trunk whose peer made it, else the project, for its voice account with its applications. A
 * call that only presents a trunk's number is none of the trunk's (design section 10).
 */
const SERVICE = sql<string>`case when c.origin = 'trunk' then c.trunk_id else c.project_id end`

/** Returns the projects with priced calls, or with calls or guesses at their trunks, since a moment. */
export async function projectsWithTraffic(db: Db, since_ms: number): Promise<ReadonlySet<string>> {
  const since = iso(since_ms)
  // Not a union: SQLite merges one in order of the project, and reads the calls of all time by the index of that.
  const rows = await db
    .selectFrom('reservation as r')
    .select(OF_PROJECT.as('project_id'))
    .distinct()
    .where('r.begun_at', '>=', since)
    .unionAll(db.selectFrom('trunk_source_seen').select('project_id').where('last_seen_at', '>=', since))
    .execute()
  return new Set(rows.map(row => row.project_id))
}

/**
 * Sums the spend of each service since a moment, by project. All projects are read together: for each of them alone,
 * all calls of the window would be looked at.
 */
export async function serviceSpend(db: Db, since_ms: number): Promise<ReadonlyMap<string, Map<string, number>>> {
  const rows = await db
    .selectFrom('reservation as r')
    .innerJoin('call as c', join => join.on(OF_CALL))
    .select([OF_PROJECT.as('project_id'), SERVICE.as('service_id'), SPEND.as('spend')])
    .where('r.begun_at', '>=', iso(since_ms))
    .where('r.direction', '=', 'outbound')
    .where('c.origin', '!=', 'test')
    .groupBy([OF_PROJECT, SERVICE])
    .execute()
  const found = new Map<string, Map<string, number>>()
  for (const { project_id, service_id, spend } of rows) {
    // Calls that cost nothing come near no ceiling.
    if (Number(spend) <= 0) continue
    found.set(project_id, (found.get(project_id) ?? new Map<string, number>()).set(service_id, Number(spend)))
  }
  return found
}

interface TrafficOptions {
  readonly project: Project & { readonly time_zone: string }
  readonly window_seconds: number
  /** The project's part of `recentTraffic` in the window. */
  readonly recent: readonly Group[]
  /** How long a source counts as new. */
  readonly new_source_seconds: number
  readonly ceiling_spend: ReadonlyMap<string, number>
  readonly now_ms: number
}

/** Reads the traffic of a project's services in the window, and notes new destinations. */
export async function trafficFacts(state: State, options: TrafficOptions): Promise<ServiceTraffic[]> {
  const { project, window_seconds, now_ms, recent: groups } = options
  const sources = await newSources(state.db, options)
  const seen = groups.map(group => group.service_id)
  const ids = [...new Set([...seen, ...sources.keys(), ...options.ceiling_spend.keys()])]
  if (ids.length === 0) return []
  const trunks = await state.db.selectFrom('trunk').select(['id', 'name']).where('id', 'in', ids).execute()
  const services = [
    ...trunks.map(trunk => ({ ...trunk, trunk_id: trunk.id })),
    ...(ids.includes(project.id) ? [{ id: project.id, name: project.name, trunk_id: null }] : []),
  ]
  const profiles = await noteDestinations(state, groups, options)
  const night = hourOf(now_ms, project.time_zone) < NIGHT_ENDS_HOUR
  return services.map(service => {
    const own = groups.filter(group => group.service_id === service.id)
    const sum = (pick: (group: Group) => number): number => own.reduce((total, group) => total + pick(group), 0)
    return {
      ...service,
      currency: project.currency,
      window_seconds,
      spend_minor: sum(group => group.spend_minor),
      held_minor: sum(group => group.held_minor),
      calls: sum(group => group.calls),
      ceiling_spend_minor: options.ceiling_spend.get(service.id) ?? 0,
      destinations: own.map(group => ({ ...group, ...profiles.get(`${group.service_id} ${group.rate_prefix}`) })),
      new_sources: sources.get(service.id) ?? [],
      night,
    }
  })
}

type Group = DestinationGroup & { readonly service_id: string; readonly first_begun_at: string }

/** Reads the traffic of all services since a moment, by project: together, as `serviceSpend`. */
export async function recentTraffic(db: Db, since_ms: number): Promise<ReadonlyMap<string, readonly Group[]>> {
  const rows = await db
    .selectFrom('reservation as r')
    .innerJoin('call as c', join => join.on(OF_CALL))
    .select([
      OF_PROJECT.as('project_id'),
      SERVICE.as('service_id'),
      'r.rate_prefix',
      sql<string>`max(r.rate_label)`.as('label'),
      sql<number>`max(r.rate_micro * (case r.rate_unit when 'second' then 60 else 1 end))`.as('rate_micro'),
      sql<number>`count(*)`.as('calls'),
      sql<number>`count(r.settled_at)`.as('settled'),
      sql<number>`count(case when coalesce(r.duration_seconds, 0) < 6 then r.settled_at end)`.as('short'),
      SPEND.as('spend'),
      sql<number>`sum(case when r.settled_at is null then r.held_minor else 0 end)`.as('held'),
      sql<string>`min(r.destination)`.as('first'),
      sql<string>`max(r.destination)`.as('last'),
      sql<string>`min(r.begun_at)`.as('first_begun_at'),
    ])
    .where('r.begun_at', '>=', iso(since_ms))
    .where('r.rate_prefix', 'is not', null)
    .where('r.direction', '=', 'outbound')
    .where('c.origin', '!=', 'test')
    .groupBy([OF_PROJECT, SERVICE, 'r.rate_prefix'])
    .execute()
  const found = new Map<string, Group[]>()
  for (const row of rows) {
    const group = {
      service_id: row.service_id,
      rate_prefix: row.rate_prefix ?? '',
      label: row.label,
      // The first and last number in text order: all numbers between them share their common prefix.
      common_digits: common(row.first, row.last).replace(/^\+/, ''),
      rate_minor_per_minute: Math.ceil(Number(row.rate_micro) / MICRO_PER_MINOR),
      calls: Number(row.calls),
      settled: Number(row.settled),
      short: Number(row.short),
      live: Number(row.calls) - Number(row.settled),
      spend_minor: Number(row.spend),
      held_minor: Number(row.held),
      first_seen_at: null,
      earlier_nights: 0,
      first_begun_at: row.first_begun_at,
    }
    const known = found.get(row.project_id)
    if (known) known.push(group)
    else found.set(row.project_id, [group])
  }
  return found
}

function common(a: string, b: string): string {
  let length = 0
  while (length < a.length && a[length] === b[length]) length++
  return a.slice(0, length)
}

const PROFILE_STALE_MS = 3_600_000

/** Returns the profiles of the destinations. It notes the first call to each and the nights with calls. */
async function noteDestinations(
  state: State,
  groups: readonly Group[],
  { project, now_ms }: TrafficOptions,
): Promise<Map<string, Pick<DestinationGroup, 'first_seen_at' | 'earlier_nights'>>> {
  const known = new Map<string, Pick<DestinationGroup, 'first_seen_at' | 'earlier_nights'>>()
  if (groups.length === 0) return known
  const today = dayOf(now_ms, project.time_zone)
  const is_night = hourOf(now_ms, project.time_zone) < NIGHT_ENDS_HOUR
  const rows = await state.db
    .selectFrom('destination_profile')
    .selectAll()
    .where('service_id', 'in', [...new Set(groups.map(group => group.service_id))])
    .execute()
  const profiles = new Map(rows.map(row => [`${row.service_id} ${row.prefix}`, row]))
  const writes: Insertable<DestinationProfileTable>[] = []
  for (const group of groups) {
    const key = `${group.service_id} ${group.rate_prefix}`
    const row = profiles.get(key) ?? {
      service_id: group.service_id,
      prefix: group.rate_prefix,
      project_id: project.id,
      first_seen_at: group.first_begun_at,
      last_seen_at: '',
      last_night: null,
      nights: 0,
    }
    const first_tonight = is_night && row.last_night !== today
    const nights = row.nights + (first_tonight ? 1 : 0)
    const last_night = is_night ? today : row.last_night
    known.set(key, {
      first_seen_at: row.first_seen_at,
      earlier_nights: last_night === today ? nights - 1 : nights,
    })
    const stale = row.last_seen_at === '' || now_ms - Date.parse(row.last_seen_at) > PROFILE_STALE_MS
    if (stale || first_tonight) writes.push({ ...row, nights, last_night, last_seen_at: iso(now_ms) })
  }
  if (writes.length > 0)
    await state.transaction(async trx => {
      for (const row of writes)
        await trx
          .insertInto('destination_profile')
          .values(row)
          .onConflict(conflict => conflict.columns(['service_id', 'prefix']).doUpdateSet(row))
          .execute()
    })
  return known
}

/**
 * Returns sources of digest trunks first seen within the window: of trunks with earlier calls from elsewhere, and
 * strangers who were blocked after wrong passwords.
 */
async function newSources(db: Db, options: TrafficOptions): Promise<Map<string, SourceSeen[]>> {
  const { project, now_ms, new_source_seconds, window_seconds } = options
  const rows = await db
    .selectFrom('trunk_source_seen as s')
    .innerJoin('trunk', 'trunk.id', 's.trunk_id')
    .select(['s.trunk_id', 's.address', 's.first_seen_at', 's.calls', 's.blocked_at'])
    .where('s.project_id', '=', project.id)
    .where('trunk.auth_mode', '=', 'digest')
    .where('s.first_seen_at', '>=', iso(now_ms - new_source_seconds * 1000))
    .where(({ or, eb, exists, selectFrom }) =>
      or([
        eb('s.blocked_at', 'is not', null),
        exists(
          selectFrom('trunk_source_seen as o')
            .select('o.address')
            .whereRef('o.trunk_id', '=', 's.trunk_id')
            .where('o.calls', '>', 0)
            .whereRef('o.first_seen_at', '<', 's.first_seen_at'),
        ),
      ]),
    )
    .limit(1000)
    .execute()
  const found = new Map<string, SourceSeen[]>()
  if (rows.length === 0) return found
  const spends = await db
    .selectFrom('reservation as r')
    .innerJoin('call as c', join => join.on(OF_CALL))
    .select(['c.trunk_id', 'c.source_ip', SPEND.as('spend')])
    .where('r.begun_at', '>=', iso(now_ms - window_seconds * 1000))
    .where('c.trunk_id', 'in', [...new Set(rows.map(row => row.trunk_id))])
    .groupBy(['c.trunk_id', 'c.source_ip'])
    .execute()
  const spent = new Map(spends.map(row => [`${row.trunk_id} ${row.source_ip}`, Number(row.spend)]))
  for (const { trunk_id, ...seen } of rows)
    found.set(trunk_id, [
      ...(found.get(trunk_id) ?? []),
      { ...seen, spend_minor: spent.get(`${trunk_id} ${seen.address}`) ?? 0 },
    ])
  return found
}

/**
 * Notes that a stranger who guessed the password of a trunk was blocked. An address from which the trunk was used
 * before is no stranger's: somebody of the customer mistyped.
 */
export async function noteGuesser(
  db: Db,
  { trunk_id, address, now }: { readonly trunk_id: string; readonly address: string; readonly now: string },
): Promise<void> {
  const trunk = await db.selectFrom('trunk').select('project_id').where('id', '=', trunk_id).executeTakeFirst()
  if (!trunk) return
  const seen = { trunk_id, address, ...trunk, first_seen_at: now, last_seen_at: now, calls: 0, blocked_at: now }
  await db
    .insertInto('trunk_source_seen')
    .values(seen)
    .onConflict(conflict =>
      conflict
        .columns(['trunk_id', 'address'])
        .doUpdateSet({ first_seen_at: now, last_seen_at: now, blocked_at: now })
        .where('trunk_source_seen.calls', '=', 0),
    )
    .execute()
}

const SOURCES_CURSOR = 'sources'
const BATCH = 2000

const CURSOR = statement((db, { name }: { readonly name: string }) =>
  db.selectFrom('alert_cursor').select('position').where('name', '=', name),
)
const LAST_CALL = statement((db, _: object) =>
  db.selectFrom('call').select('position').orderBy('position', 'desc').limit(1),
)

/** Notes the sources of trunks' calls since the last run. Returns true when there may be more to read. */
export async function noteSources(state: State): Promise<boolean> {
  const [[cursor], [last_call]] = await readTogether(state.db, CURSOR({ name: SOURCES_CURSOR }), LAST_CALL({}))
  if ((last_call?.position ?? 0) <= (cursor?.position ?? 0)) return false
  const rows = await state.db
    .selectFrom('call')
    .select(['position', 'project_id', 'trunk_id', 'origin', 'direction', 'application_id', 'queued_at', 'source_ip'])
    .where('position', '>', cursor?.position ?? 0)
    .orderBy('position')
    .limit(BATCH)
    .execute()
  const last = rows.at(-1)
  if (!last) return false
  const seen = new Map<string, { trunk_id: string; address: string; project_id: string; at: string[] }>()
  for (const row of rows) {
    // A call delivered to a trunk has that trunk's id but comes from another trunk's peer.
    const called = row.direction === 'inbound' && row.application_id === null
    const address = row.origin === 'trunk' && !called ? row.source_ip : null
    if (address === null || row.trunk_id === null) continue
    const key = `${row.trunk_id} ${address}`
    const known = seen.get(key) ?? { trunk_id: row.trunk_id, address, project_id: row.project_id, at: [] }
    known.at.push(row.queued_at)
    seen.set(key, known)
  }
  await state.transaction(async trx => {
    // Another process that read the same calls has noted them: this one reads again.
    if (!(await moveCursor(trx, cursor?.position, last.position))) return
    for (const { at, ...source } of seen.values())
      await trx
        .insertInto('trunk_source_seen')
        .values({
          ...source,
          first_seen_at: at[0] ?? last.queued_at,
          last_seen_at: at.at(-1) ?? last.queued_at,
          calls: at.length,
        })
        .onConflict(conflict =>
          conflict.columns(['trunk_id', 'address']).doUpdateSet({
            last_seen_at: at.at(-1) ?? last.queued_at,
            calls: sql<number>`trunk_source_seen.calls + ${at.length}`,
          }),
        )
        .execute()
  })
  return rows.length === BATCH
}

/** Moves the cursor from where it was read. Returns false when another process has moved it. */
async function moveCursor(trx: Trx, from: number | undefined, position: number): Promise<boolean> {
  if (from === undefined) {
    const begun = await trx
      .insertInto('alert_cursor')
      .values({ name: SOURCES_CURSOR, position })
      .onConflict(conflict => conflict.column('name').doNothing())
      .executeTakeFirst()
    return begun.numInsertedOrUpdatedRows === 1n
  }
  const moved = await trx
    .updateTable('alert_cursor')
    .set({ position })
    .where('name', '=', SOURCES_CURSOR)
    .where('position', '=', from)
    .executeTakeFirst()
  return moved.numUpdatedRows === 1n
}

/** Reads the numbers that no containment may close, and the prefixes that the project's policies explicitly allow. */
export async function protectedFacts(
  db: Db,
  project_id: string,
): Promise<{ readonly numbers: readonly string[]; readonly allowed_prefixes: readonly string[] }> {
  const codes = await db
    .selectFrom('short_code')
    .select(['code', 'sends_to'])
    .where(eb => eb.or([eb('project_id', 'is', null), eb('project_id', '=', project_id)]))
    .execute()
  const rules = await db
    .selectFrom('policy_rule')
    .innerJoin('outbound_policy', 'outbound_policy.id', 'policy_rule.policy_id')
    .select('policy_rule.prefix')
    .where('outbound_policy.project_id', '=', project_id)
    .where('outbound_policy.status', '=', 'active')
    .where('policy_rule.op', '=', 'allow')
    .where('policy_rule.kind', '=', 'prefix')
    .execute()
  return {
    numbers: codes.map(row => row.sends_to.replace(/^\+/, '')),
    allowed_prefixes: rules.map(row => row.prefix),
  }
}

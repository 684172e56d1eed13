import { sql } from 'kysely'
import type { Db, LevelUseTable, Trx } from '../db.ts'
import { statement } from '../port.ts'
import { secondAt, takesWithin } from '../procedures/ceilings/window.ts'

// Reports of what the ceilings have counted, and its repair. Only procedures/ceilings counts (decision 0641).

type Level = LevelUseTable['level']

/** Counts the live calls of subjects at a level, as the concurrency check does. */
export async function countLiveCalls(db: Db | Trx, level: Level, ids: readonly string[]): Promise<Map<string, number>> {
  if (ids.length === 0) return new Map()
  const rows = await db
    .selectFrom('level_use')
    .select(['subject_id', 'live'])
    .where('level', '=', level)
    .where('subject_id', 'in', [...ids])
    .execute()
  return new Map(rows.map(row => [row.subject_id, row.live]))
}

/** Counts the calls that a level with a ceiling of calls per second has taken within the last second. */
export async function takenNow(db: Db | Trx, level: Level, id: string, now_ms: number): Promise<number> {
  const row = await db
    .selectFrom('level_use')
    .select('takes')
    .where('level', '=', level)
    .where('subject_id', '=', id)
    .executeTakeFirst()
  return row === undefined ? 0 : takesWithin(secondAt(now_ms), row.takes)
}

/** Reads the live calls of one subject. */
export const LIVE_CALLS = statement((db, { level, id }: { readonly level: Level; readonly id: string }) =>
  db.selectFrom('level_use').select('live').where('level', '=', level).where('subject_id', '=', id),
)

/** Counts the open leases per level and subject. The counters must equal them. */
const COUNTED = sql`
    with held as (
      select 'subtrunk' as level, subtrunk_id as subject_id
      from lease where ended_at is null and subtrunk_id is not null
      union all select 'trunk', trunk_id from lease where ended_at is null and trunk_id is not null
      union all select 'policy', policy_id from lease where ended_at is null and policy_id is not null
      union all select 'policy', parent_policy_id from lease where ended_at is null and parent_policy_id is not null
      union all select 'subaccount', subaccount_id from lease where ended_at is null and subaccount_id is not null
      union all select 'project', project_id from lease where ended_at is null
    ), counted as (select level, subject_id, count(*) as leases from held group by level, subject_id)`

interface WrongCounter {
  readonly level: Level
  readonly subject_id: string
  /** The counter's value. */
  readonly live: number
  readonly leases: number
}

/** Returns the counters that differ from the leases that they count; empty unless there is a bug. */
export async function wrongCounters(db: Db | Trx): Promise<WrongCounter[]> {
  const { rows } = await sql<WrongCounter>`${COUNTED}
    select u.level, u.subject_id, u.live, coalesce(c.leases, 0) as leases
    from level_use u left join counted c on c.level = u.level and c.subject_id = u.subject_id
    where u.live <> coalesce(c.leases, 0)
    order by u.level, u.subject_id`.execute(db)
  return rows
}

/** Corrects the counters from the leases while calls come and go. Returns the counters that were wrong. */
export async function correctCounters(trx: Trx): Promise<WrongCounter[]> {
  const adrift = await wrongCounters(trx)
  for (const { level, subject_id, leases } of adrift)
    await trx
      .updateTable('level_use')
      .set({ live: leases })
      .where('level', '=', level)
      .where('subject_id', '=', subject_id)
      .execute()
  return adrift
}

/** Returns a level's spend in a day of its organization's time zone: settled, plus running calls' reservations. */
export async function spentOn(db: Db | Trx, level: Level, id: string, day: string): Promise<number> {
  const row = await db
    .selectFrom('spend_day')
    .select('spent_minor')
    .where('level', '=', level)
    .where('subject_id', '=', id)
    .where('day', '=', day)
    .executeTakeFirst()
  return row?.spent_minor ?? 0
}

/** Returns the spend of projects, subaccounts and trunks on the days `from` to `to` (`YYYY-MM-DD`), by id. */
export async function spentBetween(
  db: Db | Trx,
  ids: readonly string[],
  from: string,
  to: string,
): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('spend_day')
    .select(['subject_id', eb => eb.fn.sum<number>('spent_minor').as('spent')])
    .where('subject_id', 'in', [...ids])
    .where('level', 'in', ['project', 'policy', 'subaccount', 'trunk', 'subtrunk'])
    .where('day', '>=', from)
    .where('day', '<=', to)
    .groupBy('subject_id')
    .execute()
  return new Map(rows.map(row => [row.subject_id, Number(row.spent)]))
}

/** Returns the day with the most spend since `day_from` (`YYYY-MM-DD`); null when nothing was spent. */
export async function busiestDay(
  db: Db | Trx,
  level: Level,
  id: string,
  day_from: string,
): Promise<{ date: string; settled_spend_minor: number } | null> {
  const row = await db
    .selectFrom('spend_day')
    .select(['day', 'spent_minor'])
    .where('level', '=', level)
    .where('subject_id', '=', id)
    .where('day', '>=', day_from)
    .where('spent_minor', '>', 0)
    .orderBy('spent_minor', 'desc')
    .orderBy('day')
    .executeTakeFirst()
  return row ? { date: row.day, settled_spend_minor: row.spent_minor } : null
}

/** Deletes the spend of days before `day`. Returns the number of rows. */
export async function pruneSpend(db: Db | Trx, day: string): Promise<number> {
  const { numDeletedRows } = await db.deleteFrom('spend_day').where('day', '<', day).executeTakeFirst()
  return Number(numDeletedRows)
}

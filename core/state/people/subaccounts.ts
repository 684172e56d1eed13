import { type Selectable, sql } from 'kysely'
import { newId } from '../../runtime/ids.ts'
import type { Db, LevelUseTable, SubaccountTable, Trx } from '../db.ts'

export type SubaccountRow = Selectable<SubaccountTable>

export const listSubaccounts = (db: Db | Trx, project_id: string): Promise<SubaccountRow[]> =>
  db.selectFrom('subaccount').selectAll().where('project_id', '=', project_id).orderBy('name').orderBy('id').execute()

export const findSubaccount = (db: Db | Trx, project_id: string, id: string): Promise<SubaccountRow | undefined> =>
  db.selectFrom('subaccount').selectAll().where('id', '=', id).where('project_id', '=', project_id).executeTakeFirst()

export const newSubaccountId = (): string => `sub_${newId.uuid()}`

export async function insertSubaccount(trx: Trx, row: SubaccountRow): Promise<void> {
  await trx.insertInto('subaccount').values(row).execute()
}

/** Saves columns of a subaccount. Returns it at its next revision. */
export async function saveSubaccount(
  trx: Trx,
  subaccount: SubaccountRow,
  changes: Partial<Omit<SubaccountRow, 'id' | 'project_id' | 'revision' | 'updated_at'>>,
  now: string,
): Promise<SubaccountRow> {
  const saved = { ...changes, revision: subaccount.revision + 1, updated_at: now }
  await trx.updateTable('subaccount').set(saved).where('id', '=', subaccount.id).execute()
  return { ...subaccount, ...saved }
}

export interface Usage {
  readonly answered_calls: number
  readonly call_attempts: number
  readonly refused_calls: number
  readonly refusals: readonly { readonly reason: string; readonly count: number }[]
  readonly pending_spend_minor: number
  readonly settled_spend_minor: number
}

const USED_BY = { subaccount: 'subaccount_id', subtrunk: 'subtrunk_id', trunk: 'trunk_id' } as const

/** Sums the calls of a subaccount, trunk or subtrunk since `window_from`. Refusals are counted by whole days. */
export async function usageOf(
  db: Db | Trx,
  level: keyof typeof USED_BY,
  id: string,
  window_from: string,
): Promise<Usage> {
  // A call that took two of its routes has two leases, and one price.
  const calls = db
    .selectFrom('lease')
    .select('call_sid')
    .where(USED_BY[level], '=', id)
    .where('begun_at', '>=', window_from)
  const taken = await db
    .selectFrom('call')
    .leftJoin('reservation', 'reservation.call_sid', 'call.sid')
    .select(eb => [
      eb.fn.countAll<number>().as('attempts'),
      eb.fn.count<number>('call.answered_at').as('answered'),
      eb.fn.sum<number>('reservation.held_minor').as('pending'),
      eb.fn.sum<number>('reservation.charge_minor').as('settled'),
    ])
    .where('call.sid', 'in', calls)
    .executeTakeFirstOrThrow()
  const refusals = await refusalsOf(db, level, id, window_from.slice(0, 10))
  const refused_calls = refusals.reduce((sum, { count }) => sum + count, 0)
  return {
    answered_calls: Number(taken.answered),
    call_attempts: Number(taken.attempts) + refused_calls,
    refused_calls,
    refusals,
    pending_spend_minor: Number(taken.pending ?? 0),
    settled_spend_minor: Number(taken.settled ?? 0),
  }
}

/** Counts the refused calls of a level by reason, most frequent first. */
export async function refusalsOf(
  db: Db | Trx,
  level: LevelUseTable['level'],
  id: string,
  day_from: string,
): Promise<{ reason: string; count: number }[]> {
  const rows = await db
    .selectFrom('refusal_day')
    .select(eb => ['reason', eb.fn.sum<number>('count').as('count')])
    .where('level', '=', level)
    .where('subject_id', '=', id)
    .where('day', '>=', day_from)
    .groupBy('reason')
    .orderBy('count', 'desc')
    .orderBy('reason')
    .execute()
  return rows.map(({ reason, count }) => ({ reason, count: Number(count) }))
}

interface Peak {
  readonly peak_concurrent: number
  readonly peak_concurrent_at: string | null
}

/** Returns the most slots held at the same time since `window_from`, and when that peak began. */
export async function peakOf(
  db: Db | Trx,
  level: keyof typeof USED_BY,
  id: string,
  window_from: string,
): Promise<Peak> {
  const held = sql`from lease where ${sql.ref(USED_BY[level])} = ${id}`
  // At one moment the slots that become free come before those that are taken.
  const { rows } = await sql<{ at: string; live: number }>`
    select at, live from (
      select at, sum(slots) over (order by at, slots rows unbounded preceding) as live from (
        select begun_at as at, 1 as slots ${held} and (ended_at is null or ended_at >= ${window_from})
        union all select ended_at as at, -1 as slots ${held} and ended_at >= ${window_from}
      ) as changes
    ) as moments order by live desc, at limit 1`.execute(db)
  const [peak] = rows
  return { peak_concurrent: Number(peak?.live ?? 0), peak_concurrent_at: peak?.at ?? null }
}

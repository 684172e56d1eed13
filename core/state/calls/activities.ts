import type { Selectable } from 'kysely'
import { iso } from '../../runtime/clock.ts'
import type { CallActivityTable, Db, Trx } from '../db.ts'

/** What runs beside the documents of calls. Nodes write what documents begin and what ends; the API what it begins. */

export type ActivityRow = Selectable<CallActivityTable>

export interface NewActivity {
  readonly sid: string
  readonly call_sid: string
  readonly project_id: string
  readonly kind: CallActivityTable['kind']
  readonly name: string | null
}

export async function insertActivity(trx: Trx, activity: NewActivity, now_ms: number): Promise<ActivityRow> {
  const now = iso(now_ms)
  const row = { ...activity, status: 'in-progress', created_at: now, updated_at: now } as const
  await trx.insertInto('call_activity').values(row).execute()
  return row
}

/** Marks an activity as over. */
export async function endActivity(trx: Trx, sid: string, now_ms: number): Promise<void> {
  await trx
    .updateTable('call_activity')
    .set({ status: 'stopped', updated_at: iso(now_ms) })
    .where('sid', '=', sid)
    .execute()
}

/** Finds an activity of a call by its sid, or the running one of that name. */
export const findActivity = (
  db: Db | Trx,
  { call_sid, kind, named }: { readonly call_sid: string; readonly kind: ActivityRow['kind']; readonly named: string },
): Promise<ActivityRow | undefined> =>
  db
    .selectFrom('call_activity')
    .selectAll()
    .where('call_sid', '=', call_sid)
    .where('kind', '=', kind)
    .where(eb => eb.or([eb('sid', '=', named), eb.and([eb('name', '=', named), eb('status', '=', 'in-progress')])]))
    .orderBy('created_at', 'desc')
    .executeTakeFirst()

export const listRunningActivities = (
  db: Db | Trx,
  call_sid: string,
  kind: ActivityRow['kind'],
): Promise<ActivityRow[]> =>
  db
    .selectFrom('call_activity')
    .selectAll()
    .where('call_sid', '=', call_sid)
    .where('kind', '=', kind)
    .where('status', '=', 'in-progress')
    .execute()

/** Removes activities that began before `before_ms`. No call lasts that long. */
export async function pruneActivities(db: Db, before_ms: number): Promise<void> {
  const old = db.selectFrom('call_activity').select('sid').where('created_at', '<', iso(before_ms)).limit(1000)
  await db.deleteFrom('call_activity').where('sid', 'in', old).execute()
}

export async function countActivities(db: Db | Trx, call_sid: string): Promise<number> {
  const { count } = await db
    .selectFrom('call_activity')
    .select(eb => eb.fn.countAll<number>().as('count'))
    .where('call_sid', '=', call_sid)
    .executeTakeFirstOrThrow()
  return Number(count)
}

import type { Selectable } from 'kysely'
import type { Db, NumberTable, Trx, VoiceApplicationTable } from '../db.ts'

export type VoiceApplicationRow = Selectable<VoiceApplicationTable>

export const findApplication = (db: Db, project_id: string, id: string): Promise<VoiceApplicationRow | undefined> =>
  db
    .selectFrom('voice_application')
    .selectAll()
    .where('id', '=', id)
    .where('project_id', '=', project_id)
    .where('deleted_at', 'is', null)
    .executeTakeFirst()

export const listApplications = (db: Db, project_id: string): Promise<VoiceApplicationRow[]> =>
  db
    .selectFrom('voice_application')
    .selectAll()
    .where('project_id', '=', project_id)
    .where('deleted_at', 'is', null)
    .orderBy('name')
    .orderBy('id')
    .execute()

/** Counts the applications of a project that are not deleted. */
export const countApplications = async (trx: Trx, project_id: string): Promise<number> => {
  const { count } = await trx
    .selectFrom('voice_application')
    .select(eb => eb.fn.countAll<number>().as('count'))
    .where('project_id', '=', project_id)
    .where('deleted_at', 'is', null)
    .executeTakeFirstOrThrow()
  return Number(count)
}

export async function insertApplication(trx: Trx, row: VoiceApplicationRow): Promise<void> {
  await trx.insertInto('voice_application').values(row).execute()
}

/** Saves columns of an application. Returns it at its next revision. */
export async function saveApplication(
  trx: Trx,
  application: VoiceApplicationRow,
  changes: Partial<Omit<VoiceApplicationRow, 'id' | 'project_id' | 'revision' | 'updated_at'>>,
  now: string,
): Promise<VoiceApplicationRow> {
  const saved = { ...changes, revision: application.revision + 1, updated_at: now }
  await trx.updateTable('voice_application').set(saved).where('id', '=', application.id).execute()
  return { ...application, ...saved }
}

/** Counts the numbers that each application answers. */
export async function countNumbersOf(db: Db, application_ids: readonly string[]): Promise<Map<string, number>> {
  if (application_ids.length === 0) return new Map()
  const rows = await db
    .selectFrom('number')
    .select(['route_id', eb => eb.fn.countAll<number>().as('count')])
    .where('route_kind', '=', 'voice_application')
    .where('route_id', 'in', [...application_ids])
    .groupBy('route_id')
    .execute()
  return new Map(rows.map(row => [row.route_id ?? '', Number(row.count)]))
}

export const numbersOfApplication = (db: Db, application_id: string): Promise<Selectable<NumberTable>[]> =>
  db
    .selectFrom('number')
    .selectAll()
    .where('route_kind', '=', 'voice_application')
    .where('route_id', '=', application_id)
    .orderBy('e164')
    .execute()

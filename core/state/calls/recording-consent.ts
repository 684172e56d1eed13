import type { Selectable } from 'kysely'
import type { Db, RecordingConsentTable, Trx } from '../db.ts'

/** The version of the terms that a member accepts before calls may be recorded. */
export const TERMS_VERSION = '2026-11'

type RecordingConsentRow = Selectable<RecordingConsentTable>

export const findRecordingConsent = (db: Db, project_id: string): Promise<RecordingConsentRow | undefined> =>
  db.selectFrom('recording_consent').selectAll().where('project_id', '=', project_id).executeTakeFirst()

export async function acceptRecordingConsent(trx: Trx, row: RecordingConsentRow): Promise<void> {
  await trx.deleteFrom('recording_consent').where('project_id', '=', row.project_id).execute()
  await trx.insertInto('recording_consent').values(row).execute()
}

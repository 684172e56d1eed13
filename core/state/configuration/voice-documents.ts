import type { Selectable } from 'kysely'
import type { Db, Trx, VoiceDocumentRevisionTable, VoiceDocumentTable } from '../db.ts'

/** Saved documents and their revisions. */

export type VoiceDocumentRow = Selectable<VoiceDocumentTable>
export type VoiceDocumentRevisionRow = Selectable<VoiceDocumentRevisionTable>

/** How many revisions a document keeps. */
const KEPT_REVISIONS = 100

export const findDocument = (db: Db | Trx, project_id: string, id: string): Promise<VoiceDocumentRow | undefined> =>
  db
    .selectFrom('voice_document')
    .selectAll()
    .where('id', '=', id)
    .where('project_id', '=', project_id)
    .executeTakeFirst()

/** Finds a document of any project: the caller has proved that it has its address. */
export const findAddressedDocument = (db: Db, id: string): Promise<VoiceDocumentRow | undefined> =>
  db.selectFrom('voice_document').selectAll().where('id', '=', id).executeTakeFirst()

export const listDocuments = (db: Db | Trx, project_id: string): Promise<VoiceDocumentRow[]> =>
  db.selectFrom('voice_document').selectAll().where('project_id', '=', project_id).orderBy('name').execute()

/** Writes a document, and the revision that it has now. */
export async function saveDocument(trx: Trx, row: VoiceDocumentRow): Promise<void> {
  await trx
    .insertInto('voice_document')
    .values(row)
    .onConflict(conflict => conflict.column('id').doUpdateSet(row))
    .execute()
  const { id: document_id, name, content, revision, updated_at: saved_at, updated_by: saved_by } = row
  await trx
    .insertInto('voice_document_revision')
    .values({ document_id, project_id: row.project_id, revision, name, content, saved_at, saved_by })
    .execute()
  await trx
    .deleteFrom('voice_document_revision')
    .where('document_id', '=', document_id)
    .where('revision', '<=', revision - KEPT_REVISIONS)
    .execute()
}

/** Lists the revisions of a document, newest first. */
export const listRevisions = (db: Db, document_id: string): Promise<VoiceDocumentRevisionRow[]> =>
  db
    .selectFrom('voice_document_revision')
    .selectAll()
    .where('document_id', '=', document_id)
    .orderBy('revision', 'desc')
    .execute()

export const findRevision = (
  db: Db | Trx,
  document_id: string,
  revision: number,
): Promise<VoiceDocumentRevisionRow | undefined> =>
  db
    .selectFrom('voice_document_revision')
    .selectAll()
    .where('document_id', '=', document_id)
    .where('revision', '=', revision)
    .executeTakeFirst()

export async function deleteDocument(trx: Trx, id: string): Promise<void> {
  await trx.deleteFrom('voice_document_revision').where('document_id', '=', id).execute()
  await trx.deleteFrom('voice_document').where('id', '=', id).execute()
}

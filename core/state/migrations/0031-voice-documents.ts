import { type AnyDb, createTables } from './create-tables.ts'

/** Documents of markup that the platform keeps and serves. */
export const up = (db: AnyDb): Promise<void> =>
  createTables(db, {
    voice_document: {
      key: 'id',
      columns: 'id project_id name content revision:int created_at updated_at updated_by',
      unique: { voice_document_name: 'project_id name' },
    },
    voice_document_revision: {
      key: 'document_id revision',
      columns: 'document_id project_id revision:int name content saved_at saved_by',
    },
  })

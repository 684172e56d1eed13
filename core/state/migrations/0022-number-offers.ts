import { queueWrite } from '../port.ts'
import { type AnyDb, createTables } from './create-tables.ts'

/** Numbers of the inventory are offered to all projects, to one or to none, and lists of them are imported by jobs. */
export async function up(db: AnyDb): Promise<void> {
  const offered = db.schema
    .alterTable('number')
    .addColumn('offered_to', 'text', column => column.notNull().defaultTo('all'))
  await queueWrite(db, offered)
  await queueWrite(db, db.schema.alterTable('number').addColumn('offered_project_id', 'text'))
  await createTables(db, {
    number_import: {
      counted: 'position',
      columns:
        'id name state total:int known:int done:int added:int priced:int begun_by created_at updated_at finished_at?',
      unique: { number_import_id: 'id' },
      indexes: { number_import_open: ['position', "state in ('reading', 'preview', 'running')"] },
    },
    number_import_line: {
      key: 'import_id e164',
      columns: 'import_id e164 monthly_minor:int offered_to offered_project_id?',
      clustered: true,
    },
  })
}

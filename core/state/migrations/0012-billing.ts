import { type AnyDb, createTable } from './columns.ts'

/** Monthly statements, number orders, retention jobs, and how far the audit trail was told to webhook endpoints. */
export async function up(db: AnyDb): Promise<void> {
  await createTable(db, 'billing_document', {
    text: 'project_id period issued_at body',
    keys: ['project_id', 'period'],
  })
  await db.schema.createIndex('reservation_project_day').on('reservation').columns(['project_id', 'day']).execute()
  await db.schema.createIndex('ledger_account_at').on('ledger').columns(['billing_account_id', 'at']).execute()
  await createTable(db, 'number_order', { counted: 'position', text: 'id project_id numbers created_at' })
  await db.schema.createIndex('number_order_id').on('number_order').column('id').unique().execute()
  await createTable(db, 'retention_job', {
    counted: 'position',
    text: 'id project_id state begun_by after_created_at after_sid created_at updated_at finished_at?',
    integer: 'retention_days total done',
  })
  await db.schema.createIndex('retention_job_id').on('retention_job').column('id').unique().execute()
  await createTable(db, 'told_event', { key: 'name', integer: 'position' })
}

import { sql } from 'kysely'
import { queueWrite } from '../port.ts'
import type { AnyDb } from './create-tables.ts'

/** Each attempt tells its carrier, whose figures are sums of them. Carriers are tested as trunks are. */
export async function up(db: AnyDb): Promise<void> {
  await queueWrite(db, db.schema.alterTable('call_attempt').addColumn('carrier_id', 'text'))
  await queueWrite(
    db,
    db.schema
      .createIndex('call_attempt_carrier')
      .on('call_attempt')
      .columns(['carrier_id', 'started_at'])
      .where(sql.raw<boolean>('carrier_id is not null')),
  )
  await queueWrite(db, db.schema.alterTable('trunk_test_run').renameColumn('trunk_id', 'subject_id'))
  const typed = db.schema
    .alterTable('trunk_test_run')
    .addColumn('subject_type', 'text', column => column.notNull().defaultTo('trunk'))
  await queueWrite(db, typed)
}

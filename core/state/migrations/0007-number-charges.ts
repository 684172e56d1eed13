import { sql } from 'kysely'
import { queueWrite } from '../port.ts'
import type { AnyDb } from './create-tables.ts'

/** Numbers cost money each month. A month of a number is charged once, whoever charges it and however often. */
export async function up(db: AnyDb): Promise<void> {
  await queueWrite(
    db,
    db.schema.alterTable('number').addColumn('monthly_minor', 'bigint', c => c.notNull().defaultTo(0)),
  )
  await queueWrite(
    db,
    db.schema
      .createIndex('ledger_number')
      .on('ledger')
      .column('reference')
      .unique()
      .where(sql.raw<boolean>("kind = 'number'")),
  )
}

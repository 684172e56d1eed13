import { queueWrite } from '../port.ts'
import type { AnyDb } from './create-tables.ts'

const PDD_COLUMNS = [100, 250, 500, 1000, 1500, 2000, 3000, 5000, 8000, 15_000, 30_000].map(ms => `pdd_to_${ms}`)

/**
 * Figures are kept by subject: a trunk, a project or an application. Post-dial delays are counted by size, and load by
 * subject.
 */
export async function up(db: AnyDb): Promise<void> {
  for (const [from, to, id] of [
    ['trunk_step', 'call_step', 'trunk_id'],
    ['trunk_step_failure', 'call_step_failure', 'trunk_id'],
    ['project_load', 'load_step', 'project_id'],
  ] as const) {
    await queueWrite(db, db.schema.alterTable(from).renameTo(to))
    await queueWrite(db, db.schema.alterTable(to).renameColumn(id, 'subject_id'))
  }
  for (const name of [...PDD_COLUMNS, 'pdd_over'])
    await queueWrite(
      db,
      db.schema.alterTable('call_step').addColumn(name, 'bigint', column => column.notNull().defaultTo(0)),
    )
}

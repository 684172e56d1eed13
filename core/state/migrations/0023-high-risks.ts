import { queueWrite } from '../port.ts'
import type { AnyDb } from './create-tables.ts'

// As the list was then: a migration sees the world of its own time.
const NETWORKS = ['satellite', 'international-networks', 'international-premium', 'north-american-premium']
const KNOWN = [...NETWORKS, 'cuba', 'latvia']

/** Destinations of high risk are closed to new projects. Those that were there keep what they could call. */
export async function up(db: AnyDb): Promise<void> {
  const added = db.schema
    .alterTable('project')
    .addColumn('open_risks', 'text', column => column.notNull().defaultTo('[]'))
  await queueWrite(db, added)
  await db
    .updateTable('project')
    .set({ open_risks: JSON.stringify(KNOWN) })
    .execute()
}

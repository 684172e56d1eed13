import { type AnyDb, createTable } from './columns.ts'

// Which process does what one process does for all.

export async function up(db: AnyDb): Promise<void> {
  await createTable(db, 'task_lease', { key: 'name', text: 'holder until' })
}

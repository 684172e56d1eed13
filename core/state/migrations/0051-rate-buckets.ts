import { type AnyDb, createTables } from './create-tables.ts'

/** What is left of the limits that machines share. */
export async function up(db: AnyDb): Promise<void> {
  await createTables(db, {
    rate_bucket: { key: 'name', columns: 'name millionths:int at_ms:int full_at_ms:int' },
  })
}

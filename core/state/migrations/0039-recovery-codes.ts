import { type AnyDb, createTables } from './create-tables.ts'

/** Recovery codes of members stand in for their second factor. */
export async function up(db: AnyDb): Promise<void> {
  await createTables(db, {
    member_recovery_code: { key: 'member_id code_hash', columns: 'member_id code_hash created_at' },
  })
}

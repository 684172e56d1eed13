import { type AnyDb, createTables } from './create-tables.ts'

/** Operators lock members, and send links by which members set a new password. */
export async function up(db: AnyDb): Promise<void> {
  await db.schema.alterTable('member').addColumn('locked_at', 'text').execute()
  await createTables(db, {
    password_reset: {
      key: 'member_id',
      columns: 'member_id token_hash created_at expires_at',
      unique: {
        password_reset_token: 'token_hash',
      },
    },
  })
}

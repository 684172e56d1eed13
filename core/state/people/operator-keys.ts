import type { Selectable } from 'kysely'
import type { Db, OperatorKeyTable, Trx } from '../db.ts'

export type OperatorKeyRow = Selectable<OperatorKeyTable>

export const findOperatorKey = (db: Db, public_id: string): Promise<OperatorKeyRow | undefined> =>
  db.selectFrom('operator_key').selectAll().where('public_id', '=', public_id).executeTakeFirst()

export const findOperatorKeyById = (db: Db | Trx, id: string): Promise<OperatorKeyRow | undefined> =>
  db.selectFrom('operator_key').selectAll().where('id', '=', id).executeTakeFirst()

export const listOperatorKeys = (db: Db): Promise<OperatorKeyRow[]> =>
  db.selectFrom('operator_key').selectAll().orderBy('created_at', 'desc').orderBy('id').execute()

export async function insertOperatorKey(trx: Trx, row: OperatorKeyRow): Promise<void> {
  await trx.insertInto('operator_key').values(row).execute()
}

export async function revokeOperatorKey(trx: Trx, id: string, revoked_at: string): Promise<void> {
  await trx.updateTable('operator_key').set({ revoked_at }).where('id', '=', id).execute()
}

/** Notes a key's last use, to the minute. */
export async function touchOperatorKey(db: Db, id: string, minute: string): Promise<void> {
  await db.updateTable('operator_key').set({ last_used_at: minute }).where('id', '=', id).execute()
}

import type { Selectable } from 'kysely'
import type { Db, PasswordResetTable, Trx } from '../db.ts'
import type { MemberRow } from './organizations.ts'

type PasswordResetRow = Selectable<PasswordResetTable>

/** Stores a member's link to a new password in place of an earlier one. */
export async function putPasswordReset(trx: Trx, row: PasswordResetRow): Promise<void> {
  await trx
    .insertInto('password_reset')
    .values(row)
    .onConflict(conflict => conflict.column('member_id').doUpdateSet(row))
    .execute()
}

/** Whether there is a link with this token's hash that is not over. */
export const hasPasswordReset = async (db: Db, token_hash: string, now: string): Promise<boolean> =>
  (await db
    .selectFrom('password_reset')
    .select('member_id')
    .where('token_hash', '=', token_hash)
    .where('expires_at', '>', now)
    .executeTakeFirst()) !== undefined

/** Takes the link with this token's hash away and returns its member; undefined when there is none, or it is over. */
export async function takePasswordReset(trx: Trx, token_hash: string, now: string): Promise<MemberRow | undefined> {
  const row = await trx
    .deleteFrom('password_reset')
    .where('token_hash', '=', token_hash)
    .where('expires_at', '>', now)
    .returning('member_id')
    .executeTakeFirst()
  return row && trx.selectFrom('member').selectAll().where('id', '=', row.member_id).executeTakeFirst()
}

/** Finds a member of any organization. For operators. */
export const findAnyMember = (db: Db | Trx, id: string): Promise<MemberRow | undefined> =>
  db.selectFrom('member').selectAll().where('id', '=', id).executeTakeFirst()

/** Lists members of all organizations, by their addresses. For operators. */
export function listAllMembers(
  db: Db | Trx,
  page: {
    readonly limit: number
    readonly after?: string
    readonly organization_id?: string
    readonly email?: string
  },
) {
  let query = db
    .selectFrom('member')
    .leftJoin('member_security', 'member_security.member_id', 'member.id')
    .selectAll('member')
    .select('member_security.totp_enabled')
    .orderBy('member.email')
    .limit(page.limit)
  if (page.after !== undefined) query = query.where('member.email', '>', page.after)
  if (page.organization_id !== undefined) query = query.where('member.organization_id', '=', page.organization_id)
  if (page.email !== undefined) query = query.where('member.email', '=', page.email.toLowerCase())
  return query.execute()
}

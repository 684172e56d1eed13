import type { Selectable } from 'kysely'
import type { Db, MemberInvitationTable, Trx } from '../db.ts'

export type InvitationRow = Selectable<MemberInvitationTable>

export async function insertInvitation(trx: Trx, row: InvitationRow): Promise<void> {
  await trx.insertInto('member_invitation').values(row).execute()
}

/** Lists the invitations to an organization that nobody has accepted, newest first. */
export const listInvitations = (db: Db | Trx, organization_id: string): Promise<InvitationRow[]> =>
  db
    .selectFrom('member_invitation')
    .selectAll()
    .where('organization_id', '=', organization_id)
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .execute()

/** Withdraws what has been sent to an address before, so that only the newest link works. */
export async function withdrawInvitations(trx: Trx, organization_id: string, email: string): Promise<void> {
  await trx
    .deleteFrom('member_invitation')
    .where('organization_id', '=', organization_id)
    .where('email', '=', email)
    .execute()
}

/** Whether there is an invitation with this token's hash that is not over. */
export const hasInvitation = async (db: Db, token_hash: string, now: string): Promise<boolean> =>
  (await db
    .selectFrom('member_invitation')
    .select('id')
    .where('token_hash', '=', token_hash)
    .where('expires_at', '>', now)
    .executeTakeFirst()) !== undefined

/** Takes the invitation with this token's hash away and returns it; undefined when there is none, or it is over. */
export const takeInvitation = (trx: Trx, token_hash: string, now: string): Promise<InvitationRow | undefined> =>
  trx
    .deleteFrom('member_invitation')
    .where('token_hash', '=', token_hash)
    .where('expires_at', '>', now)
    .returningAll()
    .executeTakeFirst()

export async function deleteInvitation(trx: Trx, organization_id: string, id: string): Promise<boolean> {
  const { numDeletedRows } = await trx
    .deleteFrom('member_invitation')
    .where('organization_id', '=', organization_id)
    .where('id', '=', id)
    .executeTakeFirst()
  return numDeletedRows === 1n
}

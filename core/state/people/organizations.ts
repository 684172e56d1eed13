import type { Insertable, Selectable } from 'kysely'
import type { Db, MemberTable, OrganizationTable, ProjectTable, Trx } from '../db.ts'

export type ProjectRow = Selectable<ProjectTable>
type OrganizationRow = Selectable<OrganizationTable>
export type MemberRow = Selectable<MemberTable>

export const listProjects = (db: Db, organization_id: string): Promise<ProjectRow[]> =>
  db
    .selectFrom('project')
    .selectAll()
    .where('organization_id', '=', organization_id)
    .orderBy('created_at')
    .orderBy('id')
    .execute()

export const findOrganization = (db: Db, id: string): Promise<OrganizationRow | undefined> =>
  db.selectFrom('organization').selectAll().where('id', '=', id).executeTakeFirst()

/** Sets what the parties of a call hear while somebody listens to it. */
export async function setListeningNotice(trx: Trx, id: string, listening_notice: 'tone' | 'spoken'): Promise<void> {
  await trx.updateTable('organization').set({ listening_notice }).where('id', '=', id).execute()
}

export const findMember = (db: Db, organization_id: string, id: string): Promise<MemberRow | undefined> =>
  db
    .selectFrom('member')
    .selectAll()
    .where('id', '=', id)
    .where('organization_id', '=', organization_id)
    .executeTakeFirst()

export const findMemberByEmail = (db: Db, email: string): Promise<MemberRow | undefined> =>
  db.selectFrom('member').selectAll().where('email', '=', email.toLowerCase()).executeTakeFirst()

export const listMembers = (db: Db, organization_id: string): Promise<MemberRow[]> =>
  db
    .selectFrom('member')
    .selectAll()
    .where('organization_id', '=', organization_id)
    .orderBy('created_at')
    .orderBy('id')
    .execute()

export async function insertMember(trx: Trx, row: Insertable<MemberTable>): Promise<void> {
  await trx.insertInto('member').values(row).execute()
}

export async function updateMember(
  trx: Trx,
  id: string,
  changes: Partial<Pick<MemberRow, 'role' | 'password_hash' | 'locked_at' | 'operator'>>,
): Promise<void> {
  await trx.updateTable('member').set(changes).where('id', '=', id).execute()
}

/** Deletes a member with all sessions and the second factor. */
export async function deleteMember(trx: Trx, id: string): Promise<void> {
  await trx.deleteFrom('console_session').where('member_id', '=', id).execute()
  await trx.deleteFrom('member_security').where('member_id', '=', id).execute()
  await trx.deleteFrom('member_recovery_code').where('member_id', '=', id).execute()
  await trx.deleteFrom('password_reset').where('member_id', '=', id).execute()
  await trx.deleteFrom('member').where('id', '=', id).execute()
}

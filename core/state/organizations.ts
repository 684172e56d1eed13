import type { Selectable } from 'kysely'
import type { Db, MemberTable, OrganizationTable, ProjectTable } from './index.ts'

export type ProjectRow = Selectable<ProjectTable>
export type OrganizationRow = Selectable<OrganizationTable>
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

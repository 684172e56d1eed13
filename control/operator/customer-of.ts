import type { Db, Trx } from '../../core/state/index.ts'
import { findAnyProject } from '../../core/state/people/customers.ts'
import type { Change } from '../http/reply.ts'

/** Returns whose trail also tells a change of something that a project has; nobody's without a project. */
export async function customerOf(db: Db | Trx, project_id: string | null): Promise<Pick<Change, 'customer'>> {
  const project = project_id === null ? undefined : await findAnyProject(db, project_id)
  return project ? { customer: { organization_id: project.organization_id, project_id: project.id } } : {}
}

import type { SubjectType } from '../../domain/alerts/index.ts'
import type { Db } from '../db.ts'

/** Reports whether an organization has the subject that an alert policy is to be limited to. */
export async function hasSubject(
  db: Db,
  organization_id: string,
  { type, id }: { readonly type: SubjectType; readonly id: string },
): Promise<boolean> {
  const projects = db.selectFrom('project').select('project.id').where('organization_id', '=', organization_id)
  if (type === 'organization' || type === 'account') {
    // A balance belongs to a billing account, budgets and the traffic of a voice account to a project.
    const named = projects.where(eb => eb.or([eb('billing_account_id', '=', id), eb('id', '=', id)]))
    return (type === 'organization' && id === organization_id) || (await named.executeTakeFirst()) !== undefined
  }
  const live = {
    trunk: db.selectFrom('trunk').where('status', '!=', 'released').select(['id', 'project_id']),
    subaccount: db.selectFrom('subaccount').select(['id', 'project_id']),
    webhook_endpoint: db.selectFrom('webhook_endpoint').where('deleted_at', 'is', null).select(['id', 'project_id']),
  }[type]
  const found = db.selectFrom(live.as('subject')).select('subject.id')
  return (await found.where('subject.id', '=', id).where('project_id', 'in', projects).executeTakeFirst()) !== undefined
}

import type { Selectable } from 'kysely'
import { availableMinor } from '../../domain/billing/available.ts'
import type { LiveFacts } from '../../domain/customers/checklist.ts'
import { CURRENCY } from '../../domain/rating/currency.ts'
import { newId } from '../../runtime/ids.ts'
import { seal } from '../../runtime/secrets.ts'
import { ensureAlertPolicies } from '../alerts/alert-policies.ts'
import { insertDefaultPolicy } from '../configuration/policies.ts'
import type { Db, OrganizationTable, Trx } from '../db.ts'
import { putBillingAccount } from '../money/rates.ts'
import type { ProjectRow } from './organizations.ts'

/** Organizations and projects as the operator makes, changes and closes them. */

export type OrganizationRow = Selectable<OrganizationTable>

type NewOrganization = Pick<OrganizationRow, 'name' | 'time_zone' | 'contact_email'>

/** Creates an organization with its alert policies. It has no project yet. */
export async function insertOrganization(trx: Trx, given: NewOrganization, now: string): Promise<OrganizationRow> {
  const made = { status: 'active', revision: 1, listening_notice: 'tone', created_at: now } as const
  const row: OrganizationRow = { id: newId.organization(), ...given, ...made }
  await trx.insertInto('organization').values(row).execute()
  await ensureAlertPolicies(trx, row, now)
  return row
}

interface NewProject {
  readonly organization_id: string
  readonly name: string
  readonly sandbox: boolean
  readonly prepaid: boolean
  readonly credit_minor: number
}

/**
 * Creates a project with the account that pays for it, its voice account and its default policy. Its first charge finds
 * a balance.
 */
export async function insertProject(
  trx: Trx,
  given: NewProject,
  { master_key, now }: { readonly master_key: Buffer; readonly now: string },
): Promise<ProjectRow> {
  const { organization_id, name, prepaid, credit_minor } = given
  const row: ProjectRow = {
    id: newId.project(),
    organization_id,
    name,
    status: 'active',
    currency: CURRENCY,
    sandbox: given.sandbox ? 1 : 0,
    open_risks: '[]',
    billing_account_id: `bil_${newId.uuid()}`,
    billing_assignment_revision: 1,
    billing_effective_from: now,
    suspended: 0,
    revision: 1,
    created_at: now,
  }
  await trx.insertInto('project').values(row).execute()
  await putBillingAccount(trx, {
    id: row.billing_account_id,
    name,
    currency: CURRENCY,
    prepaid: prepaid ? 1 : 0,
    credit_minor,
  })
  await insertDefaultPolicy(trx, row, now)
  await trx
    .insertInto('voice_account')
    .values({
      project_id: row.id,
      account_sid: newId.account(),
      auth_token_sealed: seal(master_key, newId.authToken()),
      key_id: `vak_${newId.uuid()}`,
      status: 'active',
      call_event_history: 'enabled',
      revision: 1,
      created_at: now,
    })
    .execute()
  return row
}

export const listOrganizations = (
  db: Db | Trx,
  page: { readonly limit: number; readonly after?: string },
): Promise<OrganizationRow[]> => {
  const query = db.selectFrom('organization').selectAll().orderBy('id').limit(page.limit)
  return (page.after === undefined ? query : query.where('id', '>', page.after)).execute()
}

export async function saveOrganization(
  trx: Trx,
  row: OrganizationRow,
  changes: Partial<Pick<OrganizationRow, 'name' | 'time_zone' | 'contact_email' | 'status'>>,
): Promise<OrganizationRow> {
  const saved = { ...changes, revision: row.revision + 1 }
  await trx.updateTable('organization').set(saved).where('id', '=', row.id).execute()
  return { ...row, ...saved }
}

/**
 * Disables every active project of an organization, or enables those that this has disabled. Their running calls
 * continue. Returns the projects that changed.
 */
export async function suspendProjects(trx: Trx, organization_id: string, suspended: boolean): Promise<ProjectRow[]> {
  const rows = await trx
    .updateTable('project')
    .set(eb => ({
      status: suspended ? ('disabled' as const) : ('active' as const),
      suspended: suspended ? (1 as const) : (0 as const),
      revision: eb('revision', '+', 1),
    }))
    .where('organization_id', '=', organization_id)
    .where('status', '=', suspended ? 'active' : 'disabled')
    .where('suspended', '=', suspended ? 0 : 1)
    .returningAll()
    .execute()
  return rows
}

export const findAnyProject = (db: Db | Trx, id: string): Promise<ProjectRow | undefined> =>
  db.selectFrom('project').selectAll().where('id', '=', id).executeTakeFirst()

/** Returns the names of projects by their ids. */
export async function namesOfProjects(db: Db | Trx, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  if (ids.length === 0) return new Map()
  const rows = await db.selectFrom('project').select(['id', 'name']).where('id', 'in', ids).execute()
  return new Map(rows.map(({ id, name }) => [id, name]))
}

/** Lists projects of all organizations, or of one. */
export function listAllProjects(
  db: Db | Trx,
  page: { readonly limit: number; readonly after?: string; readonly organization_id?: string },
): Promise<ProjectRow[]> {
  let query = db.selectFrom('project').selectAll().orderBy('id').limit(page.limit)
  if (page.after !== undefined) query = query.where('id', '>', page.after)
  if (page.organization_id !== undefined) query = query.where('organization_id', '=', page.organization_id)
  return query.execute()
}

export async function saveProject(
  trx: Trx,
  row: ProjectRow,
  changes: Partial<Pick<ProjectRow, 'name' | 'status' | 'sandbox' | 'open_risks'>>,
): Promise<ProjectRow> {
  const saved = { ...changes, revision: row.revision + 1 }
  await trx.updateTable('project').set(saved).where('id', '=', row.id).execute()
  return { ...row, ...saved }
}

export async function liveFacts(db: Db | Trx, project: ProjectRow, now: string): Promise<LiveFacts> {
  const count = <T>(row: { readonly count: T } | undefined): number => Number(row?.count ?? 0)
  const carriers = await db
    .selectFrom('carrier')
    .innerJoin('carrier_route', 'carrier_route.carrier_id', 'carrier.id')
    .innerJoin('carrier_target', 'carrier_target.carrier_id', 'carrier.id')
    .select(eb => eb.fn.count('carrier.id').distinct().as('count'))
    .where('carrier.enabled', '=', 1)
    .where('carrier.sandbox', '=', 0)
    .where('carrier_target.enabled', '=', 1)
    .executeTakeFirst()
  const books = await db
    .selectFrom('price_book')
    .select(eb => eb.fn.countAll().as('count'))
    .where(eb => eb.or([eb('project_id', '=', project.id), eb('project_id', 'is', null)]))
    .where('carrier_id', 'is', null)
    .where('direction', '=', 'outbound')
    .where('effective_from', '<=', now)
    .executeTakeFirst()
  const numbers = await db
    .selectFrom('number')
    .select(eb => eb.fn.countAll().as('count'))
    .where('project_id', '=', project.id)
    .where('status', '=', 'held')
    .executeTakeFirst()
  const account = await db
    .selectFrom('billing_account')
    .select(['prepaid', 'balance_minor', 'credit_minor', 'held_minor'])
    .where('id', '=', project.billing_account_id)
    .executeTakeFirst()
  const available_minor = account ? availableMinor(account) : null
  return { carriers: count(carriers), price_books: count(books), numbers: count(numbers), available_minor }
}

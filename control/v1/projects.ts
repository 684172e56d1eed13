import { CURRENCY } from '../../core/domain/rating/currency.ts'
import { listProjects, type ProjectRow } from '../../core/state/people/organizations.ts'
import { Count64, Currency, Instant, listOf, nullable, oneOf, resource, type Static, Type } from '../http/schema.ts'
import { route } from './route.ts'

const Project = resource('Project', {
  id: Type.String(),
  name: Type.String(),
  status: oneOf('active', 'disabled'),
  currency: Currency,
  billing_account_id: Type.String(),
  billing_assignment_revision: Count64,
  billing_effective_from: Instant,
  pending_payer: nullable(
    resource('PendingPayer', {
      billing_account_id: Type.String(),
      billing_assignment_revision: Count64,
      effective_from: Instant,
    }),
  ),
})

const presentProject = (row: ProjectRow): Static<typeof Project> => ({
  id: row.id,
  name: row.name,
  status: row.status,
  currency: CURRENCY,
  billing_account_id: row.billing_account_id,
  billing_assignment_revision: row.billing_assignment_revision,
  billing_effective_from: row.billing_effective_from,
  pending_payer: null,
})

export const projects = [
  route({
    method: 'get',
    path: '/projects',
    summary: 'List the projects of the organization',
    scope: 'organization:read',
    context: 'organization',
    restricted_keys: true,
    replies: { 200: listOf(Project) },
    async run({ db, caller }) {
      const rows = await listProjects(db, caller.organization_id)
      return { status: 200, body: { data: rows.map(presentProject) } }
    },
  }),
]

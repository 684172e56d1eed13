import { findOrganization } from '../../core/state/people/organizations.ts'
import { notFound } from '../http/reply.ts'
import { Instant, resource, Type } from '../http/schema.ts'
import { route } from './route.ts'

const Organization = resource('Organization', {
  id: Type.String(),
  name: Type.String(),
  time_zone: Type.String(),
  created_at: Instant,
})

export const organization = [
  route({
    method: 'get',
    path: '/organization',
    summary: 'Read the organization',
    scope: 'organization:read',
    context: 'organization',
    restricted_keys: true,
    replies: { 200: Organization },
    async run({ db, caller }) {
      const row = await findOrganization(db, caller.organization_id)
      if (!row) return notFound('organization')
      const { id, name, time_zone, created_at } = row
      return { status: 200, body: { id, name, time_zone, created_at } }
    },
  }),
]

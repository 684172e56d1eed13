import type { OrganizationRow } from '../../core/state/people/customers.ts'
import { findOrganization, setListeningNotice } from '../../core/state/people/organizations.ts'
import { notFound } from '../http/reply.ts'
import { Instant, input, oneOf, resource, type Static, Type } from '../http/schema.ts'
import { LISTENS } from '../live/listeners.ts'
import { route } from './route.ts'

const ListeningNotice = oneOf('tone', 'spoken')

const Organization = resource('Organization', {
  id: Type.String(),
  name: Type.String(),
  time_zone: Type.String(),
  listening_notice: ListeningNotice,
  created_at: Instant,
})

const present = (row: OrganizationRow): Static<typeof Organization> => ({
  id: row.id,
  name: row.name,
  time_zone: row.time_zone,
  listening_notice: row.listening_notice,
  created_at: row.created_at,
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
      return { status: 200, body: present(row) }
    },
  }),

  route({
    method: 'put',
    path: '/organization/listening-notice',
    summary: 'Choose what the parties of a call hear while a member listens to it: a tone or a sentence',
    scope: LISTENS,
    roles: ['org:admin'],
    context: 'organization',
    audit: { kind: 'seats', action: 'organization.updated', category: 'configuration' },
    body: input('ListeningNoticeRequest', { listening_notice: ListeningNotice }),
    replies: { 200: Organization },
    example: { listening_notice: 'spoken' },
    async run({ db, caller, body }) {
      const before = await findOrganization(db, caller.organization_id)
      if (!before) return notFound('organization')
      const after = { ...before, ...body }
      await setListeningNotice(db, before.id, body.listening_notice)
      const resource = { type: 'organization', id: before.id, name: before.name, href: '/v1/organization' }
      const summary = `While a member listens, the parties of a call hear a ${body.listening_notice === 'tone' ? 'tone' : 'sentence'}`
      return {
        status: 200,
        body: present(after),
        change: { resource, summary, before: present(before), after: present(after) },
      }
    },
  }),
]

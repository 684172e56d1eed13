import { randomBytes } from 'node:crypto'
import { iso } from '../../core/runtime/clock.ts'
import { newId } from '../../core/runtime/ids.ts'
import { hashSecret } from '../../core/runtime/secrets.ts'
import type { Trx } from '../../core/state/index.ts'
import type { OrganizationRow } from '../../core/state/people/customers.ts'
import {
  deleteInvitation,
  type InvitationRow,
  insertInvitation,
  listInvitations,
  withdrawInvitations,
} from '../../core/state/people/invitations.ts'
import { findMemberByEmail } from '../../core/state/people/organizations.ts'
import { type Change, notFound, type Refusal, refuse } from '../http/reply.ts'
import { Email, Instant, input, listOf, nullable, optional, Role, resource, type Static, Type } from '../http/schema.ts'
import type { HttpServices } from '../http/services.ts'
import { route } from './route.ts'

const LIFE_MS = 7 * 24 * 60 * 60 * 1000

const Invitation = resource('OperatorInvitation', {
  id: Type.String(),
  email: Type.String(),
  role: Role,
  created_at: Instant,
  expires_at: Instant,
})

export const InvitationCreation = resource('OperatorInvitationCreation', {
  invitation: Invitation,
  url: nullable(Type.String(), { description: 'Where the invited person sets a password; in this answer only.' }),
})

const present = ({ id, email, role, created_at, expires_at }: InvitationRow): Static<typeof Invitation> => ({
  id,
  email,
  role,
  created_at,
  expires_at,
})

interface Invited {
  readonly shown: Static<typeof InvitationCreation>
  readonly change: Change
}

/** Invites a person to an organization. The link's token is in its fragment, which no server and no log sees. */
export async function invite(
  trx: Trx,
  organization: OrganizationRow,
  person: { readonly email: string; readonly role: Static<typeof Role> },
  { now, services }: { readonly now: string; readonly services: HttpServices },
): Promise<Invited | Refusal<'resource_exists'>> {
  const email = person.email.toLowerCase()
  if (await findMemberByEmail(trx, email)) return refuse('resource_exists', { value: 'a member with this email' })
  await withdrawInvitations(trx, organization.id, email)
  const token = randomBytes(32).toString('base64url')
  const row: InvitationRow = {
    id: `inv_${newId.uuid()}`,
    token_hash: hashSecret(token),
    organization_id: organization.id,
    email,
    role: person.role,
    created_at: now,
    expires_at: iso(services.clock.now() + LIFE_MS),
  }
  await insertInvitation(trx, row)
  const url = `${services.settings.base_url}/console/invitation#${token}`
  return { shown: { invitation: present(row), url }, change: invitationChange('Invited', organization, row) }
}

const invitationChange = (verb: string, organization: OrganizationRow, row: InvitationRow): Change => ({
  resource: { type: 'invitation', id: row.id, name: row.email, href: null },
  summary: `${verb} ${row.email} as ${row.role}`,
  before: null,
  after: present(row),
  action: verb === 'Invited' ? 'member.invited' : 'member.invitation_withdrawn',
  customer: { organization_id: organization.id, project_id: null },
})

export const invitations = [
  route({
    method: 'get',
    path: '/organizations/{organization_id}/invitations',
    summary: 'List the invitations that nobody has accepted, newest first',
    scope: 'operator:read',
    context: 'organization',
    replies: { 200: listOf(Invitation) },
    async run({ db, organization }) {
      return { status: 200, body: { data: (await listInvitations(db, organization.id)).map(present) } }
    },
  }),

  route({
    method: 'post',
    path: '/organizations/{organization_id}/invitations',
    summary: 'Invite a person to an organization; an earlier link to the same address ends',
    scope: 'operator:customers',
    context: 'organization',
    idempotent: true,
    audit: { kind: 'seats', action: 'member.invited', category: 'security' },
    body: input('InviteMemberRequest', { email: Email, role: optional(Role) }),
    replies: { 201: InvitationCreation },
    refusals: ['resource_exists'],
    for_replay: (body: Static<typeof InvitationCreation>) => ({ ...body, url: null }),
    async run({ db, organization, body, now, services }) {
      const person = { email: body.email, role: body.role ?? 'org:admin' }
      const invited = await invite(db, organization, person, { now, services })
      return 'refused' in invited ? invited : { status: 201, body: invited.shown, change: invited.change }
    },
  }),

  route({
    method: 'delete',
    path: '/organizations/{organization_id}/invitations/{invitation_id}',
    summary: 'Withdraw an invitation',
    scope: 'operator:customers',
    context: 'organization',
    audit: { kind: 'seats', action: 'member.invitation_withdrawn', category: 'security' },
    replies: { 204: null },
    async run({ db, organization, params }) {
      const row = (await listInvitations(db, organization.id)).find(({ id }) => id === params.invitation_id)
      if (!row) return notFound(`invitation ${params.invitation_id.slice(0, 60)}`)
      await deleteInvitation(db, organization.id, row.id)
      return { status: 204, change: invitationChange('Withdrew the invitation of', organization, row) }
    },
  }),
]

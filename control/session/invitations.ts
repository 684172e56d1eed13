import { iso } from '../../core/runtime/clock.ts'
import { newId } from '../../core/runtime/ids.ts'
import { hashPassword, hashSecret } from '../../core/runtime/secrets.ts'
import { hasInvitation, takeInvitation } from '../../core/state/people/invitations.ts'
import { findMemberByEmail, insertMember, type MemberRow } from '../../core/state/people/organizations.ts'
import { refuse } from '../http/reply.ts'
import { input, resource, Type } from '../http/schema.ts'
import { route } from './route.ts'
import { Password } from './sessions.ts'

/** What an invited person does, who is nobody's member yet. */
export const invitations = [
  route({
    method: 'post',
    path: '/invitations/accept',
    summary: 'Accept an invitation and set a password',
    scope: null,
    context: 'organization',
    anonymous: true,
    idempotent: false,
    audit: { kind: 'seats', action: 'member.added', category: 'security' },
    body: input('AcceptInvitationRequest', {
      token: Type.String({ pattern: '^[A-Za-z0-9_-]{43}$' }),
      password: Password,
    }),
    replies: { 201: resource('AcceptedInvitation', { email: Type.String() }) },
    refusals: ['invitation_over', 'resource_exists'],
    /** Null without the invitation: a stranger's guess costs no hash. */
    async prepare({ body, services: { state, clock } }) {
      const known = await hasInvitation(state.db, hashSecret(body.token), iso(clock.now()))
      return known ? await hashPassword(body.password) : null
    },
    async run({ db, body, prepared: password_hash, now }) {
      if (password_hash === null) return refuse('invitation_over')
      const invitation = await takeInvitation(db, hashSecret(body.token), now)
      if (!invitation) return refuse('invitation_over')
      const { organization_id, email, role } = invitation
      if (await findMemberByEmail(db, email)) return refuse('resource_exists', { value: 'a member with this email' })
      const row: MemberRow = {
        id: newId.member(),
        organization_id,
        email,
        password_hash,
        role,
        operator: 0,
        locked_at: null,
        created_at: now,
      }
      await insertMember(db, row)
      const change = {
        resource: { type: 'member', id: row.id, name: email, href: null },
        summary: `${email} accepted an invitation as ${role}`,
        before: null,
        after: { email, role },
        customer: { organization_id, project_id: null },
      }
      return { status: 201, body: { email }, change }
    },
  }),
]

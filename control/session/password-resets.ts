import { iso } from '../../core/runtime/clock.ts'
import { hashPassword, hashSecret } from '../../core/runtime/secrets.ts'
import { deleteOtherSessions } from '../../core/state/people/console-sessions.ts'
import { updateMember } from '../../core/state/people/organizations.ts'
import { hasPasswordReset, takePasswordReset } from '../../core/state/people/password-resets.ts'
import { refuse } from '../http/reply.ts'
import { input, resource, Type } from '../http/schema.ts'
import { route } from './route.ts'
import { Password } from './sessions.ts'

/** What a member does who has a link to a new password from an operator. */
export const passwordResets = [
  route({
    method: 'post',
    path: '/password-resets/accept',
    summary: 'Set a new password by a link of the operator; every session of the member ends',
    scope: null,
    context: 'organization',
    anonymous: true,
    idempotent: false,
    audit: { kind: 'seats', action: 'member.password_changed', category: 'security' },
    body: input('AcceptPasswordResetRequest', {
      token: Type.String({ pattern: '^[A-Za-z0-9_-]{43}$' }),
      password: Password,
    }),
    replies: { 200: resource('AcceptedPasswordReset', { email: Type.String() }) },
    refusals: ['password_reset_over'],
    /** Null without the link: a stranger's guess costs no hash. */
    async prepare({ body, services: { state, clock } }) {
      const known = await hasPasswordReset(state.db, hashSecret(body.token), iso(clock.now()))
      return known ? await hashPassword(body.password) : null
    },
    async run({ db, body, prepared: password_hash, now }) {
      if (password_hash === null) return refuse('password_reset_over')
      const member = await takePasswordReset(db, hashSecret(body.token), now)
      if (!member) return refuse('password_reset_over')
      await updateMember(db, member.id, { password_hash })
      await deleteOtherSessions(db, member.id, null)
      const change = {
        resource: { type: 'member', id: member.id, name: member.email, href: null },
        summary: `${member.email} set a new password by a link`,
        before: null,
        after: null,
        customer: { organization_id: member.organization_id, project_id: null },
      }
      return { status: 200, body: { email: member.email }, change }
    },
  }),
]

import { iso } from '../../core/runtime/clock.ts'
import { newId } from '../../core/runtime/ids.ts'
import { hashPassword, seal } from '../../core/runtime/secrets.ts'
import type { Trx } from '../../core/state/index.ts'
import { deleteOtherSessions, deleteSession, insertSession } from '../../core/state/people/console-sessions.ts'
import { findOrganization, listProjects, type MemberRow, updateMember } from '../../core/state/people/organizations.ts'
import { findAnyMember } from '../../core/state/people/password-resets.ts'
import {
  countRecoveryCodes,
  endSecondFactor,
  replaceRecoveryCodes,
  saveSecurity,
  securityOf,
  takeRecoveryCode,
} from '../../core/state/people/second-factors.ts'
import { ROLE_SCOPES, SCOPES } from '../http/access.ts'
import { type Change, invalid, isRefusal, type Refusal, refuse } from '../http/reply.ts'
import {
  Count64,
  described,
  Flag,
  input,
  list,
  nullable,
  oneOf,
  optional,
  Role,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'
import { csrfOf, newSessionToken, SESSION_LIFE_MS, sessionCookie, sessionHash } from './cookie.ts'
import { memberOf, route } from './route.ts'
import {
  checkSignIn,
  newTotpSecret,
  provenFactor,
  provenPassword,
  recoveryHash,
  type SecondFactor,
  totpOf,
  wrongSignIn,
} from './sign-in.ts'

const Session = resource('ConsoleSession', {
  csrf_token: Type.String(),
  member: resource('SignedInMember', {
    id: Type.String(),
    email: Type.String(),
    role: Role,
    operator: Flag,
    totp_enabled: Flag,
    recovery_codes_left: described(Count64, 'Recovery codes that were not used yet.'),
    scopes: list(oneOf(...SCOPES)),
  }),
  organization: resource('SignedInOrganization', { id: Type.String(), name: Type.String(), time_zone: Type.String() }),
  projects: list(
    resource('SignedInProject', { id: Type.String(), name: Type.String(), sandbox: Flag, status: Type.String() }),
  ),
})

export const Password = Type.String({ minLength: 12, maxLength: 200 })
const AnyPassword = Type.String({ minLength: 1, maxLength: 200 })
const Code = described(Type.String({ minLength: 6, maxLength: 24 }), 'Of the app of the member, or a recovery code.')
const RECOVERY_CODES = 10

const RecoveryCodes = resource('RecoveryCodes', {
  recovery_codes: described(
    list(Type.String()),
    'Each stands in once for a code of the app. They are in this answer alone.',
  ),
})

/** Makes the recovery codes of a member anew. Only their hashes are stored. */
async function newRecoveryCodes(db: Trx, member_id: string, now: string): Promise<string[]> {
  const codes = Array.from({ length: RECOVERY_CODES }, newId.recoveryCode)
  await replaceRecoveryCodes(db, member_id, codes.map(recoveryHash), now)
  return codes
}

/** Consumes the recovery code, when it was one. False when another request consumed it meanwhile. */
const consumed = async (db: Trx, member_id: string, factor: SecondFactor): Promise<boolean> =>
  factor === true || (await takeRecoveryCode(db, member_id, factor.recovery_hash))

async function presentSession(
  db: Parameters<typeof findOrganization>[0],
  member: MemberRow,
  csrf_token: string,
): Promise<Static<typeof Session>> {
  const organization = await findOrganization(db, member.organization_id)
  if (!organization) throw new Error('a member belongs to an organization')
  const { id, name, time_zone } = organization
  const projects = await listProjects(db, id)
  return {
    csrf_token,
    member: {
      id: member.id,
      email: member.email,
      role: member.role,
      operator: member.operator === 1,
      totp_enabled: (await securityOf(db, member.id)).totp_enabled === 1,
      recovery_codes_left: await countRecoveryCodes(db, member.id),
      scopes: [...ROLE_SCOPES[member.role]],
    },
    organization: { id, name, time_zone },
    projects: projects.map(project => ({
      id: project.id,
      name: project.name,
      sandbox: project.sandbox === 1,
      status: project.status,
    })),
  }
}

const notCurrent = () => invalid('/code', 'is neither the current code nor an unused recovery code')

const memberChange = (member: MemberRow, summary: string, after: object | null = null): Change => ({
  resource: { type: 'member', id: member.id, name: member.email, href: null },
  summary,
  before: null,
  after,
})

export const sessions = [
  route({
    method: 'post',
    path: '/session',
    summary: 'Sign in; the session is in a cookie, the CSRF token in the answer',
    scope: null,
    context: 'organization',
    anonymous: true,
    idempotent: false,
    audit: { kind: 'seats', action: 'member.recovery_code_used', category: 'security' },
    body: input('SignInRequest', {
      email: Type.String({ minLength: 3, maxLength: 254 }),
      password: AnyPassword,
      code: optional(
        nullable(described(Type.String({ maxLength: 24 }), 'Of the app of the member, or a recovery code.')),
      ),
    }),
    replies: { 200: Session },
    refusals: ['unauthenticated', 'account_locked', 'member_locked'],
    prepare: ({ body, services, caller }) => checkSignIn(services, body, caller.id),
    async run({ db, caller, prepared, now, services }) {
      if (isRefusal(prepared)) return prepared as Refusal<'unauthenticated' | 'account_locked' | 'member_locked'>
      const { member, recovery_hash } = prepared
      // The password was checked before this transaction: a reset or a lock may have come between.
      const current = await findAnyMember(db, member.id)
      if (current?.password_hash !== member.password_hash || current.locked_at !== null)
        return refuse('unauthenticated', {}, { detail: 'The account changed meanwhile. Sign in again.' })
      if (recovery_hash !== null && !(await takeRecoveryCode(db, member.id, recovery_hash))) return wrongSignIn()
      const token = newSessionToken()
      await insertSession(db, {
        id_hash: sessionHash(token),
        member_id: member.id,
        csrf_hash: sessionHash(csrfOf(token)),
        created_at: now,
        last_seen_at: now,
        expires_at: iso(services.clock.now() + SESSION_LIFE_MS),
        address: caller.address ?? '',
      })
      return {
        status: 200,
        headers: { 'Set-Cookie': sessionCookie(token, services.settings.base_url) },
        body: await presentSession(db, member, csrfOf(token)),
        change:
          recovery_hash === null
            ? null
            : {
                ...memberChange(member, `${member.email} signed in with a recovery code`),
                customer: { organization_id: member.organization_id, project_id: null },
              },
      }
    },
  }),

  route({
    method: 'get',
    path: '/session',
    summary: 'Read the signed-in member and the CSRF token of the session',
    scope: null,
    context: 'organization',
    replies: { 200: Session },
    async run({ db, caller }) {
      const { member, csrf_token } = memberOf(caller)
      return { status: 200, body: await presentSession(db, member, csrf_token) }
    },
  }),

  route({
    method: 'delete',
    path: '/session',
    summary: 'Sign out',
    scope: null,
    context: 'organization',
    while_suspended: true,
    idempotent: false,
    replies: { 204: null },
    async run({ db, caller, services }) {
      await deleteSession(db, memberOf(caller).session_hash)
      return { status: 204, headers: { 'Set-Cookie': sessionCookie('', services.settings.base_url) }, change: null }
    },
  }),

  route({
    method: 'put',
    path: '/session/password',
    summary: 'Change your password; every other session of yours ends',
    scope: null,
    context: 'organization',
    idempotent: false,
    audit: { kind: 'seats', action: 'member.password_changed', category: 'security' },
    body: input('PasswordChange', { current_password: AnyPassword, new_password: Password }),
    replies: { 204: null },
    refusals: ['account_locked'],
    async prepare({ body, caller, services, breathe }) {
      const right = await provenPassword(services, memberOf(caller).member, body.current_password, breathe)
      if (right !== true) return right || null
      await breathe()
      return await hashPassword(body.new_password)
    },
    async run({ db, caller, prepared: password_hash }) {
      const { member, session_hash } = memberOf(caller)
      if (isRefusal(password_hash)) return password_hash
      if (password_hash === null) return invalid('/current_password', 'is not right')
      await updateMember(db, member.id, { password_hash })
      await deleteOtherSessions(db, member.id, session_hash)
      return { status: 204, change: memberChange(member, `${member.email} changed the own password`) }
    },
  }),

  route({
    method: 'post',
    path: '/session/totp',
    summary: 'Start the setup of one-time codes; they are required once a first code is confirmed',
    scope: null,
    context: 'organization',
    idempotent: false,
    replies: { 200: resource('TotpSetUp', { secret: Type.String(), uri: Type.String() }) },
    refusals: ['state_conflict'],
    async run({ db, caller, services }) {
      const { member } = memberOf(caller)
      if ((await securityOf(db, member.id)).totp_enabled === 1)
        return refuse('state_conflict', { name: 'two-factor sign-in', value: 'on' })
      const secret = newTotpSecret()
      await saveSecurity(db, member.id, { totp_sealed: seal(services.settings.master_key, secret), totp_last_step: 0 })
      return { status: 200, body: { secret, uri: totpOf(secret, member.email).toString() }, change: null }
    },
  }),

  route({
    method: 'put',
    path: '/session/totp',
    summary: 'Turn one-time codes on with a first code, which returns recovery codes, or off with a code',
    scope: null,
    context: 'organization',
    idempotent: false,
    audit: { kind: 'seats', action: 'member.totp_changed', category: 'security' },
    body: input('TotpChange', { enabled: Flag, code: Code }),
    replies: { 200: RecoveryCodes },
    refusals: ['account_locked'],
    prepare: ({ body, caller, services }) =>
      provenFactor(services, memberOf(caller).member.id, body.code, body.enabled),
    async run({ db, caller, body, prepared: factor, now }) {
      const { member } = memberOf(caller)
      if (isRefusal(factor)) return factor
      if (!factor || !(await consumed(db, member.id, factor))) return notCurrent()
      if (body.enabled) await saveSecurity(db, member.id, { totp_enabled: 1 })
      else await endSecondFactor(db, member.id)
      const recovery_codes = body.enabled ? await newRecoveryCodes(db, member.id, now) : []
      const turned = body.enabled ? 'on' : 'off'
      const change = memberChange(member, `${member.email} turned one-time codes ${turned}`)
      return { status: 200, body: { recovery_codes }, change }
    },
  }),

  route({
    method: 'post',
    path: '/session/recovery-codes',
    summary: 'Make new recovery codes with a current code; the earlier ones end',
    scope: null,
    context: 'organization',
    idempotent: false,
    audit: { kind: 'seats', action: 'member.recovery_codes_made', category: 'security' },
    body: input('RecoveryCodesRequest', { code: Code }),
    replies: { 200: RecoveryCodes },
    refusals: ['state_conflict', 'account_locked'],
    prepare: ({ body, caller, services }) => provenFactor(services, memberOf(caller).member.id, body.code, false),
    async run({ db, caller, prepared: factor, now }) {
      const { member } = memberOf(caller)
      if (isRefusal(factor)) return factor
      if ((await securityOf(db, member.id)).totp_enabled === 0)
        return refuse('state_conflict', { name: 'two-factor sign-in', value: 'off' })
      if (!factor || !(await consumed(db, member.id, factor))) return notCurrent()
      const recovery_codes = await newRecoveryCodes(db, member.id, now)
      const change = memberChange(member, `${member.email} made new recovery codes`)
      return { status: 200, body: { recovery_codes }, change }
    },
  }),
]

import { randomBytes } from 'node:crypto'
import { iso } from '../../core/runtime/clock.ts'
import { hashSecret } from '../../core/runtime/secrets.ts'
import type { Db, Trx } from '../../core/state/index.ts'
import { deleteOtherSessions } from '../../core/state/people/console-sessions.ts'
import { type MemberRow, updateMember } from '../../core/state/people/organizations.ts'
import { findAnyMember, listAllMembers, putPasswordReset } from '../../core/state/people/password-resets.ts'
import { endSecondFactor, securityOf } from '../../core/state/people/second-factors.ts'
import { OPERATOR_SCOPES, withoutScope } from '../http/access.ts'
import type { Caller } from '../http/caller.ts'
import { pageAfter, pageQuery } from '../http/paging.ts'
import { type Change, notFound, refuse } from '../http/reply.ts'
import {
  Email,
  Flag,
  Instant,
  input,
  nullable,
  optional,
  pageSchema,
  Role,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'
import { AuditReason } from './audit-reason.ts'
import { route } from './route.ts'

const MAX_PAGE = 200
/** How long a link to a new password works. */
const RESET_MS = 24 * 60 * 60 * 1000

const Member = resource('OperatorMember', {
  id: Type.String(),
  organization_id: Type.String(),
  email: Type.String(),
  role: Role,
  operator: Flag,
  second_factor: Flag,
  locked_at: nullable(Instant),
  created_at: Instant,
})
type Shown = Static<typeof Member>

const shownWith = (row: MemberRow, totp_enabled: number | null): Shown => ({
  id: row.id,
  organization_id: row.organization_id,
  email: row.email,
  role: row.role,
  operator: row.operator === 1,
  second_factor: totp_enabled === 1,
  locked_at: row.locked_at,
  created_at: row.created_at,
})

const present = async (db: Db | Trx, row: MemberRow): Promise<Shown> =>
  shownWith(row, (await securityOf(db, row.id)).totp_enabled)

const memberChange = (
  summary: string,
  { id, email, organization_id }: MemberRow,
  of: { readonly before: object | null; readonly after: object | null; readonly detail: string | null },
): Change => ({
  resource: { type: 'member', id, name: email, href: null },
  summary,
  ...of,
  customer: { organization_id, project_id: null },
})

/** Locks or unlocks a member. A locked one has no session and cannot sign in. */
const barred = (action: 'lock' | 'unlock') =>
  route({
    method: 'post',
    path: `/members/{member_id}/${action}`,
    summary:
      action === 'lock' ? 'Lock a member: every session ends, and no sign-in is taken' : 'Unlock a locked member',
    scope: 'operator:customers',
    context: 'organization',
    audit: { kind: 'seats', action: `member.${action}ed`, category: 'security' },
    body: input(action === 'lock' ? 'LockMemberRequest' : 'UnlockMemberRequest', { reason: AuditReason }),
    replies: { 200: Member },
    refusals: ['state_conflict'],
    async run({ db, member, body, now }) {
      const locks = action === 'lock'
      if ((member.locked_at !== null) === locks)
        return refuse('state_conflict', { name: member.email, value: locks ? 'locked' : 'not locked' })
      const saved = { ...member, locked_at: locks ? now : null }
      await updateMember(db, member.id, { locked_at: saved.locked_at })
      if (locks) await deleteOtherSessions(db, member.id, null)
      const [before, after] = [await present(db, member), await present(db, saved)]
      const summary = `${locks ? 'Locked' : 'Unlocked'} ${member.email}`
      return { status: 200, body: after, change: memberChange(summary, member, { before, after, detail: body.reason }) }
    },
  })

/** An operator has every scope in the console. Only a caller with every scope may make, open or end such an account. */
const needsAll = (caller: Caller) => {
  const lacking = OPERATOR_SCOPES.find(scope => !caller.scopes.has(scope))
  return lacking === undefined ? null : withoutScope(caller, lacking)
}
const ofOperator = (caller: Caller, member: MemberRow) => (member.operator === 1 ? needsAll(caller) : null)

/** Makes a member an operator of the installation, or ends that. */
const appointed = (action: 'appoint-operator' | 'dismiss-operator') =>
  route({
    method: 'post',
    path: `/members/{member_id}/${action}`,
    summary:
      action === 'appoint-operator'
        ? 'Let a member operate the installation in the console; needs every scope, which the member gets'
        : 'End that a member operates the installation; every session of the member ends. Needs every scope',
    scope: 'operator:customers',
    context: 'organization',
    audit: {
      kind: 'seats',
      action: action === 'appoint-operator' ? 'member.operator_appointed' : 'member.operator_dismissed',
      category: 'security',
    },
    body: input(action === 'appoint-operator' ? 'AppointOperatorRequest' : 'DismissOperatorRequest', {
      reason: AuditReason,
    }),
    replies: { 200: Member },
    refusals: ['state_conflict', 'scope_required', 'role_forbidden'],
    async run({ db, caller, member, body }) {
      const refusal = needsAll(caller)
      if (refusal) return refusal
      const operator: MemberRow['operator'] = action === 'appoint-operator' ? 1 : 0
      if (member.operator === operator)
        return refuse('state_conflict', { name: member.email, value: operator === 1 ? 'an operator' : 'no operator' })
      await updateMember(db, member.id, { operator })
      await deleteOtherSessions(db, member.id, null)
      const [before, after] = [await present(db, member), await present(db, { ...member, operator })]
      const summary = operator === 1 ? `Made ${member.email} an operator` : `${member.email} is no operator any more`
      return { status: 200, body: after, change: memberChange(summary, member, { before, after, detail: body.reason }) }
    },
  })

const PasswordReset = resource('OperatorPasswordReset', {
  member_id: Type.String(),
  email: Type.String(),
  expires_at: Instant,
  url: nullable(Type.String(), { description: 'Where the member sets a new password; in this answer only.' }),
})

export const members = [
  route({
    method: 'get',
    path: '/members',
    summary: 'List the members of all organizations, or of one, by their addresses',
    scope: 'operator:read',
    context: 'organization',
    query: Type.Object(
      { ...pageQuery(MAX_PAGE), organization_id: optional(Type.String({ maxLength: 64 })), email: optional(Email) },
      { additionalProperties: false },
    ),
    replies: { 200: pageSchema(Member) },
    run: ({ db, query: { cursor, limit, ...filter } }) =>
      pageAfter(
        { cursor, limit },
        {
          read: window => listAllMembers(db, { ...filter, ...window }),
          key: row => row.email,
          present: ({ totp_enabled, ...row }) => shownWith(row, totp_enabled),
        },
      ),
  }),

  barred('lock'),
  barred('unlock'),
  appointed('appoint-operator'),
  appointed('dismiss-operator'),

  route({
    method: 'post',
    path: '/members/{member_id}/reset-second-factor',
    summary: 'Remove the second factor of a member who lost it; every session ends',
    description: 'Make sure that the person is who they say: from now on the password alone opens the account.',
    scope: 'operator:customers',
    context: 'organization',
    audit: { kind: 'seats', action: 'member.second_factor_reset', category: 'security' },
    body: input('ResetSecondFactorRequest', { reason: AuditReason }),
    replies: { 200: Member },
    refusals: ['state_conflict', 'scope_required', 'role_forbidden'],
    async run({ db, caller, member, body }) {
      const refusal = ofOperator(caller, member)
      if (refusal) return refusal
      const before = await present(db, member)
      if (!before.second_factor)
        return refuse('state_conflict', { name: member.email, value: 'without a second factor' })
      await endSecondFactor(db, member.id)
      await deleteOtherSessions(db, member.id, null)
      const after = await present(db, member)
      const change = memberChange(`Reset the second factor of ${member.email}`, member, {
        before,
        after,
        detail: body.reason,
      })
      return { status: 200, body: after, change }
    },
  }),

  route({
    method: 'post',
    path: '/password-resets',
    summary: 'Make a link by which a member sets a new password within a day; an earlier link ends',
    scope: 'operator:customers',
    context: 'organization',
    idempotent: true,
    audit: { kind: 'seats', action: 'member.password_reset_made', category: 'security' },
    body: input('PasswordResetRequest', {
      member_id: Type.String({ minLength: 1, maxLength: 64 }),
      reason: AuditReason,
    }),
    replies: { 201: PasswordReset },
    for_replay: (body: Static<typeof PasswordReset>) => ({ ...body, url: null }),
    refusals: ['scope_required', 'role_forbidden'],
    async run({ db, body, caller, now, services }) {
      const member = await findAnyMember(db, body.member_id)
      if (!member) return notFound(`member ${body.member_id}`)
      const refusal = ofOperator(caller, member)
      if (refusal) return refusal
      const token = randomBytes(32).toString('base64url')
      const expires_at = iso(services.clock.now() + RESET_MS)
      await putPasswordReset(db, { member_id: member.id, token_hash: hashSecret(token), created_at: now, expires_at })
      const change = memberChange(`Made a link to a new password for ${member.email}`, member, {
        before: null,
        after: null,
        detail: body.reason,
      })
      // The token is in the fragment, which no server and no log sees.
      const url = `${services.settings.base_url}/console/password#${token}`
      return { status: 201, body: { member_id: member.id, email: member.email, expires_at, url }, change }
    },
  }),
]

import { newId } from '../../core/runtime/ids.ts'
import { hashPassword } from '../../core/runtime/secrets.ts'
import type { Db } from '../../core/state/index.ts'
import { deleteOtherSessions } from '../../core/state/people/console-sessions.ts'
import {
  deleteMember,
  findMemberByEmail,
  insertMember,
  listMembers,
  type MemberRow,
  updateMember,
} from '../../core/state/people/organizations.ts'
import type { Caller } from '../http/caller.ts'
import { type Change, type Refusal, refuse } from '../http/reply.ts'
import { Email, Flag, Instant, input, listOf, Role, resource, type Static, Type } from '../http/schema.ts'
import { memberOf, route } from './route.ts'
import { Password } from './sessions.ts'

const Member = resource('Member', {
  id: Type.String(),
  email: Type.String(),
  role: Role,
  operator: Flag,
  created_at: Instant,
})
type Shown = Static<typeof Member>

const present = (row: MemberRow): Shown => ({
  id: row.id,
  email: row.email,
  role: row.role,
  operator: row.operator === 1,
  created_at: row.created_at,
})

const memberChange = (summary: string, row: MemberRow, before: Shown | null, after: Shown | null): Change => ({
  resource: { type: 'member', id: row.id, name: row.email, href: null },
  summary,
  before,
  after,
})

const ADMIN = ['org:admin'] as const

/** Refuses to remove the last admin: nobody could manage the organization or appoint another. */
async function lastAdmin(db: Db, member: MemberRow): Promise<Refusal<'state_conflict'> | null> {
  const members = await listMembers(db, member.organization_id)
  const others = members.filter(other => other.role === 'org:admin' && other.id !== member.id)
  return member.role === 'org:admin' && others.length === 0
    ? refuse('state_conflict', { name: member.email, value: 'the last admin' })
    : null
}

/** An operator serves the whole installation: an admin of one organization does not decide on their membership. */
const ofOperator = (caller: Caller, member: MemberRow): Refusal<'role_forbidden'> | null =>
  member.operator === 1 && !caller.operator
    ? refuse('role_forbidden', { value: caller.role }, { detail: 'Only an operator changes an operator’s membership.' })
    : null

export const members = [
  route({
    method: 'get',
    path: '/members',
    summary: 'List the members of the organization',
    scope: null,
    context: 'organization',
    roles: ADMIN,
    replies: { 200: listOf(Member) },
    async run({ db, caller }) {
      return { status: 200, body: { data: (await listMembers(db, caller.organization_id)).map(present) } }
    },
  }),

  route({
    method: 'post',
    path: '/members',
    summary: 'Add a member with a first password',
    scope: null,
    context: 'organization',
    roles: ADMIN,
    idempotent: true,
    audit: { kind: 'seats', action: 'member.added', category: 'security' },
    body: input('AddMemberRequest', {
      email: Email,
      password: Password,
      role: Role,
    }),
    replies: { 201: Member },
    refusals: ['resource_exists'],
    async prepare({ body, breathe }) {
      await breathe()
      return await hashPassword(body.password)
    },
    async run({ db, caller, body, prepared: password_hash, now }) {
      if (await findMemberByEmail(db, body.email))
        return refuse('resource_exists', { value: 'a member with this email' })
      const row: MemberRow = {
        id: newId.member(),
        organization_id: caller.organization_id,
        email: body.email.toLowerCase(),
        password_hash,
        role: body.role,
        operator: 0,
        locked_at: null,
        created_at: now,
      }
      await insertMember(db, row)
      const shown = present(row)
      return { status: 201, body: shown, change: memberChange(`Added ${row.email} as ${row.role}`, row, null, shown) }
    },
  }),

  route({
    method: 'patch',
    path: '/members/{member_id}',
    summary: 'Change the role of a member; every session of the member ends',
    scope: null,
    context: 'organization',
    roles: ADMIN,
    audit: { kind: 'seats', action: 'member.role_changed', category: 'security' },
    body: input('MemberRoleRequest', { role: Role }),
    replies: { 200: Member },
    refusals: ['state_conflict', 'role_forbidden'],
    async run({ db, caller, member, body }) {
      const refusal = ofOperator(caller, member)
      if (refusal) return refusal
      const last = body.role === 'org:admin' ? null : await lastAdmin(db, member)
      if (last) return last
      await updateMember(db, member.id, { role: body.role })
      const { session_hash } = memberOf(caller)
      await deleteOtherSessions(db, member.id, caller.id === member.id ? session_hash : null)
      const after = present({ ...member, role: body.role })
      const change = memberChange(`Made ${member.email} ${body.role}`, member, present(member), after)
      return { status: 200, body: after, change }
    },
  }),

  route({
    method: 'delete',
    path: '/members/{member_id}',
    summary: 'Remove a member; every session of the member ends',
    scope: null,
    context: 'organization',
    roles: ADMIN,
    audit: { kind: 'seats', action: 'member.removed', category: 'security' },
    replies: { 204: null },
    refusals: ['state_conflict', 'role_forbidden'],
    async run({ db, caller, member }) {
      const refusal = ofOperator(caller, member)
      if (refusal) return refusal
      const last = await lastAdmin(db, member)
      if (last) return last
      await deleteMember(db, member.id)
      return { status: 204, change: memberChange(`Removed ${member.email}`, member, present(member), null) }
    },
  }),
]

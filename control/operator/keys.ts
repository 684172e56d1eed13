import { newId } from '../../core/runtime/ids.ts'
import { hashSecret } from '../../core/runtime/secrets.ts'
import {
  insertOperatorKey,
  listOperatorKeys,
  type OperatorKeyRow,
  revokeOperatorKey,
} from '../../core/state/people/operator-keys.ts'
import { OPERATOR_SCOPES, type OperatorScope } from '../http/access.ts'
import { type Change, invalid, refuse } from '../http/reply.ts'
import {
  Instant,
  input,
  list,
  listOf,
  Name,
  nullable,
  oneOf,
  optional,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'
import { route } from './route.ts'

const Scopes = oneOf(...OPERATOR_SCOPES)

const OperatorKey = resource('OperatorKey', {
  id: Type.String(),
  name: Type.String(),
  shown: Type.String(),
  scopes: list(Scopes),
  created_at: Instant,
  expires_at: nullable(Instant),
  revoked_at: nullable(Instant),
  last_used_at: nullable(Instant),
})

const present = (row: OperatorKeyRow): Static<typeof OperatorKey> => ({
  id: row.id,
  name: row.name,
  shown: `ok_live_${row.public_id}`,
  scopes: JSON.parse(row.scopes) as OperatorScope[],
  created_at: row.created_at,
  expires_at: row.expires_at,
  revoked_at: row.revoked_at,
  last_used_at: row.last_used_at,
})

const keyChange = (summary: string, before: OperatorKeyRow | null, after: OperatorKeyRow): Change => ({
  resource: { type: 'operator_key', id: after.id, name: after.name, href: null },
  summary,
  before: before && present(before),
  after: present(after),
})

const Creation = resource('OperatorKeyCreation', {
  key: OperatorKey,
  operator_key: nullable(Type.String(), { description: 'The key itself, in this answer only.' }),
})

export const keys = [
  route({
    method: 'get',
    path: '/keys',
    summary: 'List the keys of operators, newest first',
    scope: 'operator:read',
    context: 'organization',
    replies: { 200: listOf(OperatorKey) },
    async run({ db }) {
      return { status: 200, body: { data: (await listOperatorKeys(db)).map(present) } }
    },
  }),

  route({
    method: 'post',
    path: '/keys',
    summary:
      'Create a key for an operator; nobody can grant a scope that they lack, or a time after their own key’s end',
    scope: 'operator:customers',
    context: 'organization',
    idempotent: true,
    audit: { kind: 'credentials', action: 'operator_key.created', category: 'security' },
    body: input('CreateOperatorKeyRequest', {
      name: Name,
      scopes: Type.Array(Scopes, { minItems: 1, maxItems: OPERATOR_SCOPES.length, uniqueItems: true }),
      expires_at: optional(nullable(Instant)),
    }),
    replies: { 201: Creation },
    for_replay: (body: Static<typeof Creation>) => ({ ...body, operator_key: null }),
    async run({ db, body, caller, now }) {
      const beyond = body.scopes.findIndex(scope => !caller.scopes.has(scope))
      if (beyond >= 0) return invalid(`/scopes/${beyond}`, 'is not yours to grant')
      const expires_at = body.expires_at ?? null
      if (expires_at !== null && Date.parse(expires_at) <= Date.parse(now))
        return invalid('/expires_at', 'is in the past')
      const last = caller.expires_at ?? null
      if (last !== null && (expires_at === null || expires_at > last))
        return invalid('/expires_at', `is after the end of your own key, ${last}`)
      const { public_id, secret } = newId.apiKey()
      const row: OperatorKeyRow = {
        id: newId.operatorKey(),
        public_id,
        secret_hash: hashSecret(secret),
        name: body.name,
        scopes: JSON.stringify(body.scopes),
        expires_at,
        revoked_at: null,
        last_used_at: null,
        created_at: now,
      }
      await insertOperatorKey(db, row)
      const answer = { key: present(row), operator_key: `ok_live_${public_id}_${secret}` }
      return { status: 201, body: answer, change: keyChange(`Created operator key ${row.name}`, null, row) }
    },
  }),

  route({
    method: 'delete',
    path: '/keys/{key_id}',
    summary: 'Revoke a key of an operator at once; its scopes must be among the caller’s',
    scope: 'operator:customers',
    context: 'organization',
    audit: { kind: 'credentials', action: 'operator_key.revoked', category: 'security' },
    replies: { 204: null },
    refusals: ['state_conflict', 'scope_required'],
    async run({ db, caller, key, now }) {
      const beyond = (JSON.parse(key.scopes) as OperatorScope[]).find(scope => !caller.scopes.has(scope))
      if (beyond !== undefined) return refuse('scope_required', { value: beyond }, { extra: { reason: beyond } })
      if (key.revoked_at !== null) return refuse('state_conflict', { name: key.name, value: 'revoked' })
      await revokeOperatorKey(db, key.id, now)
      return { status: 204, change: keyChange(`Revoked operator key ${key.name}`, key, { ...key, revoked_at: now }) }
    },
  }),
]

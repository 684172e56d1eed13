import { iso } from '../../core/runtime/clock.ts'
import { newId } from '../../core/runtime/ids.ts'
import { hashSecret } from '../../core/runtime/secrets.ts'
import type { Db, Role as RoleName } from '../../core/state/index.ts'
import {
  type ApiKeyRow,
  insertKey,
  keyIsOver,
  listKeys,
  retireKey,
  revokeKey,
} from '../../core/state/people/api-keys.ts'
import { findSubaccount } from '../../core/state/people/subaccounts.ts'
import { type CallerRole, GRANTABLE_ROLES, ROLE_SCOPES, roleAllows, SCOPES, type Scope } from '../http/access.ts'
import { type Change, invalid, type Refusal, refuse } from '../http/reply.ts'
import {
  Instant,
  input,
  list,
  listOf,
  Name,
  nullable,
  oneOf,
  optional,
  Role,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'
import { route } from './route.ts'

const ApiKey = resource('ApiKey', {
  id: Type.String(),
  project_id: Type.String(),
  public_id: Type.String(),
  name: Type.String(),
  role: Role,
  scopes: list(oneOf(...SCOPES)),
  subaccount_id: nullable(Type.String()),
  state: oneOf('active', 'retiring', 'stopped', 'expired', 'revoked'),
  expires_at: nullable(Instant),
  retires_at: nullable(Instant),
  rotated_from_id: nullable(Type.String()),
  revoked_at: nullable(Instant),
  last_used_at: nullable(Instant),
  created_at: Instant,
})
type Shown = Static<typeof ApiKey>

/** `api_key` is the whole key. Only the first answer has it; replays have null. */
const ApiKeyCreation = resource('ApiKeyCreation', { key: ApiKey, api_key: nullable(Type.String()) })

const MANAGERS: readonly RoleName[] = ['org:admin', 'org:engineer']
const HOUR_MS = 3_600_000

function stateOf(row: ApiKeyRow, now: string): Shown['state'] {
  if (row.revoked_at !== null) return 'revoked'
  if (row.expires_at !== null && row.expires_at <= now) return 'expired'
  if (row.retires_at === null) return 'active'
  return row.retires_at <= now ? 'stopped' : 'retiring'
}

const present = (row: ApiKeyRow, now: string): Shown => ({
  id: row.id,
  project_id: row.project_id,
  public_id: row.public_id,
  name: row.name,
  role: row.role,
  scopes: JSON.parse(row.scopes) as Scope[],
  subaccount_id: row.subaccount_id,
  state: stateOf(row, now),
  expires_at: row.expires_at,
  retires_at: row.retires_at,
  rotated_from_id: row.rotated_from_id,
  revoked_at: row.revoked_at,
  last_used_at: row.last_used_at,
  created_at: row.created_at,
})

const keyChange = (
  summary: string,
  row: ApiKeyRow,
  before: Shown | null,
  after: Shown,
  detail: string | null = null,
): Change => ({
  resource: { type: 'api_key', id: row.id, name: row.name, href: null },
  summary,
  before,
  after,
  detail,
})

const withoutKey = (body: Static<typeof ApiKeyCreation>) => ({ ...body, api_key: null })

const CreateApiKeyRequest = input('CreateApiKeyRequest', {
  name: Name,
  role: Role,
  scopes: Type.Array(oneOf(...SCOPES), { minItems: 1, maxItems: SCOPES.length, uniqueItems: true }),
  subaccount_id: optional(nullable(Type.String({ maxLength: 128 }))),
  expires_at: optional(nullable(Instant)),
})

/** Refuses a role above the creator's own, and scopes that either role may not have. */
async function notGrantable(
  db: Db,
  project_id: string,
  creator: CallerRole,
  body: Static<typeof CreateApiKeyRequest>,
  now: string,
): Promise<Refusal<'role_forbidden' | 'validation_failed'> | null> {
  if (!GRANTABLE_ROLES[creator].includes(body.role))
    return refuse('role_forbidden', { value: creator }, { detail: `The role ${creator} cannot grant ${body.role}.` })
  for (const [at, scope] of body.scopes.entries()) {
    if (!ROLE_SCOPES[body.role].has(scope)) return invalid(`/scopes/${at}`, `is not a scope of ${body.role}`)
    if (!roleAllows(creator, scope)) return invalid(`/scopes/${at}`, 'is not yours to grant')
  }
  if (body.subaccount_id && !(await findSubaccount(db, project_id, body.subaccount_id)))
    return invalid('/subaccount_id', 'is not a subaccount of the project')
  if (body.expires_at && Date.parse(body.expires_at) <= Date.parse(now)) return invalid('/expires_at', 'is in the past')
  return null
}

const mayManage = (manager: CallerRole, key: ApiKeyRow): Refusal<'role_forbidden'> | null =>
  GRANTABLE_ROLES[manager].includes(key.role)
    ? null
    : refuse('role_forbidden', { value: manager }, { detail: `The role ${manager} cannot manage keys of ${key.role}.` })

function newKey(
  fields: Omit<ApiKeyRow, 'id' | 'public_id' | 'secret_hash' | 'retires_at' | 'revoked_at' | 'last_used_at'>,
) {
  const { public_id, secret } = newId.apiKey()
  const row: ApiKeyRow = {
    ...fields,
    id: newId.key(),
    public_id,
    secret_hash: hashSecret(secret),
    retires_at: null,
    revoked_at: null,
    last_used_at: null,
  }
  return { row, api_key: `sk_live_${public_id}_${secret}` }
}

export const apiKeys = [
  route({
    method: 'get',
    path: '/api-keys',
    summary: 'List the API keys of the organization',
    scope: null,
    roles: MANAGERS,
    context: 'organization',
    replies: { 200: listOf(ApiKey) },
    async run({ db, caller, now }) {
      const rows = await listKeys(db, caller.organization_id)
      return { status: 200, body: { data: rows.map(row => present(row, now)) } }
    },
  }),

  route({
    method: 'post',
    path: '/api-keys',
    summary: 'Create an API key; the whole key is in this answer alone',
    scope: null,
    roles: MANAGERS,
    idempotent: true,
    audit: { kind: 'credentials', action: 'api_key.created', category: 'security' },
    body: CreateApiKeyRequest,
    replies: { 201: ApiKeyCreation },
    refusals: ['role_forbidden'],
    for_replay: withoutKey,
    async run({ db, project, caller, body, now }) {
      const wrong = await notGrantable(db, project.id, caller.role, body, now)
      if (wrong) return wrong
      const { row, api_key } = newKey({
        project_id: project.id,
        name: body.name,
        role: body.role,
        scopes: JSON.stringify(body.scopes),
        subaccount_id: body.subaccount_id ?? null,
        expires_at: body.expires_at ?? null,
        rotated_from_id: null,
        created_at: now,
      })
      await insertKey(db, row)
      const key = present(row, now)
      return { status: 201, body: { key, api_key }, change: keyChange(`Created API key ${row.name}`, row, null, key) }
    },
  }),

  route({
    method: 'post',
    path: '/api-keys/{key_id}/rotate',
    summary: 'Replace an API key; the old one works for the hours of overlap',
    scope: null,
    roles: MANAGERS,
    context: 'organization',
    idempotent: true,
    audit: { kind: 'credentials', action: 'api_key.rotated', category: 'security' },
    body: input('RotateApiKeyRequest', { overlap_hours: Type.Integer({ minimum: 0, maximum: 24 }) }),
    replies: { 201: ApiKeyCreation },
    refusals: ['state_conflict', 'role_forbidden'],
    for_replay: withoutKey,
    async run({ db, caller, key: old, body, now, services }) {
      const forbidden = mayManage(caller.role, old)
      if (forbidden) return forbidden
      if (old.retires_at !== null || keyIsOver(old, now))
        return refuse('state_conflict', { name: `key ${old.name}`, value: stateOf(old, now) })
      const retires_at = iso(services.clock.now() + body.overlap_hours * HOUR_MS)
      const { row, api_key } = newKey({
        project_id: old.project_id,
        name: old.name,
        role: old.role,
        scopes: old.scopes,
        subaccount_id: old.subaccount_id,
        expires_at: old.expires_at,
        rotated_from_id: old.id,
        created_at: now,
      })
      await retireKey(db, old.id, retires_at)
      await insertKey(db, row)
      const key = present(row, now)
      const summary = `Rotated API key ${row.name}; the old one works until ${retires_at}`
      return { status: 201, body: { key, api_key }, change: keyChange(summary, row, present(old, now), key) }
    },
  }),

  route({
    method: 'post',
    path: '/api-keys/{key_id}/revoke',
    summary: 'Revoke an API key, at once and for good',
    scope: null,
    roles: MANAGERS,
    context: 'organization',
    audit: { kind: 'credentials', action: 'api_key.revoked', category: 'security' },
    body: input('RevokeApiKeyRequest', {
      confirm_name: Type.String({ maxLength: 240 }),
      reason: Type.String({ minLength: 1, maxLength: 500, pattern: '\\S' }),
    }),
    replies: { 200: ApiKey },
    refusals: ['state_conflict', 'role_forbidden', 'confirm_name_mismatch'],
    async run({ db, caller, key, body, now }) {
      const forbidden = mayManage(caller.role, key)
      if (forbidden) return forbidden
      if (body.confirm_name !== key.name) return refuse('confirm_name_mismatch', { value: body.confirm_name })
      if (key.revoked_at !== null) return refuse('state_conflict', { name: `key ${key.name}`, value: 'revoked' })
      await revokeKey(db, key.id, now)
      const after = present({ ...key, revoked_at: now }, now)
      const change = keyChange(`Revoked API key ${key.name}`, key, present(key, now), after, body.reason)
      return { status: 200, body: after, change }
    },
  }),
]

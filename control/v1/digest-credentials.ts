import { iso } from '../../core/runtime/clock.ts'
import {
  type CredentialRow,
  credentialNameTaken,
  insertCredential,
  listCredentials,
  updateCredential,
} from '../../core/state/configuration/trunks.ts'
import { notFound, refuse } from '../http/reply.ts'
import { Flag, Instant, input, listOf, nullable, resource, type Static, Type } from '../http/schema.ts'
import { route } from './route.ts'
import { newCredential, newUsername } from './trunk-rules.ts'
import { releasing, writeTrunk } from './trunk-writes.ts'

const fields = {
  id: Type.String(),
  realm: Type.String(),
  username: Type.String(),
  enabled: Flag,
  created_at: Instant,
  new_applied_at: nullable(Instant),
  previous_retires_at: nullable(Instant),
  revoked_at: nullable(Instant),
  rotated_from_id: nullable(Type.String()),
  valid_until: nullable(Instant),
}

const DigestCredential = resource('DigestCredential', fields)
const DigestCredentialSecret = resource('DigestCredentialSecret', {
  ...fields,
  password: nullable(Type.String()),
  secret_unavailable: Flag,
})
type Secret = Static<typeof DigestCredentialSecret>

/** A realm is sent as a quoted string in challenges (RFC 3261 §25.1): printable, without quote and backslash. */
const Realm = Type.String({ minLength: 1, maxLength: 64, pattern: '^[!#-\\[\\]-~]([ !#-\\[\\]-~]*[!#-\\[\\]-~])?$' })

/** After a rotation both passwords work for a day. Deleting the old credential disables its password at once. */
const OVERLAP_MS = 24 * 60 * 60 * 1000
const MAX_CREDENTIALS = 50

/** `previous` is the credential that this one replaced. */
const present = (row: CredentialRow, previous: CredentialRow | undefined): Static<typeof DigestCredential> => ({
  id: row.id,
  realm: row.realm,
  username: row.username,
  enabled: row.enabled === 1,
  created_at: row.created_at,
  new_applied_at: row.new_applied_at,
  previous_retires_at: previous?.previous_retires_at ?? null,
  revoked_at: row.revoked_at,
  rotated_from_id: row.rotated_from_id,
  valid_until: row.valid_until ?? row.previous_retires_at,
})

const withoutPassword = (body: Secret): Secret => ({ ...body, password: null, secret_unavailable: true })
const PATH = '/trunks/{trunk_id}/digest-credentials'

export const digestCredentials = [
  route({
    method: 'get',
    path: PATH,
    summary: "List a trunk's digest credentials",
    scope: 'service_configuration:read',
    replies: { 200: listOf(DigestCredential) },
    async run({ db, trunk }) {
      const rows = await listCredentials(db, trunk.id)
      const data = rows.map(row =>
        present(
          row,
          rows.find(other => other.id === row.rotated_from_id),
        ),
      )
      return { status: 200, revision: trunk.revision, body: { data } }
    },
  }),

  route({
    method: 'post',
    path: PATH,
    summary: 'Add a digest credential; its password is in this answer alone',
    scope: 'service_configuration:write',
    if_match: 'trunk',
    idempotent: true,
    applies: true,
    audit: { kind: 'credentials', action: 'digest_credential.created', category: 'security' },
    body: input('DigestCredentialInput', { realm: Realm }),
    replies: { 201: DigestCredentialSecret },
    refusals: ['trunk_releasing', 'limit_reached'],
    for_replay: withoutPassword,
    example: { realm: 'sip.example.com' },
    async run({ db, trunk, body, now }) {
      const gone = releasing(trunk)
      if (gone) return gone
      const active = (await listCredentials(db, trunk.id)).filter(row => row.revoked_at === null)
      if (active.length >= MAX_CREDENTIALS)
        return refuse('limit_reached', { value: active.length, limit: MAX_CREDENTIALS })
      const username = newUsername()
      if (await credentialNameTaken(db, username, body.realm)) throw new Error('two random usernames are the same')
      const { row, password } = newCredential(trunk.id, { username, realm: body.realm }, now)
      const saved = await writeTrunk(db, trunk, now, {
        summary: `Added digest credential ${row.username} to trunk ${trunk.name}`,
        work: () => insertCredential(db, row),
      })
      return {
        status: 201,
        revision: saved.trunk.revision,
        body: { ...present(row, undefined), password, secret_unavailable: false },
        change: saved.change,
      }
    },
  }),

  route({
    method: 'delete',
    path: `${PATH}/{credential_id}`,
    summary: 'Revoke a digest credential; the trunk applies in the background',
    scope: 'service_configuration:write',
    if_match: 'trunk',
    applies: true,
    audit: { kind: 'credentials', action: 'digest_credential.revoked', category: 'security' },
    replies: { 204: null },
    refusals: ['trunk_releasing'],
    async run({ db, trunk, params, now }) {
      const gone = releasing(trunk)
      if (gone) return gone
      const row = (await listCredentials(db, trunk.id)).find(known => known.id === params.credential_id)
      if (!row || row.revoked_at !== null) return notFound(`digest credential ${params.credential_id.slice(0, 60)}`)
      const saved = await writeTrunk(db, trunk, now, {
        summary: `Revoked digest credential ${row.username} of trunk ${trunk.name}`,
        work: () => updateCredential(db, row.id, { revoked_at: now, enabled: 0 }),
      })
      return { status: 204, revision: saved.trunk.revision, change: saved.change }
    },
  }),

  route({
    method: 'post',
    path: `${PATH}/{credential_id}/rotate`,
    summary: 'Replace a digest password; the old one works for another 24 hours',
    scope: 'service_configuration:write',
    if_match: 'trunk',
    idempotent: true,
    applies: true,
    audit: { kind: 'credentials', action: 'digest_credential.rotated', category: 'security' },
    replies: { 201: DigestCredentialSecret },
    refusals: ['trunk_releasing', 'state_conflict'],
    for_replay: withoutPassword,
    async run({ db, trunk, params, now }) {
      const gone = releasing(trunk)
      if (gone) return gone
      const rows = await listCredentials(db, trunk.id)
      const old = rows.find(known => known.id === params.credential_id)
      if (!old || old.revoked_at !== null) return notFound(`digest credential ${params.credential_id.slice(0, 60)}`)
      if (rows.some(row => row.rotated_from_id === old.id))
        return refuse('state_conflict', { name: `digest credential ${old.username}`, value: 'rotated already' })
      const { row, password } = newCredential(trunk.id, old, now, old.id)
      const previous_retires_at = iso(Date.parse(now) + OVERLAP_MS)
      const saved = await writeTrunk(db, trunk, now, {
        summary: `Rotated digest credential ${row.username} of trunk ${trunk.name}`,
        async work() {
          await updateCredential(db, old.id, { previous_retires_at })
          await insertCredential(db, row)
        },
      })
      return {
        status: 201,
        revision: saved.trunk.revision,
        body: { ...present(row, { ...old, previous_retires_at }), password, secret_unavailable: false },
        change: saved.change,
      }
    },
  }),
]

import {
  deleteTarget,
  insertTargets,
  listTargets,
  type TargetRow,
  updateTarget,
} from '../../core/state/configuration/trunks.ts'
import { isRefusal, notFound, refuse } from '../http/reply.ts'
import {
  DigestPassword,
  DigestUsername,
  Flag,
  Instant,
  Int32,
  input,
  listOf,
  nullable,
  optional,
  Redirects,
  resource,
  type Static,
  Transport,
  Type,
} from '../http/schema.ts'
import { route } from './route.ts'
import { readTarget } from './trunk-rules.ts'
import { Fingerprint, MAX_TARGETS, Priority, SipUriText, TlsVerification } from './trunk-schemas.ts'
import { releasing, writeTrunk } from './trunk-writes.ts'

const TerminationTarget = resource('TerminationTarget', {
  id: Type.String(),
  sip_uri: Type.String(),
  transport: Transport,
  priority: Int32,
  weight: Int32,
  enabled: Flag,
  tls_verification: TlsVerification,
  tls_fingerprint: nullable(Type.String()),
  redirects: Redirects,
  digest_username: nullable(Type.String()),
  created_at: Instant,
  updated_at: Instant,
})

const TargetInput = input('TerminationTargetInput', {
  sip_uri: SipUriText,
  transport: Transport,
  enabled: optional(Flag),
  priority: optional(Priority),
  weight: optional(Priority),
  tls_verification: optional(TlsVerification),
  tls_fingerprint: optional(nullable(Fingerprint)),
  redirects: optional(Redirects),
  digest_username: optional(nullable(DigestUsername)),
  digest_password: optional(DigestPassword),
})

const DEFAULTS = { priority: 10, weight: 100 }

const present = (row: TargetRow): Static<typeof TerminationTarget> => ({
  id: row.id,
  sip_uri: row.sip_uri,
  transport: row.transport,
  priority: row.priority,
  weight: row.weight,
  enabled: row.enabled === 1,
  tls_verification: row.tls_verification,
  tls_fingerprint: row.tls_fingerprint,
  redirects: row.redirects,
  digest_username: row.digest_username,
  created_at: row.created_at,
  updated_at: row.updated_at,
})

const PATH = '/trunks/{trunk_id}/termination-uris'

export const terminationUris = [
  route({
    method: 'get',
    path: PATH,
    summary: "List a trunk's termination targets",
    scope: 'service_configuration:read',
    replies: { 200: listOf(TerminationTarget) },
    async run({ db, trunk }) {
      const rows = await listTargets(db, trunk.id)
      return { status: 200, revision: trunk.revision, body: { data: rows.map(present) } }
    },
  }),

  route({
    method: 'post',
    path: PATH,
    summary: 'Add a termination target; the trunk applies in the background',
    scope: 'service_configuration:write',
    if_match: 'trunk',
    idempotent: true,
    applies: true,
    audit: { kind: 'trunks', action: 'termination_target.created' },
    body: TargetInput,
    replies: { 201: TerminationTarget },
    refusals: ['trunk_releasing', 'target_exists', 'limit_reached'],
    example: { sip_uri: 'sip:pbx.example.com', transport: 'tls', priority: 20, weight: 100, enabled: true },
    async run({ db, trunk, body, now, services }) {
      const gone = releasing(trunk)
      if (gone) return gone
      const target = readTarget({ ...DEFAULTS, ...body }, { pointer: '', trunk_id: trunk.id, now, ...services })
      if (isRefusal(target)) return target
      const known = await listTargets(db, trunk.id)
      if (known.some(other => same(other, target))) return refuse('target_exists', { value: target.sip_uri })
      if (known.length >= MAX_TARGETS) return refuse('limit_reached', { value: known.length, limit: MAX_TARGETS })
      const saved = await writeTrunk(db, trunk, now, {
        summary: `Added target ${target.sip_uri} to trunk ${trunk.name}`,
        work: () => insertTargets(db, [target]),
      })
      return { status: 201, revision: saved.trunk.revision, body: present(target), change: saved.change }
    },
  }),

  route({
    method: 'patch',
    path: `${PATH}/{target_id}`,
    summary: 'Change a termination target; the trunk applies in the background',
    description:
      'A digest password is written once and never shown. It belongs to the address: a change of `sip_uri` drops it unless it is given again.',
    scope: 'service_configuration:write',
    if_match: 'trunk',
    applies: true,
    audit: { kind: 'trunks', action: 'termination_target.updated' },
    body: TargetInput,
    replies: { 200: TerminationTarget },
    refusals: ['trunk_releasing', 'target_exists'],
    async run({ db, trunk, params, body, now, services }) {
      const gone = releasing(trunk)
      if (gone) return gone
      const known = await listTargets(db, trunk.id)
      const row = known.find(target => target.id === params.target_id)
      if (!row) return notFound(`termination target ${params.target_id.slice(0, 60)}`)
      const { priority, weight, tls_verification } = row
      // The fingerprint belongs to `pinned`. A change to another verification drops it.
      const tls_fingerprint = (body.tls_verification ?? tls_verification) === 'pinned' ? row.tls_fingerprint : null
      const { redirects } = row
      const kept = { priority, weight, enabled: row.enabled === 1, tls_verification, tls_fingerprint, redirects }
      const place = { pointer: '', trunk_id: trunk.id, now, ...services }
      const read = readTarget({ ...kept, ...body }, place, row)
      if (isRefusal(read)) return read
      const changed = { ...read, id: row.id, created_at: row.created_at }
      if (known.some(other => other.id !== row.id && same(other, changed)))
        return refuse('target_exists', { value: changed.sip_uri })
      const { id: _id, trunk_id: _trunk, created_at: _created, ...columns } = changed
      const saved = await writeTrunk(db, trunk, now, {
        summary: `Changed target ${row.sip_uri} of trunk ${trunk.name}`,
        work: () => updateTarget(db, row.id, columns),
      })
      return { status: 200, revision: saved.trunk.revision, body: present(changed), change: saved.change }
    },
  }),

  route({
    method: 'delete',
    path: `${PATH}/{target_id}`,
    summary: 'Remove a termination target; the trunk applies in the background',
    scope: 'service_configuration:write',
    if_match: 'trunk',
    applies: true,
    audit: { kind: 'trunks', action: 'termination_target.deleted' },
    replies: { 204: null },
    refusals: ['trunk_releasing'],
    async run({ db, trunk, params, now }) {
      const gone = releasing(trunk)
      if (gone) return gone
      const row = (await listTargets(db, trunk.id)).find(target => target.id === params.target_id)
      if (!row) return notFound(`termination target ${params.target_id.slice(0, 60)}`)
      const saved = await writeTrunk(db, trunk, now, {
        summary: `Removed target ${row.sip_uri} from trunk ${trunk.name}`,
        work: () => deleteTarget(db, row.id),
      })
      return { status: 204, revision: saved.trunk.revision, change: saved.change }
    },
  }),
]

const same = (a: TargetRow, b: TargetRow): boolean => a.sip_uri === b.sip_uri && a.transport === b.transport

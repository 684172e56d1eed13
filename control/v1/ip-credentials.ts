import { newId } from '../../core/runtime/ids.ts'
import {
  deleteSource,
  insertSources,
  listSources,
  type SourceRow,
  updateSource,
} from '../../core/state/configuration/trunks.ts'
import { invalid, isRefusal, notFound, refuse } from '../http/reply.ts'
import { Flag, Instant, Int32, input, listOf, optional, resource, type Static, Type } from '../http/schema.ts'
import { route } from './route.ts'
import { readCidr } from './sip-uri.ts'
import { settleSources } from './trunk-rules.ts'
import { CidrText, MAX_SOURCES, SourceStanding } from './trunk-schemas.ts'
import { privateRangeWarning, releasing, writeTrunk } from './trunk-writes.ts'

const IpCredential = resource('IpCredential', {
  id: Type.String(),
  cidr: Type.String(),
  enabled: Flag,
  selector_precedence: Int32,
  standing: SourceStanding,
  created_at: Instant,
})

const IpCredentialInput = input('IpCredentialInput', {
  cidr: CidrText,
  enabled: optional(Flag),
  selector_precedence: optional(Int32),
})

const present = (row: SourceRow): Static<typeof IpCredential> => ({
  id: row.id,
  cidr: row.cidr,
  enabled: row.enabled === 1,
  selector_precedence: row.selector_precedence,
  standing: row.standing,
  created_at: row.created_at,
})

const PATH = '/trunks/{trunk_id}/ip-credentials'

export const ipCredentials = [
  route({
    method: 'get',
    path: PATH,
    summary: 'List the addresses that a trunk accepts calls from',
    scope: 'service_configuration:read',
    replies: { 200: listOf(IpCredential) },
    async run({ db, trunk }) {
      const rows = await listSources(db, trunk.id)
      return { status: 200, revision: trunk.revision, body: { data: rows.map(present) } }
    },
  }),

  route({
    method: 'post',
    path: PATH,
    summary: 'Add a source address range; the trunk applies in the background',
    scope: 'service_configuration:write',
    if_match: 'trunk',
    idempotent: true,
    applies: true,
    audit: { kind: 'credentials', action: 'ip_credential.created', category: 'security' },
    body: IpCredentialInput,
    replies: { 201: IpCredential },
    refusals: ['trunk_releasing', 'source_conflict', 'source_of_carrier', 'resource_exists', 'limit_reached'],
    example: { cidr: '198.51.100.0/24', enabled: true, selector_precedence: 0 },
    async run({ db, trunk, body, now }) {
      const gone = releasing(trunk)
      if (gone) return gone
      const read = readCidr(body.cidr)
      if (!read.ok) return invalid('/cidr', read.why)
      const known = await listSources(db, trunk.id)
      if (known.some(source => source.cidr === read.value.cidr))
        return refuse('resource_exists', { value: `source ${read.value.cidr}` })
      if (known.length >= MAX_SOURCES) return refuse('limit_reached', { value: known.length, limit: MAX_SOURCES })
      const given: SourceRow = {
        id: newId.source(),
        trunk_id: trunk.id,
        cidr: read.value.cidr,
        enabled: body.enabled === false ? 0 : 1,
        selector_precedence: body.selector_precedence ?? 0,
        standing: 'full',
        created_at: now,
      }
      const judged = await settleSources(db, [given], trunk, { trunk, sources: known }, now)
      if (isRefusal(judged)) return judged
      const [row = given] = judged
      const saved = await writeTrunk(db, trunk, now, {
        summary: `Added source ${row.cidr} to trunk ${trunk.name}`,
        work: () => insertSources(db, [row]),
      })
      return {
        status: 201,
        revision: saved.trunk.revision,
        headers: privateRangeWarning(read.value.private ? [row.cidr] : []),
        body: present(row),
        change: saved.change,
      }
    },
  }),

  route({
    method: 'patch',
    path: `${PATH}/{credential_id}`,
    summary: 'Change a source address range; the trunk applies in the background',
    scope: 'service_configuration:write',
    if_match: 'trunk',
    applies: true,
    audit: { kind: 'credentials', action: 'ip_credential.updated', category: 'security' },
    body: IpCredentialInput,
    replies: { 200: IpCredential },
    refusals: ['trunk_releasing', 'source_conflict', 'source_of_carrier', 'resource_exists'],
    async run({ db, trunk, params, body, now }) {
      const gone = releasing(trunk)
      if (gone) return gone
      const known = await listSources(db, trunk.id)
      const row = known.find(source => source.id === params.credential_id)
      if (!row) return notFound(`IP credential ${params.credential_id.slice(0, 60)}`)
      const read = readCidr(body.cidr)
      if (!read.ok) return invalid('/cidr', read.why)
      if (known.some(source => source.id !== row.id && source.cidr === read.value.cidr))
        return refuse('resource_exists', { value: `source ${read.value.cidr}` })
      const given: SourceRow = {
        ...row,
        cidr: read.value.cidr,
        enabled: body.enabled === undefined ? row.enabled : body.enabled ? 1 : 0,
        selector_precedence: body.selector_precedence ?? row.selector_precedence,
      }
      const judged = await settleSources(db, [given], trunk, { trunk, sources: known }, now)
      if (isRefusal(judged)) return judged
      const [changed = given] = judged
      const { cidr, enabled, selector_precedence, standing } = changed
      const saved = await writeTrunk(db, trunk, now, {
        summary: `Changed source ${row.cidr} of trunk ${trunk.name}`,
        work: () => updateSource(db, row.id, { cidr, enabled, selector_precedence, standing }),
      })
      return {
        status: 200,
        revision: saved.trunk.revision,
        headers: privateRangeWarning(read.value.private ? [cidr] : []),
        body: present(changed),
        change: saved.change,
      }
    },
  }),

  route({
    method: 'delete',
    path: `${PATH}/{credential_id}`,
    summary: 'Remove a source address range; the trunk applies in the background',
    scope: 'service_configuration:write',
    if_match: 'trunk',
    applies: true,
    audit: { kind: 'credentials', action: 'ip_credential.deleted', category: 'security' },
    replies: { 204: null },
    refusals: ['trunk_releasing'],
    async run({ db, trunk, params, now }) {
      const gone = releasing(trunk)
      if (gone) return gone
      const row = (await listSources(db, trunk.id)).find(source => source.id === params.credential_id)
      if (!row) return notFound(`IP credential ${params.credential_id.slice(0, 60)}`)
      const saved = await writeTrunk(db, trunk, now, {
        summary: `Removed source ${row.cidr} from trunk ${trunk.name}`,
        work: () => deleteSource(db, row.id),
      })
      return { status: 204, revision: saved.trunk.revision, change: saved.change }
    },
  }),
]

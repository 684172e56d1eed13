import { newId } from '../../core/runtime/ids.ts'
import { type NumberRow, saveNumber } from '../../core/state/configuration/numbers.ts'
import { findBlock } from '../../core/state/configuration/subtrunks.ts'
import {
  countTrunks,
  insertCredential,
  insertSources,
  insertTargets,
  insertTrunk,
  listSources,
  listTrunks,
  type TargetRow,
  type TrunkRow,
  trunkReferences,
  updateSource,
} from '../../core/state/configuration/trunks.ts'
import type { Db, Trx } from '../../core/state/index.ts'
import { withoutScope } from '../http/access.ts'
import type { Caller } from '../http/caller.ts'
import { pageOf, pageQuery, readCursor } from '../http/paging.ts'
import { invalid, isRefusal, type Refusal, refuse } from '../http/reply.ts'
import { input, pageSchema, type Static, Type } from '../http/schema.ts'
import { attach } from './policy-attachments.ts'
import { route } from './route.ts'
import { seenNumbers } from './seen-numbers.ts'
import { policyToAttach } from './seen-policies.ts'
import { presentLoaded, presentSummaries, presentTrunk, trunkText } from './trunk-present.ts'
import { newCredential, newUsername, readSources, readTarget, settleSources } from './trunk-rules.ts'
import { CreateTrunkRequest, TrunkCreation, TrunkDetail, TrunkSummary, UpdateTrunkRequest } from './trunk-schemas.ts'
import { privateRangeWarning, releasing, trunkChange, writeTrunk } from './trunk-writes.ts'

/** The limits of a trunk that is created without any: large enough for a PBX, small enough to bound a mistake. */
const DEFAULT_LIMITS = { concurrency: 1000, cps: 100, max_call_duration_seconds: 14_400 }
const MAX_PAGE = 1000
/** The most trunks of a project: our OPTIONS go to every target of each. */
const MAX_TRUNKS = { live: 1000, sandbox: 200 } as const

const listRoute = route({
  method: 'get',
  path: '/trunks',
  summary: 'List the trunks of the project',
  restricted_keys: true,
  description: 'Every trunk, by name; with `limit`, page by page: `next_cursor` is there while there are more.',
  scope: 'service_configuration:read',
  query: Type.Object(pageQuery(MAX_PAGE), { additionalProperties: false }),
  replies: { 200: pageSchema(TrunkSummary) },
  async run({ db, project, caller, query }) {
    const position = readCursor(query.cursor, ['string', 'string'])
    if (isRefusal(position)) return position
    const limit = query.limit ?? (query.cursor === undefined ? null : MAX_PAGE)
    const rows = await listTrunks(db, project.id, {
      limit: limit === null ? null : limit + 1,
      ...(position ? { after: { name: position[0], id: position[1] } } : {}),
      subaccount_id: caller.subaccount_id,
    })
    const { shown, more } = pageOf(rows, limit ?? rows.length, row => [row.name, row.id])
    return { status: 200, body: { data: await presentSummaries(db, shown), ...more } }
  },
})

const createRoute = route({
  method: 'post',
  path: '/trunks',
  summary: 'Create a trunk; it is applied in the background',
  restricted_keys: true,
  description: 'The password of a digest trunk is in this answer alone.',
  scope: 'service_configuration:write',
  idempotent: true,
  applies: true,
  audit: { kind: 'trunks', action: 'trunk.created' },
  body: CreateTrunkRequest,
  replies: { 201: TrunkCreation },
  refusals: [
    'source_conflict',
    'source_of_carrier',
    'number_in_use',
    'scope_required',
    'role_forbidden',
    'limit_reached',
  ],
  for_replay: (body: Static<typeof TrunkCreation>) => ({ ...body, digest_password: null }),
  example: {
    name: 'Head office',
    direction: 'both',
    auth_mode: 'ip_allow_list',
    sources: ['203.0.113.10/32'],
    targets: [{ sip_uri: 'sip:203.0.113.10:5060', transport: 'udp', priority: 10, weight: 100 }],
    codecs: ['PCMA', 'PCMU'],
    media_security: 'rtp',
    require_tls: false,
    source_validation: 'relaxed',
    limits: { concurrency: 30, cps: 5, max_call_duration_seconds: 7200 },
  },
  async run({ db, project, caller, body, now, services }) {
    const trunk = newTrunk(body, { project_id: project.id, now, domain: services.settings.domain })
    const policy = body.outbound_policy_id
      ? await policyToAttach(db, caller, project.id, body.outbound_policy_id)
      : null
    if (policy === undefined) return invalid('/outbound_policy_id', 'is not a live policy of the project')
    const wrong = await wrongSubaccount(db, project.id, caller, trunk.subaccount_id)
    if (wrong) return wrong
    const blocks = await blocksToRoute(db, caller, project.id, body.number_block_ids ?? [])
    if (isRefusal(blocks)) return blocks
    const sources = readSources(body.sources, trunk.id, now)
    if (isRefusal(sources)) return sources
    const judged = await settleSources(db, sources.rows, trunk, null, now)
    if (isRefusal(judged)) return judged
    const targets: TargetRow[] = []
    for (const [at, given] of body.targets.entries()) {
      const target = readTarget(given, { pointer: `/targets/${at}`, trunk_id: trunk.id, now, ...services })
      if (isRefusal(target)) return target
      if (targets.some(other => other.sip_uri === target.sip_uri && other.transport === target.transport))
        return invalid(`/targets/${at}/sip_uri`, 'is there twice')
      targets.push(target)
    }
    const held = await countTrunks(db, project.id)
    const limit = MAX_TRUNKS[project.sandbox === 1 ? 'sandbox' : 'live']
    if (held >= limit) return refuse('limit_reached', { name: 'the project', value: `${held} trunks`, limit })
    await insertTrunk(db, trunk)
    await insertSources(db, judged)
    await insertTargets(db, targets)
    const names = { username: newUsername(), realm: services.settings.domain }
    const credential = trunk.auth_mode === 'digest' ? newCredential(trunk.id, names, now) : null
    if (credential) await insertCredential(db, credential.row)
    if (policy) await attach(db, policy, { type: 'trunk', id: trunk.id }, now)
    for (const number of blocks) await saveNumber(db, number, { route_kind: 'trunk', route_id: trunk.id }, now)
    const detail = await presentTrunk(db, trunk, now)
    return {
      status: 201,
      revision: trunk.revision,
      headers: { Location: `/v1/trunks/${trunk.id}`, ...privateRangeWarning(sources.private_ranges) },
      body: { digest_password: credential?.password ?? null, trunk: detail },
      change: trunkChange(`Created trunk ${trunk.name}`, null, detail),
    }
  },
})

const readRoute = route({
  method: 'get',
  path: '/trunks/{trunk_id}',
  summary: 'Read a trunk',
  scope: 'service_configuration:read',
  replies: { 200: TrunkDetail },
  async run({ trunk, now, services }) {
    return { status: 200, revision: trunk.revision, body: services.texts.at(trunk, now, trunkText) }
  },
})

const updateRoute = route({
  method: 'patch',
  path: '/trunks/{trunk_id}',
  summary: 'Save a trunk; it is applied in the background',
  description: 'Sources and targets have their own routes; a body that names them is refused.',
  scope: 'service_configuration:write',
  if_match: 'trunk',
  applies: true,
  audit: { kind: 'trunks', action: 'trunk.updated' },
  body: UpdateTrunkRequest,
  replies: { 200: TrunkDetail },
  refusals: ['trunk_releasing', 'source_conflict', 'source_of_carrier'],
  async run({ db, project, caller, trunk, body, now }) {
    const gone = releasing(trunk)
    if (gone) return gone
    const subaccount_id = body.subaccount_id === undefined ? trunk.subaccount_id : body.subaccount_id
    const wrong = await wrongSubaccount(db, project.id, caller, subaccount_id)
    if (wrong) return wrong
    const written = { ...trunk, auth_mode: body.auth_mode, subaccount_id }
    const work = await sourcesToJudge(db, trunk, written, now)
    if (isRefusal(work)) return work
    const saved = await writeTrunk(db, trunk, now, {
      summary: `Saved trunk ${body.name}`,
      changes: Object.assign(settingsOf(body), { subaccount_id }, body.limits),
      ...(work ? { work } : {}),
    })
    return { status: 200, revision: saved.trunk.revision, body: saved.detail, change: saved.change }
  },
})

const deleteRoute = route({
  method: 'delete',
  path: '/trunks/{trunk_id}',
  summary: 'Release a drained, unreferenced trunk',
  scope: 'service_configuration:write',
  if_match: 'trunk',
  idempotent: true,
  applies: true,
  audit: { kind: 'trunks', action: 'trunk.released' },
  body: input('ReleaseTrunkRequest', { confirm_name: Type.String({ maxLength: 240 }) }),
  replies: { 204: null },
  refusals: ['trunk_releasing', 'trunk_in_use', 'confirm_name_mismatch'],
  async run({ db, trunk, body, now }) {
    const gone = releasing(trunk)
    if (gone) return gone
    if (body.confirm_name !== trunk.name) return refuse('confirm_name_mismatch', { value: body.confirm_name })
    const references = await trunkReferences(db, trunk.id)
    if (references !== null) return refuse('trunk_in_use', { name: trunk.name, value: references })
    const saved = await writeTrunk(db, trunk, now, {
      summary: `Released trunk ${trunk.name}`,
      changes: { status: 'releasing' },
    })
    return { status: 204, revision: saved.trunk.revision, change: saved.change, wake: ['jobs'] as const }
  },
})

const admissionRoute = (action: 'suspend' | 'resume') => {
  const status = action === 'suspend' ? 'disabled' : 'enabled'
  return route({
    method: 'post',
    path: `/trunks/{trunk_id}/${action}`,
    summary: action === 'suspend' ? 'Stop admitting new calls on a trunk' : 'Admit new calls on a trunk again',
    scope: 'service_configuration:write',
    if_match: 'trunk',
    idempotent: true,
    applies: true,
    audit: { kind: 'trunks', action: `trunk.${action === 'suspend' ? 'suspended' : 'resumed'}` },
    replies: { 200: TrunkDetail },
    refusals: ['trunk_releasing'],
    async run({ db, trunk, now }) {
      const gone = releasing(trunk)
      if (gone) return gone
      if (trunk.status === status)
        return { status: 200, revision: trunk.revision, body: await presentLoaded(db, trunk, now), change: null }
      const summary = `${action === 'suspend' ? 'Suspended' : 'Resumed'} trunk ${trunk.name}`
      const saved = await writeTrunk(db, trunk, now, { summary, changes: { status } })
      return { status: 200, revision: saved.trunk.revision, body: saved.detail, change: saved.change }
    },
  })
}

export const trunks = [
  listRoute,
  createRoute,
  readRoute,
  updateRoute,
  deleteRoute,
  admissionRoute('suspend'),
  admissionRoute('resume'),
]

/** Judges the sources of a trunk like new ones when a write activates them or moves the trunk to another tenant. */
async function sourcesToJudge(db: Trx, trunk: TrunkRow, written: TrunkRow, now: string) {
  const begin = written.auth_mode === 'ip_allow_list' && trunk.auth_mode !== 'ip_allow_list'
  if (!begin && written.subaccount_id === trunk.subaccount_id) return null
  const sources = await listSources(db, trunk.id)
  const judged = await settleSources(db, sources, written, { trunk, sources }, now)
  if (isRefusal(judged)) return judged
  return async (): Promise<void> => {
    for (const { id, standing } of judged) await updateSource(db, id, { standing })
  }
}

const settingsOf = (body: Static<typeof UpdateTrunkRequest>) => ({
  name: body.name,
  direction: body.direction,
  auth_mode: body.auth_mode,
  require_tls: body.require_tls ? (1 as const) : (0 as const),
  source_validation: body.source_validation,
  media_security: body.media_security,
  codecs: JSON.stringify(body.codecs),
  ...(body.transfers === undefined ? {} : { transfers: body.transfers }),
})

/** Returns the numbers of whole blocks. Refuses a block with a number that is already routed or not held. */
async function blocksToRoute(
  db: Db,
  caller: Caller,
  project_id: string,
  block_ids: readonly string[],
): Promise<
  readonly NumberRow[] | Refusal<'validation_failed' | 'number_in_use' | 'scope_required' | 'role_forbidden'>
> {
  const numbers: NumberRow[] = []
  // Routing numbers requires the same scope here as on the number endpoints.
  const withheld = block_ids.length === 0 ? null : withoutScope(caller, 'numbers:manage')
  if (withheld) return withheld
  for (const [at, id] of block_ids.entries()) {
    const block = await findBlock(db, project_id, id)
    const seen = block && (await seenNumbers(db, caller, project_id, block))
    if (!seen) return invalid(`/number_block_ids/${at}`, 'is not a number block of the project')
    for (const number of seen) {
      if (number.status !== 'held') return refuse('number_in_use', { value: number.e164, limit: number.status })
      if (number.route_kind !== null) return refuse('number_in_use', { value: number.e164, limit: 'routed already' })
      numbers.push(number)
    }
  }
  return numbers
}

/** Refuses a subaccount outside the project. A restricted key must name its own subaccount. */
async function wrongSubaccount(db: Db, project_id: string, caller: Caller, subaccount_id: string | null) {
  if (caller.subaccount_id !== null && subaccount_id !== caller.subaccount_id)
    return invalid('/subaccount_id', 'is not the subaccount of this key')
  if (subaccount_id === null) return null
  const known = await db
    .selectFrom('subaccount')
    .select('id')
    .where('id', '=', subaccount_id)
    .where('project_id', '=', project_id)
    .executeTakeFirst()
  return known ? null : invalid('/subaccount_id', 'is not a subaccount of the project')
}

function newTrunk(
  body: Static<typeof CreateTrunkRequest>,
  facts: { readonly project_id: string; readonly now: string; readonly domain: string },
): TrunkRow {
  const id = newId.trunk()
  return {
    id,
    project_id: facts.project_id,
    subaccount_id: body.subaccount_id ?? null,
    status: 'enabled',
    transfers: 'consume',
    ...settingsOf(body),
    ...(body.limits ?? DEFAULT_LIMITS),
    signaling_fqdn: `${id.replace(/^trk_/, '')}.sip.${facts.domain}`,
    revision: 1,
    created_at: facts.now,
    updated_at: facts.now,
  }
}

import { CURRENCY } from '../../core/domain/rating/currency.ts'
import { iso } from '../../core/runtime/clock.ts'
import { type Applied, appliedFrom, NODE_SILENCE_MS } from '../../core/state/configuration/apply.ts'
import { type LoadedTrunk, readTrunk, type TrunkBelow } from '../../core/state/configuration/trunk-facts.ts'
import {
  NO_TRUNK_FIGURES,
  type TargetRow,
  type TrunkFigures,
  type TrunkNumbers,
  type TrunkRow,
  trunkFigures,
} from '../../core/state/configuration/trunks.ts'
import type { Db } from '../../core/state/index.ts'
import type { Static } from '../http/schema.ts'
import type { WrittenText } from '../http/written-texts.ts'
import type { TrunkCodec, TrunkDetail, TrunkSummary } from './trunk-schemas.ts'

type Summary = Static<typeof TrunkSummary>
type Detail = Static<typeof TrunkDetail>

/** Presents summaries of trunks. One set of queries serves all of them. */
export async function presentSummaries(db: Db, trunks: readonly TrunkRow[]): Promise<Summary[]> {
  const figures = await trunkFigures(
    db,
    trunks.map(trunk => trunk.id),
  )
  return trunks.map(trunk => summary(trunk, figures.get(trunk.id) ?? NO_TRUNK_FIGURES))
}

const summary = (trunk: TrunkRow, figures: TrunkFigures): Summary => ({
  id: trunk.id,
  project_id: trunk.project_id,
  name: trunk.name,
  status: trunk.status,
  direction: trunk.direction,
  revision: trunk.revision,
  concurrency_limit: trunk.concurrency,
  concurrency_used: figures.live_calls,
  cps: String(trunk.cps),
  currency: CURRENCY,
  daily_spend_cap_minor: figures.policy?.daily_spend_limit_minor ?? null,
  max_call_duration_seconds: trunk.max_call_duration_seconds,
  max_destination_rate_minor: figures.policy?.max_destination_rate_minor ?? null,
  numbers: figures.numbers,
  parent_name: null,
  signaling_fqdn: trunk.signaling_fqdn,
  subaccount_id: trunk.subaccount_id,
  subaccount_name: figures.subaccount_name,
  endpoints: {
    count: figures.targets,
    state: figures.targets === 0 ? 'none' : 'idle',
    silent: trunk.status === 'enabled' ? figures.targets_silent : 0,
  },
})

/** Loads a trunk for a route, with the facts to present it. They come with the same read. */
export const loadTrunk = (db: Db, project_id: string, id: string): Promise<LoadedTrunk | undefined> =>
  readTrunk(db, { id, project_id })

/** Presents a trunk and everything below it as loaded at the start of the route, before any write. */
export const presentLoaded = async (db: Db, trunk: TrunkRow | LoadedTrunk, now: string): Promise<Detail> =>
  isLoaded(trunk) ? detailOf(trunk, trunk, now) : presentTrunk(db, trunk, now)

const isLoaded = (trunk: TrunkRow | LoadedTrunk): trunk is LoadedTrunk => 'below' in trunk

const AS_OF = '"as_of":"'

/** Writes a loaded trunk as JSON. The text is true until the facts change or a node stops sending heartbeats. */
export function trunkText(trunk: LoadedTrunk, now: string): WrittenText {
  const text = JSON.stringify(detailOf(trunk, trunk, now))
  // The first match is the field: inside a string the quotes would be escaped.
  const at = text.indexOf(AS_OF) + AS_OF.length
  const oldest = livingReports(trunk.below, now).reduce(
    (least, { heartbeat_at }) => (heartbeat_at < least ? heartbeat_at : least),
    now,
  )
  return {
    before: text.slice(0, at),
    after: text.slice(at + now.length),
    until: iso(Date.parse(oldest) + NODE_SILENCE_MS),
  }
}

/** Presents a trunk after a write to its own columns; nothing below it may have changed. */
export async function presentSaved(
  db: Db,
  before: TrunkRow | LoadedTrunk,
  saved: TrunkRow,
  now: string,
): Promise<Detail> {
  const moved = before.subaccount_id !== saved.subaccount_id
  return isLoaded(before) && !moved ? detailOf(before, saved, now) : presentTrunk(db, saved, now)
}

/** Reads a trunk with everything below it, and presents it. */
export async function presentTrunk(db: Db, { id, project_id }: TrunkRow, now: string): Promise<Detail> {
  const trunk = await readTrunk(db, { id, project_id })
  if (!trunk) throw new Error(`trunk ${id} is not there`)
  return detailOf(trunk, trunk, now)
}

function livingReports({ reports }: TrunkBelow, now: string): TrunkBelow['reports'] {
  const alive_since_ms = Date.parse(now) - NODE_SILENCE_MS
  return reports.filter(({ heartbeat_at }) => Date.parse(heartbeat_at) >= alive_since_ms)
}

/** Presents the parts below a trunk that need no time and no column of it. */
const shownBelow = ({ sources, credentials, targets, policy, numbers }: TrunkBelow) => ({
  sources: sources.map(({ id, cidr, enabled, standing }) => ({ id, cidr, enabled: enabled === 1, standing })),
  digest_identities: credentials
    .filter(credential => credential.revoked_at === null)
    .map(({ enabled, realm, username }) => ({ enabled: enabled === 1, realm, username })),
  number_inventory: inventory(numbers),
  outbound_policy: policy && { id: policy.id, name: policy.name, revision: policy.revision },
  routes: targets.map(row => ({
    id: row.id,
    sip_uri: row.sip_uri,
    tls_fingerprint: row.tls_fingerprint,
    tls_verification: row.tls_verification,
    redirects: row.redirects,
    digest_username: row.digest_username,
    transport: row.transport,
    priority: row.priority,
    weight: row.weight,
    enabled: row.enabled === 1,
  })),
})

/** Presents a trunk. `trunk` is the loaded row or a newer version of it. */
function detailOf({ subaccount_name, below }: LoadedTrunk, trunk: TrunkRow, now: string): Detail {
  const { targets, live_calls, policy, numbers, evidence: seen } = below
  const { sources, digest_identities, number_inventory, outbound_policy, routes } = shownBelow(below)
  const degraded = new Set(seen.filter(({ state }) => state === 'degraded').map(({ target_id }) => target_id))
  const targets_silent = targets.filter(({ id, enabled }) => enabled === 1 && degraded.has(id)).length
  const counts = { live_calls, numbers: numbers.routed, targets: targets.length, targets_silent }
  const figures = { ...counts, subaccount_name, policy }
  // `Object.assign`, because an object literal that spreads these twenty fields takes a hundred times as long.
  return Object.assign(summary(trunk, figures), {
    as_of: now,
    authentication: {
      mode: trunk.auth_mode,
      require_tls: trunk.require_tls === 1,
      source_validation: trunk.source_validation,
      sources,
      digest_identities,
    },
    transfers: trunk.transfers,
    endpoint_evidence: targets.map(target =>
      evidence(
        trunk,
        target,
        seen.filter(row => row.target_id === target.id),
      ),
    ),
    limits: {
      concurrency: { configured: trunk.concurrency, unit: 'calls' },
      cps: { configured: trunk.cps, unit: 'calls_per_second' },
      max_call_duration: { configured: trunk.max_call_duration_seconds, unit: 'seconds' },
    },
    media: { codecs: JSON.parse(trunk.codecs) as Static<typeof TrunkCodec>[], security: trunk.media_security },
    number_inventory,
    outbound_policy,
    routes,
    apply: applyOf(appliedFrom(livingReports(below, now), trunk.revision), trunk.revision),
  })
}

const applyOf = (applied: Applied, desired_revision: number): Detail['apply'] => ({
  state: applied.state,
  desired_revision,
  effective_revision: applied.effective_revision,
  applied_at: applied.applied_at,
  error: applied.error,
})

const inventory = (numbers: TrunkNumbers): Detail['number_inventory'] => ({
  delegated: {
    count: numbers.delegated.reduce((sum, { count }) => sum + count, 0),
    to: numbers.delegated.length === 0 ? null : numbers.delegated.map(({ name }) => name).join(', '),
  },
  quarantined: { count: numbers.quarantined, until: numbers.quarantined_until },
  range: rangeOf(numbers.first, numbers.last),
  routed: numbers.routed,
})

const rangeOf = (first: string | null, last: string | null): string | null =>
  first === null || last === null ? null : first === last ? first : `${first} to ${last}`

/** Returns the worst probe result of a target over all nodes. Targets of a trunk that is not enabled are not probed. */
function evidence(
  trunk: TrunkRow,
  target: TargetRow,
  seen: TrunkBelow['evidence'],
): Detail['endpoint_evidence'][number] {
  const { sip_uri, priority } = target
  const [first] = [...seen].sort((a, b) => b.misses - a.misses)
  const last = first && {
    last_attempt_at: first.checked_at,
    // The code of a missed OPTIONS is our own SIP server's.
    last_result: { at: first.checked_at, code: first.misses > 0 ? NO_ANSWER : String(first.last_code) },
  }
  const probed = trunk.status === 'enabled' && target.enabled === 1
  if (!probed || !first)
    return {
      detail: probed ? 'No answer was seen yet.' : 'The target is not probed while it or its trunk is not enabled.',
      ...(last ?? { last_attempt_at: null, last_result: null }),
      priority,
      sip_uri,
      state: probed ? 'unknown' : 'idle',
    }
  return { detail: detailOfEvidence(first), ...(last ?? NEVER), priority, sip_uri, state: first.state }
}

const NEVER = { last_attempt_at: null, last_result: null }
const NO_ANSWER = 'no_answer'

function detailOfEvidence({ state, misses }: TrunkBelow['evidence'][number]): string {
  if (state === 'degraded') return 'The target missed two or more OPTIONS in a row; it is tried last.'
  if (misses === 0) return 'The target answers OPTIONS.'
  return state === 'healthy'
    ? 'The target left the last OPTIONS unanswered; another miss degrades it.'
    : 'The target left its first OPTIONS unanswered.'
}

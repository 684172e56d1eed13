import { appliedState } from '../../core/state/apply.ts'
import type { Db } from '../../core/state/index.ts'
import {
  listCredentials,
  listSources,
  listTargets,
  type TargetRow,
  type TrunkFigures,
  type TrunkNumbers,
  type TrunkRow,
  trunkFigures,
  trunkNumbers,
} from '../../core/state/trunks.ts'
import type { Static } from '../http/schema.ts'
import type { Codec, TrunkDetail, TrunkSummary } from './trunk-schemas.ts'

type Summary = Static<typeof TrunkSummary>
type Detail = Static<typeof TrunkDetail>

/** Summaries of trunks, with the reads that all of them share. */
export async function presentSummaries(db: Db, trunks: readonly TrunkRow[]): Promise<Summary[]> {
  const figures = await trunkFigures(
    db,
    trunks.map(trunk => trunk.id),
  )
  return trunks.map(trunk => summary(trunk, figures.get(trunk.id) ?? NO_FIGURES))
}

const NO_FIGURES: TrunkFigures = { live_calls: 0, numbers: 0, targets: 0 }

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
  currency: 'NGN',
  daily_spend_cap_minor: null,
  max_call_duration_seconds: trunk.max_call_duration_seconds,
  max_destination_rate_minor: null,
  numbers: figures.numbers,
  parent_name: null,
  signaling_fqdn: trunk.signaling_fqdn,
  subaccount_id: trunk.subaccount_id,
  subaccount_name: null,
  endpoints: { count: figures.targets, state: figures.targets === 0 ? 'none' : 'idle' },
})

/** A trunk with everything below it, as of now. */
export async function presentTrunk(db: Db, trunk: TrunkRow, now: string): Promise<Detail> {
  const sources = await listSources(db, trunk.id)
  const targets = await listTargets(db, trunk.id)
  const credentials = await listCredentials(db, trunk.id)
  const numbers = await trunkNumbers(db, trunk.id)
  const [shared] = await presentSummaries(db, [trunk])
  if (!shared) throw new Error('a trunk has a summary')
  const applied = await appliedState(db, trunk, Date.parse(now))
  return {
    ...shared,
    as_of: now,
    authentication: {
      mode: trunk.auth_mode,
      require_tls: trunk.require_tls === 1,
      source_validation: trunk.source_validation,
      sources: sources.map(({ id, cidr, enabled }) => ({ id, cidr, enabled: enabled === 1 })),
      digest_identities: credentials
        .filter(credential => credential.revoked_at === null)
        .map(({ enabled, realm, username }) => ({ enabled: enabled === 1, realm, username })),
    },
    endpoint_evidence: targets.map(target => evidence(trunk, target)),
    limits: {
      concurrency: { configured: trunk.concurrency, unit: 'calls' },
      cps: { configured: trunk.cps, unit: 'calls_per_second' },
      max_call_duration: { configured: trunk.max_call_duration_seconds, unit: 'seconds' },
    },
    media: { codecs: JSON.parse(trunk.codecs) as Static<typeof Codec>[], security: trunk.media_security },
    number_inventory: inventory(numbers),
    outbound_policy: null,
    routes: targets.map(({ id, sip_uri, transport, priority, weight, enabled }) => ({
      id,
      sip_uri,
      transport,
      priority,
      weight,
      enabled: enabled === 1,
    })),
    apply: {
      state: applied.state,
      desired_revision: trunk.revision,
      effective_revision: applied.effective_revision,
      applied_at: applied.applied_at,
      error: applied.error,
    },
  }
}

const inventory = (numbers: TrunkNumbers): Detail['number_inventory'] => ({
  delegated: { count: 0, to: null },
  quarantined: { count: numbers.quarantined, until: numbers.quarantined_until },
  range: rangeOf(numbers.first, numbers.last),
  routed: numbers.routed,
})

const rangeOf = (first: string | null, last: string | null): string | null =>
  first === null || last === null ? null : first === last ? first : `${first} to ${last}`

/** A target that nothing has been sent to yet; a trunk that is not enabled probes none. */
function evidence(trunk: TrunkRow, target: TargetRow): Detail['endpoint_evidence'][number] {
  const probed = trunk.status === 'enabled' && target.enabled === 1
  return {
    detail: probed ? 'No answer was seen yet.' : 'The target is not probed while it or its trunk is not enabled.',
    last_attempt_at: null,
    last_result: null,
    priority: target.priority,
    sip_uri: target.sip_uri,
    state: probed ? 'unknown' : 'idle',
  }
}

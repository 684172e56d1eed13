import { counted } from '../text/counted.ts'
import type { ApplyFacts, BalanceFacts, HealthFacts, ServiceTraffic, SourceSeen, SpendFacts } from './facts.ts'
import type {
  AlertEvidence,
  AlertFinding,
  AlertKind,
  AlertPolicy,
  AlertScope,
  AlertSeverity,
  Look,
  SubjectType,
} from './types.ts'

export type * from './facts.ts'

/** Evaluates alert conditions: pure functions of a policy and measured facts. Amounts are in minor units. */

export const alertKey = (kind: AlertKind, ...parts: readonly string[]): string => [kind, ...parts].join(':')

const amount = (minor: number, currency: string): string => `${currency} ${(minor / 100).toFixed(2)}`

const evidence = (label: string, item: Partial<AlertEvidence>): AlertEvidence => ({
  amount_minor: null,
  currency: null,
  held: false,
  label,
  note: null,
  text: null,
  ...item,
})
const money = (label: string, amount_minor: number, currency: string, held = false): AlertEvidence =>
  evidence(label, { amount_minor, currency, held })

interface Found {
  readonly findings: AlertFinding[]
  readonly well: Map<string, number>
}
const nothing = (): Found => ({ findings: [], well: new Map() })

/** Drops findings outside the policy's scope. */
const look = (
  policy: AlertPolicy,
  { findings, well }: Found,
  available = true,
  gone: readonly string[] = [],
): Look => ({
  kind: policy.kind,
  available,
  findings: policy.enabled ? findings.filter(finding => inScope(policy.scope, finding)) : [],
  well,
  gone: new Set(gone),
})

function inScope(scope: AlertScope, { subject, trunk_id }: AlertFinding): boolean {
  if (scope.id === null || scope.type === 'organization') return true
  return (subject.type === scope.type && subject.id === scope.id) || (scope.type === 'trunk' && trunk_id === scope.id)
}

/** A target that gives any answer is healthy, so the code of a degraded one is our own SIP server's. */
const gaveUp = (code: number | null): string =>
  code === null ? 'the keep-alive could not be sent' : `the SIP server gave up with ${code}`

/** `open` has the keys of alerts that have not ended. They resolve only at the resolution's amount. */
export function judgeBalance(policy: AlertPolicy, facts: BalanceFacts, open: ReadonlySet<string>): Look {
  const { account, currency } = facts
  const found = nothing()
  const floor = policy.threshold.amount_minor
  if (!account || floor === null) return look(policy, found)
  const key = alertKey('balance_low', account.id)
  const available = account.balance_minor - account.held_minor
  const bar = open.has(key) ? Math.max(floor, policy.resolution.amount_minor ?? floor) : floor
  if (available >= bar) return look(policy, found)
  found.findings.push({
    kind: 'balance_low',
    dedupe_key: key,
    severity: available <= 0 ? 'critical' : 'warning',
    subject: subject('account', account),
    trunk_id: null,
    reason: `The balance of ${account.name} is ${amount(available, currency)}, below ${amount(floor, currency)}.`,
    remediation: 'Top up the balance: at zero, calls that cost money are refused and those in progress end.',
    evidence: [
      money('Available', available, currency),
      money('Held by calls in progress', account.held_minor, currency, true),
      money('Threshold', floor, currency),
    ],
    suggested_actions: [{ href: '/v1/billing/balance', label: 'See the balance' }],
    version: null,
  })
  return look(policy, found)
}

export function judgeSpend(policy: AlertPolicy, facts: SpendFacts): Look {
  const found = nothing()
  const kind = policy.kind as 'spend_daily' | 'spend_monthly'
  const period = kind === 'spend_daily' ? 'today' : 'this month'
  for (const level of facts.levels) {
    const bar = barOf(policy, level)
    if (bar === null || level.spent_minor < bar) continue
    const { currency } = facts
    found.findings.push({
      kind,
      dedupe_key: alertKey(kind, level.id, facts.period),
      severity: level.cap_minor !== null && level.spent_minor >= level.cap_minor ? 'critical' : 'warning',
      subject: level.subject,
      trunk_id: level.subject.type === 'trunk' ? level.subject.id : null,
      reason: `${LEVEL_TITLES[level.level]}${level.name} spent ${amount(level.spent_minor, currency)} ${period}, at or above ${amount(bar, currency)}.`,
      remediation: 'Check which destinations the money went to; raise the cap or the threshold when it is all right.',
      evidence: [
        money(`Spent ${period}`, level.spent_minor, currency, true),
        money('Threshold', bar, currency),
        ...(level.cap_minor === null ? [] : [money('Daily cap', level.cap_minor, currency)]),
      ],
      suggested_actions: [{ href: '/v1/calls', label: 'See the calls' }],
      version: null,
    })
  }
  return look(policy, found)
}

const LEVEL_TITLES = {
  project: '',
  subaccount: 'Subaccount ',
  trunk: 'Trunk ',
  subtrunk: 'Subtrunk ',
  policy: 'Outbound policy ',
} as const

/** An amount applies to the whole project, or the policy's scope; a percentage applies to every level with a cap. */
function barOf(policy: AlertPolicy, { level, cap_minor }: SpendFacts['levels'][number]): number | null {
  const { amount_minor, percent } = policy.threshold
  if (amount_minor !== null && (level === 'project' || level === policy.scope.type)) return amount_minor
  return percent === null || cap_minor === null ? null : Math.ceil((cap_minor * Number(percent)) / 100)
}

export function judgeVelocity(policy: AlertPolicy, services: readonly ServiceTraffic[]): Look {
  const found = nothing()
  const { amount_minor, min_events } = policy.threshold
  const { platform_ceiling_minor: ceiling } = policy
  for (const service of services) {
    const over = amount_minor !== null && service.spend_minor >= amount_minor && service.calls >= (min_events ?? 1)
    const over_ceiling = ceiling !== null && service.ceiling_spend_minor >= ceiling
    if (!over && !over_ceiling) continue
    const { currency } = service
    const window_seconds = over_ceiling ? (policy.platform_ceiling_window_seconds ?? 0) : service.window_seconds
    const spent = over_ceiling ? service.ceiling_spend_minor : service.spend_minor
    const bar = over_ceiling ? (ceiling ?? 0) : (amount_minor ?? 0)
    const top = [...service.destinations].sort((a, b) => b.spend_minor - a.spend_minor)[0]
    found.findings.push({
      ...ofService('spend_velocity', service, 'critical'),
      reason: `${titleOf(service)} spent ${amount(spent, currency)} within ${span(window_seconds)}, at or above ${amount(bar, currency)}.`,
      remediation:
        'Look at the destinations. If the calls are not yours, rotate the credential, and ask for a containment.',
      evidence: [
        money(`Spent within ${span(window_seconds)}`, spent, currency, true),
        money('Held by calls in progress', service.held_minor, currency, true),
        money('Threshold', bar, currency),
        ...(top ? [evidence('Destination', { text: `+${top.rate_prefix} ${top.label}`, ...share(top, service) })] : []),
      ],
      suggested_actions: actionsOf(service),
    })
  }
  return look(policy, found)
}

const share = (top: { readonly calls: number; readonly spend_minor: number }, service: ServiceTraffic) => ({
  amount_minor: top.spend_minor,
  currency: service.currency,
  note: `${top.calls} of ${counted(service.calls, 'call')}`,
})

export function judgeFirstSeen(policy: AlertPolicy, services: readonly ServiceTraffic[], now: string): Look {
  const found = nothing()
  const bar = policy.threshold.amount_minor
  if (bar === null) return look(policy, found)
  for (const service of services)
    for (const group of service.destinations) {
      if (group.rate_minor_per_minute < bar || group.calls < (policy.threshold.min_events ?? 1)) continue
      if (!isNew(group, now)) continue
      const { currency } = service
      found.findings.push({
        ...ofService('first_seen_high_cost_destination', service, 'warning', group.rate_prefix),
        reason: `${titleOf(service)} calls +${group.rate_prefix} (${group.label}) for the first time, at ${amount(group.rate_minor_per_minute, currency)} a minute.`,
        remediation:
          'If nobody of yours calls there, deny the prefix in the outbound policy and rotate the credential.',
        evidence: [
          evidence('Destination', { text: `+${group.rate_prefix} ${group.label}`, note: counted(group.calls, 'call') }),
          money('Price of a minute', group.rate_minor_per_minute, currency),
          money('Spent', group.spend_minor, currency, group.held_minor > 0),
        ],
        suggested_actions: actionsOf(service),
      })
    }
  return look(policy, found)
}

/** A destination stays new for a day, because bursts rarely begin with the very first call. */
const NEW_FOR_MS = 24 * 3_600_000
export const isNew = (group: { readonly first_seen_at: string | null }, now: string): boolean =>
  group.first_seen_at === null || Date.parse(now) - Date.parse(group.first_seen_at) < NEW_FOR_MS

const guessed = (trunk: ServiceTraffic, { address }: SourceSeen, blocked_at: string): AlertFinding => ({
  ...ofTrunk('new_source_ip', trunk, 'warning', address),
  reason: `Somebody at ${address}, an address that had not been used before, guessed passwords of trunk ${trunk.name}. The address is blocked for a while.`,
  remediation: 'If the address is yours, correct its password. If not, the password held; choose a long one.',
  evidence: [evidence('Address', { text: address, note: `blocked ${blocked_at}` })],
  suggested_actions: [credentials(trunk)],
})

export function judgeNewSource(policy: AlertPolicy, trunks: readonly ServiceTraffic[]): Look {
  const found = nothing()
  for (const trunk of trunks)
    for (const source of trunk.new_sources) {
      if (source.blocked_at !== null && source.calls === 0) {
        found.findings.push(guessed(trunk, source, source.blocked_at))
        continue
      }
      if (source.calls < (policy.threshold.min_events ?? 1)) continue
      found.findings.push({
        ...ofTrunk('new_source_ip', trunk, source.spend_minor > 0 ? 'warning' : 'info', source.address),
        reason: `Trunk ${trunk.name} was used from ${source.address}, an address that it had not been used from before.`,
        remediation: 'If the address is not yours, rotate the credential and set source_validation to strict.',
        evidence: [
          evidence('Address', {
            text: source.address,
            note: `since ${source.first_seen_at}, ${counted(source.calls, 'call')}`,
          }),
          money('Spent from there', source.spend_minor, trunk.currency, true),
        ],
        suggested_actions: [credentials(trunk), calls(trunk)],
      })
    }
  return look(policy, found)
}

/** `open` has the keys of alerts that have not ended. */
export function judgeHealth(policy: AlertPolicy, facts: HealthFacts, open: ReadonlySet<string>): Look {
  const found = nothing()
  const watched = new Set<string>()
  for (const target of facts.targets) {
    const key = alertKey('endpoint_health', target.trunk.id, target.id)
    watched.add(key)
    if (target.state === 'healthy') found.well.set(key, Date.parse(target.checked_at))
    if (target.state !== 'degraded' || target.misses < (policy.threshold.min_events ?? 1)) continue
    const all = target.degraded_targets === target.enabled_targets
    found.findings.push({
      ...ofTrunk('endpoint_health', target.trunk, all ? 'critical' : 'warning', target.id),
      reason: `${target.name} of trunk ${target.trunk.name} left ${target.misses} keep-alives unanswered${all ? '; no other target of the trunk answers' : ''}.`,
      remediation:
        'Check that the peer runs, that its firewall lets our OPTIONS in, and that address and port are right.',
      evidence: [
        evidence('Target', { text: target.name }),
        evidence('Last answer', { text: `none (${gaveUp(target.last_code)})` }),
        evidence('Asked', { text: target.checked_at }),
      ],
      suggested_actions: [
        { href: `/v1/trunks/${target.trunk.id}/tests`, label: 'Run a configuration test' },
        { href: `/v1/trunks/${target.trunk.id}/termination-uris`, label: 'See the targets' },
      ],
      version: Date.parse(target.checked_at),
    })
  }
  for (const endpoint of facts.endpoints) {
    const key = alertKey('endpoint_health', endpoint.id)
    watched.add(key)
    const { delivered_at, failed_at, misses } = endpoint
    // A delivery that failed earlier may still wait, for up to an hour, while the endpoint takes newer ones.
    const answers = delivered_at !== null && (failed_at === null || delivered_at > failed_at)
    if (answers) found.well.set(key, Date.parse(delivered_at))
    else if (failed_at !== null && misses >= (policy.threshold.min_events ?? 1))
      found.findings.push(failing(endpoint, failed_at, key))
  }
  const gone = [...open].filter(key => !watched.has(key))
  return look(policy, found, facts.available, gone)
}

const failing = (endpoint: HealthFacts['endpoints'][number], failed_at: string, dedupe_key: string): AlertFinding => ({
  kind: 'endpoint_health',
  dedupe_key,
  severity: 'warning',
  subject: subject('webhook_endpoint', endpoint),
  trunk_id: null,
  reason: `Webhook endpoint ${endpoint.name} has not taken an event in ${counted(endpoint.misses, 'try', 'tries')}.`,
  remediation: 'Check that its server runs and answers with 2xx. Events wait for 24 hours, then they are given up.',
  evidence: [
    evidence('Last error', { text: endpoint.last_error ?? 'unknown' }),
    evidence('Waiting since', { text: endpoint.failing_since ?? failed_at }),
    evidence('Last event taken', { text: endpoint.delivered_at ?? 'never' }),
  ],
  suggested_actions: [{ href: `/v1/webhook-endpoints/${endpoint.id}/deliveries`, label: 'See the deliveries' }],
  version: Date.parse(failed_at),
})

/** `open` has the keys of alerts that have not ended. A source that is no longer overruled may have been removed. */
export function judgeApply(policy: AlertPolicy, facts: ApplyFacts, open: ReadonlySet<string>): Look {
  const found = nothing()
  found.findings.push(...facts.overruled.map(overruled))
  const still = new Set(found.findings.map(({ dedupe_key }) => dedupe_key))
  for (const trunk of facts.trunks) {
    const key = alertKey('trunk_apply_failed', trunk.id)
    if (!trunk.failed) {
      const of_sources = [...open].filter(other => other.startsWith(`${key}:`) && !still.has(other))
      for (const well of [key, ...of_sources]) found.well.set(well, trunk.effective_revision)
      continue
    }
    found.findings.push({
      ...ofTrunk('trunk_apply_failed', trunk, 'critical'),
      reason: `Revision ${trunk.revision} of trunk ${trunk.name} could not be applied; ${trunk.effective_revision === 0 ? 'no revision' : `revision ${trunk.effective_revision}`} runs.`,
      remediation: 'Correct what the error names and save the trunk again.',
      evidence: [
        evidence('Error', { text: trunk.error ?? 'unknown' }),
        evidence('Revision', { text: String(trunk.revision) }),
      ],
      suggested_actions: [{ href: `/v1/trunks/${trunk.id}`, label: 'See the trunk' }],
      version: trunk.revision,
    })
  }
  const watched = new Set(facts.trunks.map(({ id }) => id))
  const gone = [...open].filter(key => !still.has(key) && !watched.has(key.split(':')[1] ?? ''))
  return look(policy, found, facts.available, gone)
}

/** Names only the customer's own source, because the owner of the addresses is not the customer's business. */
const overruled = ({ id, cidr, trunk, signaling_fqdn }: ApplyFacts['overruled'][number]): AlertFinding => ({
  ...ofTrunk('trunk_apply_failed', trunk, 'critical', id),
  reason: `Source ${cidr} of trunk ${trunk.name} tells the trunk's calls by its name alone: the platform uses addresses of it.`,
  remediation: `Send calls to ${signaling_fqdn}, or name addresses that are yours alone, or use digest authentication.`,
  evidence: [evidence('Source', { text: cidr }), evidence('Revision', { text: String(trunk.revision) })],
  suggested_actions: [{ href: `/v1/trunks/${trunk.id}/ip-credentials`, label: 'See the sources' }],
  version: trunk.revision,
})

interface NamedThing {
  readonly id: string
  readonly name: string
}
const subject = (type: SubjectType, { id, name }: NamedThing) => ({ id, name, type })
const ofTrunk = (kind: AlertKind, trunk: NamedThing, severity: AlertSeverity, ...rest: readonly string[]) => ({
  kind,
  dedupe_key: alertKey(kind, trunk.id, ...rest),
  severity,
  subject: subject('trunk', trunk),
  trunk_id: trunk.id,
  version: null,
})

/** Returns the name of a service at the beginning of a sentence. */
export const titleOf = ({ trunk_id, name }: Pick<ServiceTraffic, 'trunk_id' | 'name'>): string =>
  trunk_id === null ? `The voice account of ${name}` : `Trunk ${name}`

export const subjectOf = (service: Pick<ServiceTraffic, 'id' | 'name' | 'trunk_id'>) =>
  subject(service.trunk_id === null ? 'account' : 'trunk', service)

/** Returns what a person may do about the traffic of a service. */
export const actionsOf = (service: Pick<ServiceTraffic, 'id' | 'name' | 'trunk_id'>) =>
  service.trunk_id === null
    ? [
        { href: '/v1/calls', label: 'See the calls' },
        { href: '/v1/voice-account', label: 'Rotate the auth token' },
      ]
    : [calls(service), credentials(service)]

const ofService = (kind: AlertKind, service: ServiceTraffic, severity: AlertSeverity, ...rest: readonly string[]) => ({
  ...ofTrunk(kind, service, severity, ...rest),
  subject: subjectOf(service),
  trunk_id: service.trunk_id,
})
const calls = ({ id }: NamedThing) => ({ href: `/v1/calls?trunk_id=${id}`, label: "See the trunk's calls" })
const credentials = ({ id }: NamedThing) => ({
  href: `/v1/trunks/${id}/digest-credentials`,
  label: 'Rotate the credential',
})
const span = (seconds: number): string =>
  seconds % 3600 === 0 ? `${seconds / 3600} h` : seconds % 60 === 0 ? `${seconds / 60} min` : `${seconds} s`

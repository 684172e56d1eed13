import {
  type AlertKind,
  type AlertPolicy,
  actionsOf,
  alertKey,
  judgeApply,
  judgeBalance,
  judgeFirstSeen,
  judgeHealth,
  judgeNewSource,
  judgeSpend,
  judgeVelocity,
  type Look,
  type ServiceTraffic,
  subjectOf,
  titleOf,
  transitions,
} from '../../core/domain/alerts/index.ts'
import { type FraudRules, propose, protectedBy } from '../../core/domain/fraud/index.ts'
import { dayOf } from '../../core/domain/rating/day.ts'
import { counted } from '../../core/domain/text/counted.ts'
import { iso } from '../../core/runtime/clock.ts'
import { applyFacts, balanceFacts, healthFacts, spendFacts } from '../../core/state/alerts/alert-facts.ts'
import { ensureAlertPolicies, listAlertPolicies, policyOfRow } from '../../core/state/alerts/alert-policies.ts'
import { answeredKeys, forgetOldAlerts, kindsOpen, openAlerts } from '../../core/state/alerts/alerts.ts'
import {
  noteSources,
  projectsWithTraffic,
  protectedFacts,
  recentTraffic,
  serviceSpend,
  trafficFacts,
} from '../../core/state/alerts/traffic-facts.ts'
import { overruledSources } from '../../core/state/configuration/sources.ts'
import type { ProjectRow } from '../../core/state/people/organizations.ts'
import type { Services } from '../http/services.ts'
import type { Reconciler } from '../reconcilers/reconciler.ts'
import { type AlertContext, applyTransition, fire } from './carry-out.ts'
import { containByItself } from './contain.ts'

type Policies = ReadonlyMap<AlertKind, AlertPolicy>
type Scene = AlertContext & {
  readonly policies: Policies
  /** Whether alerts of this kind were open before this run. Only this run opens others. */
  hasOpen(kind: AlertKind): boolean
}

/** Evaluates alerts about slowly changing state: balances, budgets, endpoint health, failed applies. */
export const alertEvaluation: Reconciler = {
  name: 'alerts',
  period_ms: 5000,
  runs: 'once',
  topics: ['jobs'],
  async run(services) {
    const overruled = await overruledSources(services.state.db)
    for (const scene of await scenes(services)) {
      await settle(scene, 'balance_low', async (policy, open) =>
        judgeBalance(policy, await balanceFacts(services.state.db, scene.project), open),
      )
      const spend = ({ scope }: AlertPolicy, monthly: boolean) =>
        spendFacts(services.state.db, scene.project, scene, { monthly, scope })
      await settle(scene, 'spend_daily', async policy => judgeSpend(policy, await spend(policy, false)))
      await settle(scene, 'spend_monthly', async policy => judgeSpend(policy, await spend(policy, true)))
      await settle(scene, 'endpoint_health', async (policy, open) => {
        const facts = await healthFacts(services.state.db, scene.project.id, scene.now_ms, subjectsOf(open))
        return judgeHealth(policy, facts, open)
      })
      await settle(scene, 'trunk_apply_failed', async (policy, open) => {
        const facts = await applyFacts(services.state.db, scene.project.id, scene.now_ms, subjectsOf(open))
        const of_project = overruled.filter(({ project_id }) => project_id === scene.project.id)
        return judgeApply(policy, { ...facts, overruled: of_project }, open)
      })
    }
    await forgetOldAlerts(services.state.db, services.clock.now())
  },
}

/** The ids of the subjects of alerts, by the alerts' keys (`alertKey`). */
const subjectsOf = (keys: ReadonlySet<string>): string[] => [...keys].map(key => key.split(':')[1] ?? '')

const CEILING_EVERY_MS = 15_000
/** How long a project without traffic and open alerts is not looked at. Its policies may change meanwhile. */
const QUIET_MS = 60_000
/** Traffic may be noted this much later than its time says: by a slow commit, or by the clock of another machine. */
const LATE_MS = 60_000

/**
 * Watches traffic every second: fires alerts about velocity, new destinations and new sources, and opens containments.
 * A prefix is closed within five seconds of the evidence. A look at a project takes ten reads, so projects where
 * nothing happens are left out until they have traffic.
 */
export function fraudWatch(): Reconciler {
  const ceilings: Reads['ceilings'] = new Map()
  /** Projects where the last look found something. */
  const loud = new Set<string>()
  /** When all projects are looked at again, on the monotonic clock. */
  let all_ms = Number.NEGATIVE_INFINITY
  let looked_ms = Number.POSITIVE_INFINITY
  return {
    name: 'fraud-watch',
    period_ms: 1000,
    runs: 'once',
    async run(services) {
      while (await noteSources(services.state));
      const now_ms = services.clock.now()
      const busy = await projectsWithTraffic(services.state.db, Math.min(looked_ms, now_ms) - LATE_MS)
      looked_ms = now_ms
      const steady_ms = services.clock.monotonic_ms()
      const all = steady_ms >= all_ms
      if (all) loud.clear()
      else if (busy.size === 0 && loud.size === 0) return
      const reads: Reads = { ceilings, recent: new Map() }
      for (const scene of await scenes(services, ({ id }) => all || busy.has(id) || loud.has(id)))
        if (await watch(services, scene, reads)) loud.delete(scene.project.id)
        else loud.add(scene.project.id)
      if (all) all_ms = steady_ms + QUIET_MS
    },
  }
}

/** What was read for all projects, by the length of the window. Projects whose policies agree share a read. */
interface Reads {
  readonly ceilings: Map<number, { readonly at_ms: number; readonly spend: Awaited<ReturnType<typeof serviceSpend>> }>
  /** Of one look. */
  readonly recent: Map<number, Awaited<ReturnType<typeof recentTraffic>>>
}

/** Judges the traffic of a project. Returns whether it has neither traffic nor alerts about it. */
async function watch(services: Services, scene: Scene, reads: Reads): Promise<boolean> {
  const velocity = scene.policies.get('spend_velocity')
  if (!velocity) return true
  const found = await traffic(services, scene, velocity, reads)
  const now = iso(scene.now_ms)
  const alerts =
    (await settle(scene, 'spend_velocity', async policy => judgeVelocity(policy, found))) +
    (await settle(scene, 'first_seen_high_cost_destination', async policy => judgeFirstSeen(policy, found, now))) +
    (await settle(scene, 'new_source_ip', async policy => judgeNewSource(policy, found)))
  if (found.length > 0 && (await contain(scene, found))) services.bus.ring('commands')
  return found.length === 0 && alerts === 0
}

async function traffic(
  { state, clock }: Services,
  { project, policies, now_ms, time_zone }: Scene,
  velocity: AlertPolicy,
  { ceilings, recent }: Reads,
): Promise<readonly ServiceTraffic[]> {
  const steady_ms = clock.monotonic_ms()
  const window_ms = (velocity.platform_ceiling_window_seconds ?? 3600) * 1000
  let ceiling = ceilings.get(window_ms)
  if (!ceiling || steady_ms - ceiling.at_ms > CEILING_EVERY_MS) {
    ceiling = { at_ms: steady_ms, spend: await serviceSpend(state.db, now_ms - window_ms) }
    ceilings.set(window_ms, ceiling)
  }
  const window_seconds = velocity.threshold.window_seconds ?? 300
  const groups = recent.get(window_seconds) ?? (await recentTraffic(state.db, now_ms - window_seconds * 1000))
  recent.set(window_seconds, groups)
  return trafficFacts(state, {
    project: { ...project, time_zone },
    window_seconds,
    recent: groups.get(project.id) ?? [],
    new_source_seconds: policies.get('new_source_ip')?.threshold.window_seconds ?? 3600,
    ceiling_spend: ceiling.spend.get(project.id) ?? new Map(),
    now_ms,
  })
}

/** Closes the prefixes that the fraud rules propose. Returns whether it closed any. */
async function contain(scene: Scene, found: readonly ServiceTraffic[]): Promise<boolean> {
  const rules = rulesOf(scene.policies)
  const now = iso(scene.now_ms)
  let facts: Awaited<ReturnType<typeof protectedFacts>> | null = null
  let closed = false
  for (const service of found) {
    const proposals = propose(service, rules, now)
    if (proposals.length === 0) continue
    facts ??= await protectedFacts(scene.state.db, scene.project.id)
    for (const proposal of proposals) {
      const policy = scene.policies.get(proposal.alert_kind)
      if (!policy?.enabled || protectedBy(proposal.prefix, facts) !== null) continue
      closed =
        (await scene.state.transaction(trx =>
          containByItself(trx, scene, service, proposal, async () => {
            const dedupe_key = alertKey(proposal.alert_kind, service.id, ...proposal.alert_key)
            return fire(trx, scene, policy, bare(service, proposal, dedupe_key))
          }),
        )) !== undefined || closed
    }
  }
  return closed
}

/** Returns the alert of a containment whose alert kind has not fired. It states what was closed and why. */
const bare = (
  service: ServiceTraffic,
  proposal: { readonly alert_kind: AlertKind; readonly reason_detail: string; readonly prefix: string },
  dedupe_key: string,
) => ({
  kind: proposal.alert_kind,
  dedupe_key,
  severity: 'critical' as const,
  subject: subjectOf(service),
  trunk_id: service.trunk_id,
  reason: `${titleOf(service)}: ${proposal.reason_detail}; +${proposal.prefix} is closed.`,
  remediation: 'If the calls are yours, ask for the release of the containment; if not, rotate the credential.',
  evidence: [
    {
      amount_minor: service.spend_minor,
      currency: service.currency,
      held: service.held_minor > 0,
      label: `Spent within ${service.window_seconds} s`,
      note: counted(service.calls, 'call'),
      text: null,
    },
  ],
  suggested_actions: actionsOf(service),
  version: null,
})

const DEAR_MINOR = 10_000

function rulesOf(policies: Policies): FraudRules {
  const velocity = policies.get('spend_velocity')
  const first_seen = policies.get('first_seen_high_cost_destination')
  const velocity_minor = velocity?.enabled ? velocity.threshold.amount_minor : null
  return {
    high_cost_minor: first_seen?.threshold.amount_minor ?? DEAR_MINOR,
    velocity_minor,
    velocity_min_calls: velocity?.threshold.min_events ?? 1,
    ceiling_minor: velocity?.platform_ceiling_minor ?? null,
    // A suspected stolen credential is contained at a tenth of the velocity threshold.
    compromise_minor: Math.ceil((velocity_minor ?? velocity?.platform_ceiling_minor ?? DEAR_MINOR) / 10),
  }
}

const ANSWERED_FOR_MS = 24 * 3_600_000
const NONE: ReadonlySet<string> = new Set()

/**
 * Evaluates one alert kind of a project and carries out the transitions. Returns how many alerts were open and how many
 * transitions there were.
 */
async function settle(
  scene: Scene,
  kind: AlertKind,
  see: (policy: AlertPolicy, open: ReadonlySet<string>) => Promise<Look>,
): Promise<number> {
  const policy = scene.policies.get(kind)
  if (!policy) return 0
  const open = scene.hasOpen(kind) ? await openAlerts(scene.state.db, scene.project.id, kind) : []
  const look = await see(policy, new Set(open.map(alert => alert.dedupe_key)))
  const calendar = {
    now: iso(scene.now_ms),
    day: (instant: string) => dayOf(Date.parse(instant), scene.time_zone),
  }
  const since = iso(scene.now_ms - ANSWERED_FOR_MS)
  const answered = look.findings.length === 0 ? NONE : await answeredKeys(scene.state.db, scene.project.id, kind, since)
  const steps = transitions(look, open, calendar, answered)
  for (const step of steps) await applyTransition(scene, policy, step)
  return open.length + steps.length
}

/** Loads every active project, or those that are wanted, with the policies of its organization. */
async function scenes(
  { state, clock, settings }: Services,
  isWanted?: (project: ProjectRow) => boolean,
): Promise<Scene[]> {
  const now_ms = clock.now()
  const active: ProjectRow[] = await state.db
    .selectFrom('project')
    .selectAll()
    .where('status', '=', 'active')
    .limit(10_000)
    .execute()
  const projects = isWanted ? active.filter(isWanted) : active
  if (isWanted && projects.length === 0) return []
  const owners = new Set(projects.map(project => project.organization_id))
  const organizations = await state.db.selectFrom('organization').selectAll().execute()
  const open = await kindsOpen(state.db)
  const found: Scene[] = []
  for (const organization of organizations) {
    if (isWanted && !owners.has(organization.id)) continue
    let rows = await listAlertPolicies(state.db, organization.id)
    if (rows.length === 0) {
      await state.transaction(trx => ensureAlertPolicies(trx, organization, iso(now_ms)))
      rows = await listAlertPolicies(state.db, organization.id)
    }
    const policies = new Map(rows.map(row => [row.kind, policyOfRow(row)]))
    for (const project of projects.filter(project => project.organization_id === organization.id))
      found.push({
        state,
        project,
        policies,
        time_zone: organization.time_zone,
        now_ms,
        base_url: settings.base_url,
        hasOpen: kind => open.get(project.id)?.has(kind) ?? false,
      })
  }
  return found
}

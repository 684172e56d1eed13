import {
  type Figures,
  meanMos,
  pddQuantile,
  stepOf,
  sumOfFigures,
  WINDOW_HOURS,
  windowBegin,
} from '../../core/domain/metrics/index.ts'
import { dayOf } from '../../core/domain/rating/index.ts'
import { iso } from '../../core/runtime/clock.ts'
import { type FailureStep, failureSteps, figureSteps, type Subject } from '../../core/state/calls/call-steps.ts'
import { countLiveCalls, spentOn, takenNow } from '../../core/state/calls/counters.ts'
import { loadSteps } from '../../core/state/calls/load-steps.ts'
import { callsNow, liveCallsOf } from '../../core/state/calls/project-steps.ts'
import { findCeilings } from '../../core/state/configuration/settings.ts'
import { findTrunk, trunkFigures } from '../../core/state/configuration/trunks.ts'
import { findApplication } from '../../core/state/configuration/voice-applications.ts'
import type { Db } from '../../core/state/index.ts'
import { findOrganization } from '../../core/state/people/organizations.ts'
import { findSubaccount } from '../../core/state/people/subaccounts.ts'
import { invalid, isRefusal, notFound } from '../http/reply.ts'
import {
  Count64,
  described,
  Instant,
  Int32,
  Int64,
  list,
  nullable,
  oneOf,
  optional,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'
import { route } from './route.ts'

const DEFAULT_WINDOW = '24h'
const P95 = 0.95
const Id = Type.String({ minLength: 1, maxLength: 64 })

const figureFields = {
  acd_seconds: nullable(Count64, { description: 'Mean duration of the answered calls (ACD)' }),
  answered: Count64,
  attempts: Count64,
  mos: nullable(Type.Number(), { description: 'Mean over all legs' }),
  pdd_p95_ms: nullable(Count64, {
    description: 'What 95 of 100 post-dial delays do not exceed, estimated from counts by size',
  }),
}

const Failures = list(resource('FailedCalls', { calls: Count64, reason: Type.String() }))

const CallSeries = resource('CallSeries', {
  as_of: Instant,
  ceilings: resource('SeriesCeilings', {
    concurrency: nullable(Int32),
    cps: nullable(Int32),
    daily_spend_cap_minor: nullable(Int64, { description: 'Of a trunk, that of its policy' }),
  }),
  failures: described(Failures, 'Why calls failed, the most frequent reason first'),
  now: resource('SeriesNow', {
    calls_last_second: nullable(Count64, { description: 'Counted where a ceiling of calls per second is set' }),
    live_calls: Count64,
    spend_today_minor: nullable(Int64, { description: 'Settled and held, against the cap; null for an application' }),
  }),
  series: list(
    resource('CallSeriesStep', {
      ...figureFields,
      at: Instant,
      concurrent_calls_max: Type.Integer({ minimum: 0, description: 'The most calls at once that a sample found' }),
      failures: Failures,
    }),
  ),
  step_seconds: Int32,
  subject: resource('SeriesSubject', {
    id: Type.String(),
    kind: oneOf('project', 'subaccount', 'trunk', 'application'),
  }),
  total: resource('CallSeriesTotal', figureFields),
  window_hours: Int32,
})
type Ceilings = Static<typeof CallSeries>['ceilings']

/** What a subject may use, and where its spend is counted. */
interface Limited {
  readonly subject: Subject
  readonly ceilings: Ceilings
  readonly spends: { readonly level: 'project' | 'subaccount' | 'trunk' | 'policy'; readonly id: string } | null
}

const NO_CEILINGS: Ceilings = { concurrency: null, cps: null, daily_spend_cap_minor: null }

async function ofProject(db: Db, id: string): Promise<Limited> {
  const { concurrency = null, cps = null, daily_spend_cap_minor = null } = (await findCeilings(db, id)) ?? {}
  return {
    subject: { kind: 'project', id },
    ceilings: { concurrency, cps, daily_spend_cap_minor },
    spends: { level: 'project', id },
  }
}

/** The parts of a project that have figures of their own, by the parameter that names one. Each is of the project. */
const PARTS = {
  async trunk_id(db: Db, project_id: string, id: string): Promise<Limited | undefined> {
    const trunk = await findTrunk(db, project_id, id)
    if (!trunk) return undefined
    const policy = (await trunkFigures(db, [id])).get(id)?.policy ?? null
    const daily_spend_cap_minor = policy?.daily_spend_limit_minor ?? null
    return {
      subject: { kind: 'trunk', id },
      ceilings: { concurrency: trunk.concurrency, cps: trunk.cps, daily_spend_cap_minor },
      spends: policy && daily_spend_cap_minor !== null ? { level: 'policy', id: policy.id } : { level: 'trunk', id },
    }
  },
  async subaccount_id(db: Db, project_id: string, id: string): Promise<Limited | undefined> {
    const found = await findSubaccount(db, project_id, id)
    if (!found) return undefined
    const { max_concurrent: concurrency, max_cps: cps, daily_spend_cap_minor } = found
    return {
      subject: { kind: 'subaccount', id },
      ceilings: { concurrency, cps, daily_spend_cap_minor },
      spends: { level: 'subaccount', id },
    }
  },
  async application_id(db: Db, project_id: string, id: string): Promise<Limited | undefined> {
    const found = await findApplication(db, project_id, id)
    return found && { subject: { kind: 'application', id }, ceilings: NO_CEILINGS, spends: null }
  },
}
type PartName = keyof typeof PARTS
const PART_NAMES: readonly PartName[] = ['trunk_id', 'subaccount_id', 'application_id']

async function subjectOf(db: Db, project_id: string, query: { readonly [N in PartName]?: string | undefined }) {
  const [name, ...others] = PART_NAMES.filter(part => query[part] !== undefined)
  if (others[0] !== undefined) return invalid(others[0], `is given beside ${name}`)
  if (name === undefined) return ofProject(db, project_id)
  const id = query[name] ?? ''
  return (await PARTS[name](db, project_id, id)) ?? notFound(`${name.replace('_id', '')} ${id}`)
}

const shown = (figures: Figures) => ({
  acd_seconds: figures.answered === 0 ? null : Math.round(figures.answered_seconds / figures.answered),
  answered: figures.answered,
  attempts: figures.attempts,
  mos: meanMos(figures),
  pdd_p95_ms: pddQuantile(figures, P95),
})

/** Sums failures by reason, the most frequent first. */
function sumByReason(failures: readonly FailureStep[]): Static<typeof Failures> {
  const sums = new Map<string, number>()
  for (const { platform_reason, calls } of failures) sums.set(platform_reason, (sums.get(platform_reason) ?? 0) + calls)
  return [...sums]
    .map(([reason, calls]) => ({ reason, calls }))
    .sort((a, b) => b.calls - a.calls || a.reason.localeCompare(b.reason))
}

async function nowOf(db: Db, { subject, spends, ceilings }: Limited, day: string, now_ms: number) {
  const { kind, id } = subject
  const live_calls =
    kind === 'project'
      ? (await callsNow(db, id, now_ms)).live
      : kind === 'application'
        ? await liveCallsOf(db, id)
        : ((await countLiveCalls(db, kind, [id])).get(id) ?? 0)
  return {
    calls_last_second: ceilings.cps === null || kind === 'application' ? null : await takenNow(db, kind, id, now_ms),
    live_calls,
    spend_today_minor: spends === null ? null : await spentOn(db, spends.level, spends.id, day),
  }
}

export const series = [
  route({
    method: 'get',
    path: '/metrics/series',
    summary: 'Calls over time of the project, or of one trunk, subaccount or application',
    description:
      'A call counts in the step in which it ended: minutes for 1h, hours for the others (UTC); steps without a call are zero. Test calls are left out. Calls at once are sampled every 5 seconds. Beside them: the ceilings, and what is used of them now.',
    scope: 'call_diagnostics:read',
    query: Type.Object(
      {
        window: optional(oneOf('1h', '24h', '7d', '30d')),
        trunk_id: optional(Id),
        subaccount_id: optional(Id),
        application_id: optional(Id),
      },
      { additionalProperties: false },
    ),
    replies: { 200: CallSeries },
    async run({ db, project, query: { window = DEFAULT_WINDOW, ...parts }, now, services }) {
      const limited = await subjectOf(db, project.id, parts)
      if (isRefusal(limited)) return limited
      const { subject, ceilings } = limited
      const now_ms = services.clock.now()
      const zone = (await findOrganization(db, project.organization_id))?.time_zone ?? 'UTC'
      const current = await nowOf(db, limited, dayOf(now_ms, zone), now_ms)
      const figures = await figureSteps(db, subject, window, now_ms)
      const found = new Map(figures.map(step => [step.begin_ms, step.figures]))
      const load = new Map((await loadSteps(db, subject.id, window, now_ms)).map(step => [step.begin_ms, step]))
      const failed = await failureSteps(db, subject, window, now_ms)
      const failed_at = new Map<number, FailureStep[]>()
      for (const step of failed) failed_at.set(step.begin_ms, [...(failed_at.get(step.begin_ms) ?? []), step])
      const step_ms = stepOf(window)
      const steps = []
      for (let at = windowBegin(now_ms, window); at <= now_ms; at += step_ms) {
        const most = load.get(at)?.most_calls ?? 0
        const failures = sumByReason(failed_at.get(at) ?? [])
        steps.push({
          ...shown(found.get(at) ?? sumOfFigures([])),
          at: iso(at),
          // A call that began after the last sample counts too.
          concurrent_calls_max: at + step_ms > now_ms ? Math.max(most, current.live_calls) : most,
          failures,
        })
      }
      return {
        status: 200,
        body: {
          as_of: now,
          ceilings,
          failures: sumByReason(failed),
          now: current,
          series: steps,
          step_seconds: step_ms / 1000,
          subject,
          total: shown(sumOfFigures(figures.map(step => step.figures))),
          window_hours: WINDOW_HOURS[window],
        },
      }
    },
  }),
]

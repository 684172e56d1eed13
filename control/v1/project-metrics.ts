import { stepOf, WINDOW_HOURS, windowBegin } from '../../core/domain/metrics/index.ts'
import { dayOf } from '../../core/domain/rating/index.ts'
import { iso } from '../../core/runtime/clock.ts'
import { figureSteps } from '../../core/state/calls/call-steps.ts'
import { spentOn } from '../../core/state/calls/counters.ts'
import { loadSteps } from '../../core/state/calls/load-steps.ts'
import { callsNow, nodesSeen, stateOfNode } from '../../core/state/calls/project-steps.ts'
import { listPolicies } from '../../core/state/configuration/policies.ts'
import type { Db } from '../../core/state/index.ts'
import { findOrganization } from '../../core/state/people/organizations.ts'
import { Count64, Instant, Int32, Int64, list, oneOf, optional, resource, Type } from '../http/schema.ts'
import { route } from './route.ts'

const DEFAULT_WINDOW = '24h'
const MINUTE_MS = 60_000

const ProjectMetrics = resource('ProjectMetrics', {
  answered: Count64,
  as_of: Instant,
  attempts: Count64,
  nodes: list(
    resource('NodeHealth', {
      heartbeat_at: Instant,
      id: Type.String(),
      kind: Type.String(),
      state: oneOf('up', 'draining', 'lost'),
    }),
  ),
  now: resource('ProjectNow', {
    calls_last_minute: Count64,
    live_calls: Count64,
    spend_caps: list(
      resource('SpendCap', {
        cap_minor: Int64,
        kind: oneOf('outbound_policy'),
        name: Type.String(),
        used_minor: Int64,
      }),
    ),
    spend_today_minor: Int64,
  }),
  series: list(
    resource('ProjectStep', {
      answered: Count64,
      at: Instant,
      attempts: Count64,
      concurrent_calls_max: Type.Integer({ minimum: 0, description: 'The most calls at once that a sample found.' }),
      concurrent_calls_mean: Type.Number({ minimum: 0, description: 'Mean of calls at once, over the whole step.' }),
    }),
  ),
  step_seconds: Int32,
  window_hours: Int32,
})

/** Returns today's spent and reserved money for each policy with a daily cap. */
async function spendCaps(db: Db, project_id: string, day: string) {
  const caps: { kind: 'outbound_policy'; name: string; used_minor: number; cap_minor: number }[] = []
  for (const policy of await listPolicies(db, project_id)) {
    const cap_minor = policy.daily_spend_limit_minor
    if (cap_minor === null) continue
    const used_minor = await spentOn(db, 'policy', policy.id, day)
    caps.push({ kind: 'outbound_policy', name: policy.name, used_minor, cap_minor })
  }
  return caps
}

export const projectMetrics = [
  route({
    method: 'get',
    path: '/metrics',
    summary: "The project at this moment, and its calls over a window's steps",
    description:
      'A call counts in the step in which it ended: minutes for 1h, hours for the others (UTC); steps without a call are zero. Test calls are left out. Calls at once are sampled every 5 seconds and include running calls. `spend_today_minor` is settled and held.',
    scope: 'live_calls:read',
    query: Type.Object({ window: optional(oneOf('1h', '24h', '7d', '30d')) }, { additionalProperties: false }),
    replies: { 200: ProjectMetrics },
    async run({ db, project, query: { window = DEFAULT_WINDOW }, now, services }) {
      const now_ms = services.clock.now()
      const zone = (await findOrganization(db, project.organization_id))?.time_zone ?? 'UTC'
      const day = dayOf(now_ms, zone)
      const step_ms = stepOf(window)
      const steps = await figureSteps(db, { kind: 'project', id: project.id }, window, now_ms)
      const found = new Map(steps.map(step => [step.begin_ms, step.figures]))
      const load = new Map((await loadSteps(db, project.id, window, now_ms)).map(step => [step.begin_ms, step]))
      const { live, recent } = await callsNow(db, project.id, now_ms - MINUTE_MS)
      const series = []
      for (let at = windowBegin(now_ms, window); at <= now_ms; at += step_ms) {
        const step = found.get(at)
        const { most_calls = 0, call_ms = 0 } = load.get(at) ?? {}
        const lasted_ms = Math.max(1000, Math.min(step_ms, now_ms - at))
        series.push({
          answered: step?.answered ?? 0,
          at: iso(at),
          attempts: step?.attempts ?? 0,
          // A call that began after the last sample counts too.
          concurrent_calls_max: at + step_ms > now_ms ? Math.max(most_calls, live) : most_calls,
          concurrent_calls_mean: Math.min(most_calls, Math.round((10 * call_ms) / lasted_ms) / 10),
        })
      }
      const nodes = (await nodesSeen(db)).map(node => ({
        id: node.id,
        kind: node.kind,
        heartbeat_at: node.heartbeat_at,
        state: stateOfNode(node, now_ms),
      }))
      return {
        status: 200,
        body: {
          answered: series.reduce((sum, step) => sum + step.answered, 0),
          as_of: now,
          attempts: series.reduce((sum, step) => sum + step.attempts, 0),
          nodes,
          now: {
            calls_last_minute: recent,
            live_calls: live,
            spend_caps: await spendCaps(db, project.id, day),
            spend_today_minor: await spentOn(db, 'project', project.id, day),
          },
          series,
          step_seconds: step_ms / 1000,
          window_hours: WINDOW_HOURS[window],
        },
      }
    },
  }),
]

import type { Context } from 'koa'
import { iso } from '../../core/runtime/clock.ts'
import { collectMetrics } from '../../core/runtime/metrics.ts'
import type { NodeTable } from '../../core/state/index.ts'
import type { Services } from './services.ts'

/** Signaling writes its heartbeats every 2 s; one that is older than three of them means that the thing is down. */
const FRESH_MS = 6000
const NEEDED: readonly NodeTable['kind'][] = ['signaling', 'edge', 'media']

export interface Readiness {
  readonly ready: boolean
  readonly checks: Readonly<Record<string, boolean>>
}

/**
 * Whether calls can be placed: signaling runs and is not draining, its edge link and the media worker are up, and the
 * state can be written.
 */
export async function readiness({ state, clock, log }: Services): Promise<Readiness> {
  const state_writable = await state.probe().then(
    () => true,
    err => {
      log.error({ err }, 'the state cannot be written')
      return false
    },
  )
  const fresh = await freshKinds({ state, clock }).catch(() => new Set<string>())
  const checks = { state_writable, ...Object.fromEntries(NEEDED.map(kind => [kind, fresh.has(kind)])) }
  return { ready: Object.values(checks).every(Boolean), checks }
}

async function freshKinds({ state, clock }: Pick<Services, 'state' | 'clock'>): Promise<Set<string>> {
  const rows = await state.db
    .selectFrom('node')
    .select('kind')
    .where('heartbeat_at', '>=', iso(clock.now() - FRESH_MS))
    .where('draining_at', 'is', null)
    .execute()
  return new Set(rows.map(row => row.kind))
}

type Page = (ctx: Context) => Promise<void> | void

/** The pages that tools watch. */
export const healthPages = (services: Services): Readonly<Record<string, Page>> => ({
  '/healthz': ctx => {
    ctx.body = { status: 'up' }
  },
  '/readyz': async ctx => {
    const { ready, checks } = await readiness(services)
    ctx.status = ready ? 200 : 503
    ctx.body = { status: ready ? 'ready' : 'not_ready', checks }
  },
  '/metrics': async ctx => {
    ctx.type = 'text/plain; version=0.0.4; charset=utf-8'
    ctx.body = await collectMetrics(services.settings.run_dir)
  },
})

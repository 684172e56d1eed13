import type { IncomingMessage } from 'node:http'
import type { Context } from 'koa'
import { ALL_ROLES, processesOf } from '../../core/domain/machines/roles.ts'
import { iso } from '../../core/runtime/clock.ts'
import { machineOf } from '../../core/runtime/machine.ts'
import { collectMetrics } from '../../core/runtime/metrics.ts'
import { PROOF, proofOfKey, sameSecret } from '../../core/runtime/secrets.ts'
import type { NodeTable } from '../../core/state/index.ts'
import { addressGroup, isLocal } from './address.ts'
import { createRateLimiter, type RateLimit } from './rate-limit.ts'
import { Refused, refuse } from './reply.ts'
import type { Services } from './services.ts'

/** Signaling writes heartbeats every 2 s. A component without one for three periods counts as down. */
const FRESH_MS = 6000
const NEEDED: readonly NodeTable['kind'][] = ['signaling', 'edge', 'media']

interface Readiness {
  readonly ready: boolean
  readonly checks: Readonly<Record<string, boolean>>
}

/**
 * Reports whether calls can be placed: signaling runs and is not draining, its link to the edge and the media worker
 * are up, and the state is writable. With a machine, its own processes must do what its roles say, and those of any
 * machine the rest.
 */
async function readiness(services: Services, machine_id?: string): Promise<Readiness> {
  const { state, clock, log, settings } = services
  const state_writable = await state.probe().then(
    () => true,
    err => {
      log.error({ err }, 'the state cannot be written')
      return false
    },
  )
  const of = (id?: string) => freshKinds({ state, clock }, id).catch(() => new Set<string>())
  const anywhere = await of()
  const here = machine_id === undefined ? anywhere : await of(machine_id)
  // What this machine leaves to others, any of them may do.
  const own = new Set<string>(processesOf(settings.roles ?? ALL_ROLES))
  const checks = {
    state_writable,
    ...Object.fromEntries(NEEDED.map(kind => [kind, (own.has(kind) ? here : anywhere).has(kind)])),
  }
  return { ready: Object.values(checks).every(Boolean), checks }
}

async function freshKinds(
  { state, clock }: Pick<Services, 'state' | 'clock'>,
  machine_id: string | undefined,
): Promise<Set<string>> {
  const rows = await state.db
    .selectFrom('node')
    .select('kind')
    .where('heartbeat_at', '>=', iso(clock.now() - FRESH_MS))
    .where('draining_at', 'is', null)
    .$if(machine_id !== undefined, query => query.where('machine_id', '=', machine_id ?? ''))
    .execute()
  return new Set(rows.map(row => row.kind))
}

/** Limits readiness checks from one address, because each writes to the state. */
const READINESS: RateLimit = { burst: 20, per_second: 2 }

type Page = (ctx: Context) => Promise<void> | void

/** Returns the pages that monitoring tools poll. */
export function healthPages(services: Services): Readonly<Record<string, Page>> {
  const { clock, settings } = services
  const limiter = createRateLimiter(READINESS)
  const ready =
    (machine_id?: () => string): Page =>
    async ctx => {
      const { allowed, headers } = limiter.take(addressGroup(ctx.req), clock.monotonic_ms(), clock.now())
      if (!allowed) throw new Refused(refuse('rate_limited', { value: 'of requests from this address' }, { headers }))
      const { ready, checks } = await readiness(services, machine_id?.())
      ctx.status = ready ? 200 : 503
      ctx.body = { status: ready ? 'ready' : 'not_ready', checks }
    }
  return {
    '/healthz': ctx => {
      // A command of this machine asks whose platform it reached before it sends a token.
      const challenge = ctx.get(PROOF.asked)
      if (/^[0-9a-f]{64}$/.test(challenge)) ctx.set(PROOF.given, proofOfKey(settings.master_key, challenge))
      ctx.body = { status: 'up' }
    },
    '/readyz': ready(),
    '/readyz/machine': ready(() => machineOf(settings.data_dir).machine_id),
    '/metrics': async ctx => {
      if (!isLocal(ctx.req) && !hasToken(ctx.req, settings.metrics_token)) {
        const headers = { 'WWW-Authenticate': 'Bearer realm="strowger metrics"' }
        const detail = 'Metrics are for this machine, and for whoever sends STROWGER_METRICS_TOKEN as a bearer token.'
        throw new Refused(refuse('unauthenticated', {}, { headers, detail }))
      }
      ctx.type = 'text/plain; version=0.0.4; charset=utf-8'
      ctx.body = await collectMetrics(settings.run_dir)
    },
  }
}

function hasToken(request: IncomingMessage, token: string | null): boolean {
  const given = /^bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1]
  return token !== null && given !== undefined && sameSecret(given, token)
}

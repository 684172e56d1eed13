import type { IncomingMessage } from 'node:http'
import type { Context } from 'koa'
import { ALL_ROLES, processesOf } from '../../core/domain/machines/roles.ts'
import { iso } from '../../core/runtime/clock.ts'
import { collectMetrics } from '../../core/runtime/metrics.ts'
import { PROOF, proofOfKey, sameSecret } from '../../core/runtime/secrets.ts'
import { askWorks } from '../../core/runtime/works.ts'
import type { NodeTable } from '../../core/state/index.ts'
import { addressGroup, isLocal } from './address.ts'
import { createRateLimiter, type RateLimit } from './rate-limit.ts'
import { Refused, refuse } from './reply.ts'
import type { Services } from './services.ts'

/** Signaling writes heartbeats every 2 s. A component without one for three periods counts as down. */
const FRESH_MS = 6000
const NEEDED: readonly NodeTable['kind'][] = ['signaling', 'edge', 'media']

type Checks = Readonly<Record<string, boolean>>

/** Whoever asks goes elsewhere after a few seconds without an answer. */
const ANSWERS_WITHIN_MS = 2000

/**
 * Reports whether calls can be placed: signaling runs and is not draining, its link to the edge and the media worker
 * are up, and the state is writable, on whichever machine.
 */
async function readiness({ state, clock, log }: Services): Promise<Checks> {
  const probed = state.probe().then(
    () => true,
    err => {
      log.error({ err }, 'the state cannot be written')
      return false
    },
  )
  const [state_writable, anywhere] = await Promise.all([within(clock, probed, false), kindsAnywhere({ state, clock })])
  return { state_writable, ...Object.fromEntries(NEEDED.map(kind => [kind, anywhere.has(kind)])) }
}

/**
 * Reports whether this machine does what its roles say. Its signaling process says so of itself, of the edge and media,
 * and whether the state takes its writes: rows may be some seconds old. What the machine leaves to others, any of them
 * may do.
 */
async function machineReadiness(services: Services): Promise<Checks> {
  const { settings } = services
  const own = new Set<string>(processesOf(settings.roles ?? ALL_ROLES))
  if (own.size === 0) return readiness(services)
  const asks_others = NEEDED.some(kind => !own.has(kind))
  const [works, anywhere] = await Promise.all([
    askWorks(settings.run_dir, 'signaling'),
    asks_others ? kindsAnywhere(services) : new Set<string>(),
  ])
  return {
    state_writable: works['state_writable'] === true,
    ...Object.fromEntries(NEEDED.map(kind => [kind, own.has(kind) ? works[kind] === true : anywhere.has(kind)])),
  }
}

const kindsAnywhere = ({ state, clock }: Pick<Services, 'state' | 'clock'>): Promise<ReadonlySet<string>> => {
  const none: ReadonlySet<string> = new Set()
  return within(
    clock,
    freshKinds({ state, clock }).catch(() => none),
    none,
  )
}

/** Resolves with `otherwise` when `value` takes too long. */
function within<T>(clock: Services['clock'], value: Promise<T>, otherwise: T): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = clock.after(ANSWERS_WITHIN_MS, () => resolve(otherwise))
    value.then(resolve, reject).finally(() => late.cancel())
  })
}

async function freshKinds({ state, clock }: Pick<Services, 'state' | 'clock'>): Promise<ReadonlySet<string>> {
  const rows = await state.db
    .selectFrom('node')
    .select('kind')
    .where('heartbeat_at', '>=', iso(clock.now() - FRESH_MS))
    .where('draining_at', 'is', null)
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
    (look: (services: Services) => Promise<Checks>): Page =>
    async ctx => {
      const { allowed, headers } = limiter.take(addressGroup(ctx.req), clock.monotonic_ms(), clock.now())
      if (!allowed) throw new Refused(refuse('rate_limited', { value: 'of requests from this address' }, { headers }))
      const checks = await look(services)
      const ready = Object.values(checks).every(Boolean)
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
    '/readyz': ready(readiness),
    '/readyz/machine': ready(machineReadiness),
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

import type { IncomingMessage } from 'node:http'
import type { ParameterizedContext } from 'koa'
import { countBadCredential } from './bad-credentials.ts'
import { type BodyReader, createBodyReader, jsonObjectOf } from './body.ts'
import type { Caller } from './caller.ts'
import { carryOut } from './carry-out.ts'
import { idempotencyKeyOf } from './idempotency.ts'
import { ifMatchOf } from './if-match.ts'
import { createMatcher } from './matcher.ts'
import { pipeline } from './pipeline.ts'
import type { RateLimit, RateVerdict } from './rate-limit.ts'
import { isRefusal, notFound, type Refusal, refuse } from './reply.ts'
import type { Answer, Route } from './route.ts'
import { refusalOf, sendAnswer, sendRefusal } from './send.ts'
import type { HttpServices } from './services.ts'
import { type Bearer, judged } from './steps.ts'

/** One JSON API: a prefix, its routes, and how it authenticates callers. */
interface Api {
  readonly prefix: string
  readonly routes: readonly Route[]
  readonly rate_limit: RateLimit
  /** `route` matters when the required credential depends on it: a sign-in needs none. */
  authenticate(request: IncomingMessage, route: Route): Promise<Caller | Refusal>
  /** The longest body, in bytes; 256 KiB unless set. */
  readonly max_body_bytes?: number
  /** Tests set this to check every answer against the schema of its route. */
  readonly check_replies?: boolean
}

const MAX_BODY_BYTES = 256 * 1024
/** Limits sign-in attempts from one address, because each costs a password hash. */
const STRANGERS: RateLimit = { burst: 30, per_second: 1 }

/** Handles every request below the API's prefix. */
export function apiHandler(api: Api, services: HttpServices): (ctx: ParameterizedContext) => Promise<void> {
  const { clock, settings } = services
  const find = finder(api)
  const limiter = services.limits.bucket(api.prefix, api.rate_limit)
  const strangers = services.limits.bucket(`${api.prefix} anonymous`, STRANGERS)
  const readBody = createBodyReader(api.max_body_bytes ?? MAX_BODY_BYTES)
  const known = pipeline<Answer, Refusal>({
    isRefusal,
    failed: (error, at) => refusalOf(error, services, at),
    send: sendAnswer,
    refuse: (ctx, refusal, request_id) => sendRefusal(ctx, refusal, { base_url: settings.base_url, request_id }),
  })
    .gather('path and method', ({ ctx }) => {
      const found = find(ctx)
      return isRefusal(found) ? found : { ...found, bearer: byHttp(ctx, readBody) }
    })
    .gather('credential', async ({ ctx, route }) => {
      const caller = await api.authenticate(ctx.req, route)
      if (!isRefusal(caller)) return { caller }
      return overRate(ctx, await countBadCredential(services, ctx.req), 'of requests from this address') ?? caller
    })
    .check('rate', async ({ ctx, route, caller }) => {
      const bucket = route.anonymous ? strangers : limiter
      return overRate(ctx, await bucket.take(caller.id, clock.monotonic_ms(), clock.now()), 'of this credential')
    })
  return judged(known, services).answer('route', ready => carryOut(ready, services, api.check_replies ?? false))
}

/** A request in the headers and the body of HTTP. */
const byHttp = (ctx: ParameterizedContext, readBody: BodyReader): Bearer => ({
  project_id: header(ctx, 'x-project-id'),
  body: async route => (route.method === 'get' ? undefined : bodyOf(await readBody(ctx), route)),
  idempotency_key(route) {
    const ignored = route.method === 'get' || route.idempotent === false
    return idempotencyKeyOf(ignored ? undefined : header(ctx, 'idempotency-key'), route.idempotent === true)
  },
  if_match: route => (route.if_match === undefined ? null : ifMatchOf(header(ctx, 'if-match'))),
})

function finder({ prefix, routes }: Api) {
  const matcher = createMatcher<Route>()
  for (const route of routes) matcher.add(route.method, route.path, route)
  return (ctx: ParameterizedContext) => {
    // Koa answers HEAD with the headers of GET.
    const found = matcher.find(ctx.method === 'HEAD' ? 'GET' : ctx.method, ctx.path.slice(prefix.length))
    if (!found) return notFound('this path')
    if ('allow' in found)
      return refuse('method_not_allowed', { value: ctx.method }, { headers: { Allow: found.allow.join(', ') } })
    return { route: found.value, params: found.params }
  }
}

/** Sends the state of the client's bucket in headers. Refuses when the bucket is empty. */
function overRate(ctx: ParameterizedContext, { allowed, headers }: RateVerdict, value: string): Refusal | null {
  ctx.set(headers)
  return allowed ? null : refuse('rate_limited', { value }, { headers })
}

const header = (ctx: ParameterizedContext, name: string): string | undefined => ctx.headers[name] as string | undefined

function bodyOf(sent: Awaited<ReturnType<BodyReader>>, route: Route): object | undefined | Refusal {
  if (isRefusal(sent)) return sent
  if (!route.body && sent.bytes.length === 0) return undefined
  return jsonObjectOf(sent)
}

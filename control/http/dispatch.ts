import type { IncomingMessage } from 'node:http'
import type { ParameterizedContext } from 'koa'
import { breathe } from '../../core/runtime/breathe.ts'
import type { ProjectRow } from '../../core/state/people/organizations.ts'
import { countBadCredential } from './bad-credentials.ts'
import { type BodyReader, createBodyReader, jsonObjectOf } from './body.ts'
import type { Caller } from './caller.ts'
import { carryOut } from './carry-out.ts'
import { bodyErrors, withoutAccess } from './checks.ts'
import { idempotencyKeyOf } from './idempotency.ts'
import { ifMatchOf } from './if-match.ts'
import { withUtcInstants } from './instants.ts'
import { createMatcher } from './matcher.ts'
import { pipeline } from './pipeline.ts'
import { projectOf } from './project-context.ts'
import { queryOf } from './query.ts'
import { createRateLimiter, type RateLimit, type RateVerdict } from './rate-limit.ts'
import { isRefusal, notFound, type Refusal, refuse } from './reply.ts'
import type { Answer, Route } from './route.ts'
import { refusalOf, sendAnswer, sendRefusal } from './send.ts'
import type { HttpServices } from './services.ts'

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
  const { state, clock, settings } = services
  const find = finder(api)
  const limiter = createRateLimiter(api.rate_limit)
  const strangers = createRateLimiter(STRANGERS)
  const readBody = createBodyReader(api.max_body_bytes ?? MAX_BODY_BYTES)
  return pipeline<Answer, Refusal>({
    isRefusal,
    failed: (error, at) => refusalOf(error, services, at),
    send: sendAnswer,
    refuse: (ctx, refusal, request_id) => sendRefusal(ctx, refusal, { base_url: settings.base_url, request_id }),
  })
    .gather('path and method', ({ ctx }) => find(ctx))
    .gather('credential', async ({ ctx, route }) => {
      const caller = await api.authenticate(ctx.req, route)
      if (!isRefusal(caller)) return { caller }
      return overRate(ctx, countBadCredential(services, ctx.req), 'of requests from this address') ?? caller
    })
    .check('rate', ({ ctx, route, caller }) => {
      const bucket = route.anonymous ? strangers : limiter
      return overRate(ctx, bucket.take(caller.id, clock.monotonic_ms(), clock.now()), 'of this credential')
    })
    .check('role and scope', ({ route, caller }) => withoutAccess(route, caller))
    .gather('project', async ({ ctx, route, caller }) => {
      if ((route.context ?? 'project') !== 'project') return { project: null }
      const project = await projectOf(state.db, caller, header(ctx, 'x-project-id'))
      return isRefusal(project) ? project : { project }
    })
    .gather('body', async ({ ctx, route }) => {
      const body = route.method === 'get' ? undefined : bodyOf(await readBody(ctx), route)
      return isRefusal(body) ? body : { body }
    })
    .gather('idempotency key', ({ ctx, route }) => {
      const ignored = route.method === 'get' || route.idempotent === false
      const key = idempotencyKeyOf(ignored ? undefined : header(ctx, 'idempotency-key'), route.idempotent === true)
      return isRefusal(key) ? key : { idempotency_key: key }
    })
    .gather('revision', ({ ctx, route }) => {
      const if_match = route.if_match === undefined ? null : ifMatchOf(header(ctx, 'if-match'))
      return isRefusal(if_match) ? if_match : { if_match }
    })
    .gather('query', ({ ctx, route }) => {
      const query = queryOf(ctx.querystring, route.query)
      return isRefusal(query) ? query : { query }
    })
    .check('fields', ({ route, body }) => bodyErrors(route, body))
    .gather('instants', ({ route, body }) => ({ body: withUtcInstants(route.body, body) }))
    .gather('preparation', async ({ route, body, caller }) => ({
      prepared: await route.prepare?.({ body, services, caller, breathe }),
    }))
    .check('status of the project', ({ route, project }) =>
      route.method !== 'get' && project && project.status !== 'active'
        ? refuse('project_disabled', { name: project.name, value: project.status }, causeOf(project))
        : null,
    )
    .answer('route', ready => carryOut(ready, services, api.check_replies ?? false))
}

/** A project that its organization's suspension disabled names that. */
const causeOf = ({ suspended }: ProjectRow) =>
  suspended === 1 ? { extra: { caused_by: 'organization_suspended' } } : {}

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

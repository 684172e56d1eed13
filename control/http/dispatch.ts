import type { IncomingMessage } from 'node:http'
import type { ParameterizedContext } from 'koa'
import { iso } from '../../core/runtime/clock.ts'
import { appendAudit } from '../../core/state/audit.ts'
import { bumpConfiguration } from '../../core/state/bootstrap.ts'
import { type Db, StateError, type Trx } from '../../core/state/index.ts'
import type { ProjectRow } from '../../core/state/organizations.ts'
import { withoutScope } from './access.ts'
import { auditEvent } from './audit.ts'
import { countBadCredential } from './bad-credentials.ts'
import { createBodyReader, jsonObjectOf } from './body.ts'
import type { Caller } from './caller.ts'
import {
  earlierOutcome,
  type IdempotentRequest,
  idempotencyKeyOf,
  idempotentRequest,
  keepOutcome,
} from './idempotency.ts'
import { etag, ifMatchOf, mismatch } from './if-match.ts'
import { createMatcher, type Matcher } from './matcher.ts'
import { PROBLEM_TYPE, problem } from './problem.ts'
import { projectOf } from './project-context.ts'
import { queryOf } from './query.ts'
import { createRateLimiter, type RateLimit } from './rate-limit.ts'
import { type Change, isRefusal, notFound, type Refusal, Refused, refuse, type Wake, WrittenJson } from './reply.ts'
import type { Answer, Loaders, Route } from './route.ts'
import type { HttpServices, Services } from './services.ts'
import { fieldErrors } from './validate.ts'

/** One JSON API: a prefix, its routes, and how its callers prove who they are. */
export interface Api {
  readonly prefix: string
  readonly routes: readonly Route[]
  readonly rate_limit: RateLimit
  /** `route` is there for credentials that depend on it, such as a sign-in that needs none. */
  authenticate(request: IncomingMessage, route: Route): Promise<Caller | Refusal>
  /** True in tests: every answer is checked against the route's own schema. */
  readonly check_replies?: boolean
}

const readBody = createBodyReader(256 * 1024)
/** Attempts to sign in from one address: each costs a password hash. */
const STRANGERS: RateLimit = { burst: 30, per_second: 1 }

type Context = ParameterizedContext

/** Handles every request below the API's prefix. The order of the steps is a contract: tests walk over it. */
export function apiHandler(api: Api, services: HttpServices): (ctx: Context) => Promise<void> {
  const matcher = matcherOf(api)
  const limiter = createRateLimiter(api.rate_limit)
  const strangers = createRateLimiter(STRANGERS)
  return async ctx => {
    const request_id = ctx.response.get('X-Request-ID')
    ctx.set('Cache-Control', 'no-store')
    const answer = await answerOf().catch((error: unknown) => refusalOf(error, services, request_id))
    if (isRefusal(answer)) sendRefusal(ctx, answer, { base_url: services.settings.base_url, request_id })
    else send(ctx, answer)

    async function answerOf(): Promise<Answer | Refusal> {
      const path = ctx.path.slice(api.prefix.length)
      // Koa answers HEAD with the headers of GET.
      const found = matcher.find(ctx.method === 'HEAD' ? 'GET' : ctx.method, path)
      if (!found) return notFound('this path')
      if ('allow' in found)
        return refuse('method_not_allowed', { value: ctx.method }, { headers: { Allow: found.allow.join(', ') } })
      const route = found.value
      const caller = await api.authenticate(ctx.req, route)
      const { clock } = services
      const rate = isRefusal(caller)
        ? countBadCredential(services, ctx.req)
        : (route.anonymous ? strangers : limiter).take(caller.id, clock.monotonic_ms(), clock.now())
      ctx.set(rate.headers)
      if (!rate.allowed) {
        const value = isRefusal(caller) ? 'of requests from this address' : 'of this credential'
        return refuse('rate_limited', { value }, { headers: rate.headers })
      }
      if (isRefusal(caller)) return caller
      return handle(ctx, { api, services, route, caller, request_id, params: found.params })
    }
  }
}

function matcherOf(api: Api): Matcher<Route> {
  const matcher = createMatcher<Route>()
  for (const route of api.routes) matcher.add(route.method, route.path, route)
  return matcher
}

interface Handling {
  readonly api: Api
  readonly services: HttpServices
  readonly route: Route
  readonly caller: Caller
  readonly request_id: string
  readonly params: Readonly<Record<string, string>>
}

async function handle(ctx: Context, handling: Handling): Promise<Answer | Refusal> {
  const { services, route, caller } = handling
  const allowed = access(route, caller)
  if (allowed) return allowed
  const needs_project = (route.context ?? 'project') === 'project'
  const project = needs_project
    ? await projectOf(services.state.db, caller, ctx.headers['x-project-id'] as string | undefined)
    : null
  if (isRefusal(project)) return project
  const request = await requestOf(ctx, route)
  if (isRefusal(request)) return request
  const prepared = route.prepare && (await route.prepare({ body: request.body, services, caller }))
  const { api, request_id, params } = handling
  const run = { api, services, route, caller, request_id, params, project, request, prepared, incoming: ctx.req }
  if (route.method === 'get') return answered(run, services.state.db, iso(services.clock.now()))
  if (project && project.status !== 'active')
    return refuse('project_disabled', { name: project.name, value: project.status })
  return written(ctx, run)
}

/** The three bounds of a request: role, scopes, and (where the resource is loaded) subaccount. */
function access(route: Route, caller: Caller): Refusal | null {
  if (route.roles && !route.roles.includes(caller.role)) return refuse('role_forbidden', { value: caller.role })
  if (caller.subaccount_id !== null && !reachableFromSubaccount(route))
    return refuse('role_forbidden', { value: caller.role }, { detail: 'This key is restricted to a subaccount.' })
  return route.scope === null ? null : withoutScope(caller, route.scope)
}

/**
 * What belongs to no subaccount is out of reach of a key that is restricted to one, unless the route sees to it itself.
 */
const reachableFromSubaccount = (route: Route): boolean =>
  route.restricted_keys === true ||
  Object.entries(route.loaders).some(
    ([param, loader]) => loader.subaccount_id !== undefined && route.path.includes(`{${param}}`),
  )

interface ReadRequest {
  readonly query: Readonly<Record<string, unknown>>
  readonly body: object | undefined
  readonly if_match: number | null
  readonly idempotency_key: string | undefined
  readonly path: string
  readonly search: string
}

/** Everything that the request itself says, checked before any of it is used. */
async function requestOf(ctx: Context, route: Route): Promise<ReadRequest | Refusal> {
  const body = route.method === 'get' ? undefined : await bodyOf(ctx, route)
  if (isRefusal(body)) return body
  const given = route.method === 'get' || route.idempotent === false ? undefined : header(ctx, 'idempotency-key')
  const key = idempotencyKeyOf(given, route.idempotent === true)
  if (isRefusal(key)) return key
  const if_match = route.if_match === undefined ? null : ifMatchOf(header(ctx, 'if-match'))
  if (isRefusal(if_match)) return if_match
  const query = queryOf(ctx.querystring, route.query)
  if (isRefusal(query)) return query as Refusal
  const wrong = bodyErrors(route, body)
  if (wrong) return wrong
  return { query, body, if_match, idempotency_key: key, path: ctx.path, search: ctx.querystring }
}

const header = (ctx: Context, name: string): string | undefined => ctx.headers[name] as string | undefined

async function bodyOf(ctx: Context, route: Route): Promise<object | undefined | Refusal> {
  const sent = await readBody(ctx)
  if (isRefusal(sent)) return sent
  if (!route.body && sent.bytes.length === 0) return undefined
  return jsonObjectOf(sent)
}

function bodyErrors(route: Route, body: object | undefined): Refusal | null {
  if (!route.body) {
    const [name] = Object.keys(body ?? {})
    if (name === undefined) return null
    const errors = [{ pointer: `/${name}`, message: 'is not a field of this request' }]
    return refuse('validation_failed', { value: `/${name} is not a field of this request` }, { errors })
  }
  if (body === undefined) return refuse('body_malformed', { value: 'it is missing' })
  const errors = fieldErrors(route.body, body)
  if (errors.length === 0) return null
  const value = errors.slice(0, 5).map(error => `${error.pointer || 'the body'} ${error.message}`)
  return refuse('validation_failed', { value: value.join('; ') }, { errors })
}

interface Run extends Handling {
  readonly project: ProjectRow | null
  readonly request: ReadRequest
  readonly prepared: unknown
  readonly incoming: IncomingMessage
}

/**
 * Runs a write in one transaction: its idempotent outcome, its audit event and its revision are all in it or none is.
 */
async function written(ctx: Context, run: Run): Promise<Answer | Refusal> {
  const { services, route, caller, request, project } = run
  const identity: IdempotentRequest | null =
    request.idempotency_key === undefined
      ? null
      : idempotentRequest({
          key: request.idempotency_key,
          owner_id: project?.id ?? caller.organization_id,
          subaccount_id: caller.subaccount_id,
          method: ctx.method,
          path: request.path,
          search: request.search,
          body: request.body,
        })
  let wake: readonly Wake[] = []
  const answer = await services.state.briefly(async (trx): Promise<Answer> => {
    const now_ms = services.clock.now()
    const now = iso(now_ms)
    if (identity) {
      const earlier = await earlierOutcome(trx, identity, now)
      if (isRefusal(earlier)) throw new Refused(earlier)
      if (earlier) return { ...earlier, headers: { ...earlier.headers, 'Idempotent-Replayed': 'true' } }
    }
    const done = await answered(run, trx, now)
    // Throwing takes the transaction back: a refused request neither changes anything nor uses its key up.
    if (isRefusal(done)) throw new Refused(done)
    wake = await recorded(run, trx, done, now)
    const plain = { status: done.status, body: done.body, headers: headersOf(done) }
    if (identity) {
      const body = route.for_replay && plain.body !== undefined ? route.for_replay(plain.body) : plain.body
      await keepOutcome(trx, identity, { ...plain, body }, now_ms)
    }
    return plain
  })
  for (const [topic, key] of wake) services.bus.ring(topic, key)
  return answer
}

const headersOf = ({ revision, headers = {} }: Answer): Readonly<Record<string, string>> =>
  revision === undefined ? headers : { ETag: etag(revision), ...headers }

async function recorded(run: Run, trx: Trx, answer: Answer, now: string): Promise<readonly Wake[]> {
  const { route, caller, project, request_id } = run
  const changes = [answer.change ?? []].flat() as readonly Change[]
  for (const change of changes) {
    const event = auditEvent(route, change, {
      caller,
      organization_id: caller.organization_id,
      project_id: project?.id ?? null,
      now,
      request_id,
    })
    await appendAudit(trx, event)
  }
  const [first] = changes
  if (!route.applies || !first) return answer.wake ?? []
  await bumpConfiguration(trx)
  return [...(answer.wake ?? []), ['configuration', first.resource.id]]
}

/** Loads what the path names, compares If-Match, runs the route. */
async function answered(run: Run, db: Db, now: string): Promise<Answer | Refusal> {
  const { route, caller, project, request, params, services, request_id, prepared, api } = run
  const { query, body } = request
  // What is loaded is added to it: an object that is spread anew for each request costs more than the loading.
  const context: Record<string, unknown> = {
    db,
    project,
    caller,
    params,
    query,
    body,
    prepared,
    now,
    request_id,
    services,
    request: run.incoming,
  }
  const missing = await load(run, db, context)
  if (missing) return missing
  if (route.if_match !== undefined && request.if_match !== null) {
    const current = revisionOf(route.loaders, route.if_match, context)
    if (current !== request.if_match) return mismatch(request.if_match, current)
  }
  const answer = await route.run(context)
  if (api.check_replies && !isRefusal(answer)) checkReply(route, answer)
  return answer
}

/** Adds what the path names to `into`, by the names of its loaders. */
async function load(run: Run, db: Db, into: Record<string, unknown>): Promise<Refusal | null> {
  const { route, caller, project, params } = run
  for (const param of Object.keys(params)) {
    const loader = Object.hasOwn(route.loaders, param) ? route.loaders[param] : undefined
    if (!loader) continue
    const id = params[param] ?? ''
    const within = { id, project_id: project?.id ?? '', organization_id: caller.organization_id, params }
    const row = await loader.load(db, within)
    const subaccount_id = row === undefined ? null : (loader.subaccount_id?.(row) ?? null)
    const outside = caller.subaccount_id !== null && subaccount_id !== caller.subaccount_id
    if (row === undefined || (loader.subaccount_id && outside)) return notFound(`${loader.name} ${id.slice(0, 60)}`)
    into[loader.name] = row
  }
  return null
}

function revisionOf(loaders: Loaders, name: string, loaded: Readonly<Record<string, unknown>>): number {
  const loader = Object.values(loaders).find(known => known.name === name)
  if (!loader?.revision) throw new Error(`${name} has no revision to compare If-Match with`)
  return loader.revision(loaded[name])
}

function checkReply(route: Route, answer: Answer): void {
  const schema = route.replies[answer.status]
  const where = `${route.method} ${route.path} ${answer.status}`
  if (schema === undefined) throw new Error(`${where} is not declared`)
  if (schema === null && answer.body !== undefined) throw new Error(`${where} has a body`)
  const body = answer.body instanceof WrittenJson ? JSON.parse(answer.body.text) : answer.body
  const errors = schema === null ? [] : fieldErrors(schema, body)
  if (errors.length > 0) throw new Error(`${where} does not fit its schema: ${JSON.stringify(errors)}`)
}

/**
 * What an exception is answered with; the ones that nobody expected are logged with the request's id and nothing is
 * told.
 */
export function refusalOf(error: unknown, services: Services, request_id: string): Refusal {
  if (error instanceof Refused) return error.refusal
  if (error instanceof StateError && /^SQLITE_(BUSY|FULL|IOERR|READONLY|CANTOPEN)/.test(error.code)) {
    services.log.error({ err: error, request_id }, 'the state could not be used')
    return refuse('state_unavailable', { value: 'try again' })
  }
  services.log.error({ err: error, request_id }, 'a request failed unexpectedly')
  return refuse('internal')
}

function send(ctx: Context, answer: Answer): void {
  const { status, revision, headers, body } = answer
  ctx.status = status
  if (body === undefined) {
    ctx.body = answer.stream ?? null
    ctx.status = status
  }
  // After an empty body, because Koa takes type and length away with it, and HEAD wants them.
  if (revision !== undefined) ctx.set('ETag', etag(revision))
  if (headers) ctx.set(headers)
  if (body === undefined) return
  ctx.type = 'application/json; charset=utf-8'
  ctx.body = body instanceof WrittenJson ? body.text : JSON.stringify(body)
}

/** Answers a refusal as a problem document. */
export function sendRefusal(
  ctx: Context,
  refusal: Refusal,
  context: { readonly base_url: string; readonly request_id: string },
): void {
  const { body, headers } = problem(refusal, context)
  ctx.status = body.status
  ctx.set({ ...headers })
  ctx.type = PROBLEM_TYPE
  ctx.body = JSON.stringify(body)
}

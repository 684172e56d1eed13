import type { IncomingMessage } from 'node:http'
import type { Topic } from '../../core/runtime/bus.ts'
import { iso } from '../../core/runtime/clock.ts'
import { bumpConfiguration } from '../../core/state/configuration/bump.ts'
import type { Db, Trx } from '../../core/state/index.ts'
import { appendAudit } from '../../core/state/people/audit.ts'
import { findAnyProject } from '../../core/state/people/customers.ts'
import { findOrganization, type ProjectRow } from '../../core/state/people/organizations.ts'
import { auditEventsOf } from './audit.ts'
import type { Caller } from './caller.ts'
import { errorsIn } from './errors-in.ts'
import { earlierOutcome, type IdempotentRequest, idempotentRequest, keepOutcome } from './idempotency.ts'
import { etag, mismatch } from './if-match.ts'
import type { Asked } from './pipeline.ts'
import { type Change, isRefusal, notFound, type Refusal, Refused, refuse, WrittenJson } from './reply.ts'
import type { Answer, Loaders, Route, RouteContext } from './route.ts'
import type { HttpServices } from './services.ts'

/** The request as it was sent; a command of the CLI makes one too. */
export interface Sent {
  readonly method: string
  readonly path: string
  readonly querystring: string
  readonly req: Pick<IncomingMessage, 'headers' | 'method'>
}

/** A request that has passed every check except those that need the resource. */
interface Ready extends Omit<Asked, 'ctx'> {
  readonly ctx: Sent
  readonly route: Route
  readonly params: Readonly<Record<string, string>>
  readonly caller: Caller
  /** Null when the route does not concern a project. */
  readonly project: ProjectRow | null
  readonly query: RouteContext['query']
  readonly body: object | undefined
  readonly if_match: number | null
  readonly idempotency_key: string | undefined
  readonly prepared: unknown
}

/** Runs the route. A GET reads the database directly; every other method runs in one transaction. */
export function carryOut(ready: Ready, services: HttpServices, check_replies: boolean): Promise<Answer | Refusal> {
  const run: Run = { ...ready, services, check_replies }
  if (ready.route.method !== 'get') return written(run)
  return answered(run, services.state.db, iso(services.clock.now()))
}

interface Run extends Ready {
  readonly services: HttpServices
  readonly check_replies: boolean
}

/** Runs a write. The change, its idempotent outcome, its audit event and its revision commit atomically. */
async function written(run: Run): Promise<Answer | Refusal> {
  const { services, route } = run
  const identity = identityOf(run)
  let wake: readonly Topic[] = []
  const answer = await services.state.shortTransaction(async (trx): Promise<Answer> => {
    const now_ms = services.clock.now()
    const now = iso(now_ms)
    const standing = await standingOf(trx, run)
    if (standing) throw new Refused(standing)
    if (identity) {
      const earlier = await earlierOutcome(trx, identity, now)
      if (isRefusal(earlier)) throw new Refused(earlier)
      if (earlier) return { ...earlier, headers: { ...earlier.headers, 'Idempotent-Replayed': 'true' } }
    }
    const done = await answered(run, trx, now)
    // Throwing rolls back: a refused request changes nothing and does not consume its idempotency key.
    if (isRefusal(done)) throw new Refused(done)
    wake = await recorded(run, trx, done, now)
    const plain = { status: done.status, body: done.body, headers: headersOf(done) }
    if (identity) {
      const body = route.for_replay && plain.body !== undefined ? route.for_replay(plain.body) : plain.body
      await keepOutcome(trx, identity, { ...plain, body }, now_ms)
    }
    return plain
  })
  for (const topic of wake) services.bus.ring(topic)
  return answer
}

/** Refuses the write of a suspended customer, even when the request began before the suspension. */
async function standingOf(trx: Trx, { route, project, caller }: Run): Promise<Refusal | null> {
  if (caller.kind === 'operator' || route.anonymous || route.while_suspended) return null
  if (project) {
    const row = await findAnyProject(trx, project.id)
    if (row?.status !== 'active')
      return refuse('project_disabled', { name: project.name, value: row?.status ?? 'released' })
  }
  const organization = await findOrganization(trx, caller.organization_id)
  return organization?.status === 'suspended' && !caller.operator
    ? refuse('organization_suspended', { name: organization.name })
    : null
}

const identityOf = ({ ctx, caller, project, body, idempotency_key }: Run): IdempotentRequest | null =>
  idempotency_key === undefined
    ? null
    : idempotentRequest({
        key: idempotency_key,
        owner_id: project?.id ?? caller.organization_id,
        subaccount_id: caller.subaccount_id,
        method: ctx.method,
        path: ctx.path,
        search: ctx.querystring,
        body,
      })

const headersOf = ({ revision, headers = {} }: Answer): Readonly<Record<string, string>> =>
  revision === undefined ? headers : { ETag: etag(revision), ...headers }

async function recorded(run: Run, trx: Trx, answer: Answer, now: string): Promise<readonly Topic[]> {
  const { route, caller, project, request_id } = run
  const changes = [answer.change ?? []].flat() as readonly Change[]
  for (const change of changes) {
    const context = { caller, project_id: project?.id ?? null, now, request_id }
    for (const event of auditEventsOf(route, change, context)) await appendAudit(trx, event)
  }
  const [first] = changes
  if (!route.applies || !first) return answer.wake ?? []
  await bumpConfiguration(trx)
  return [...(answer.wake ?? []), 'configuration']
}

/** Loads the resources that the path names, compares If-Match and runs the route. */
async function answered(run: Run, db: Db, now: string): Promise<Answer | Refusal> {
  const { ctx, route, caller, project, params, query, body, prepared, request_id, services } = run
  const loaded = await load(run, db)
  if (isRefusal(loaded)) return loaded
  if (route.if_match !== undefined && run.if_match !== null) {
    const current = revisionOf(route.loaders, route.if_match, loaded)
    if (current !== run.if_match) return mismatch(run.if_match, current, idOf(route, params))
  }
  const context: RouteContext = {
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
    request: ctx.req,
  }
  const answer = await route.run(Object.assign(context, loaded))
  if (run.check_replies && !isRefusal(answer)) await checkReply(route, answer)
  return answer
}

/** Rows, keyed by the names of their loaders. */
type Loaded = Record<string, unknown>

async function load({ route, caller, project, params }: Run, db: Db): Promise<Loaded | Refusal> {
  const loaded: Loaded = {}
  for (const param of [...Object.keys(params), ...(route.loads ?? [])]) {
    const loader = Object.hasOwn(route.loaders, param) ? route.loaders[param] : undefined
    if (!loader) continue
    const id = params[param] ?? ''
    const within = { id, project_id: project?.id ?? '', organization_id: caller.organization_id, params }
    const row = await loader.load(db, within)
    const subaccount_id = row === undefined ? null : (loader.subaccount_id?.(row) ?? null)
    const outside = caller.subaccount_id !== null && subaccount_id !== caller.subaccount_id
    if (row === undefined || (loader.subaccount_id && outside)) return notFound(`${loader.name} ${id.slice(0, 60)}`)
    loaded[loader.name] = row
  }
  return loaded
}

function revisionOf(loaders: Loaders, name: string, loaded: Loaded): number {
  const loader = Object.values(loaders).find(known => known.name === name)
  if (!loader?.revision) throw new Error(`${name} has no revision to compare If-Match with`)
  return loader.revision(loaded[name])
}

/** The id of the resource that If-Match is about. One that no path names, because a project has one, has its name. */
function idOf({ if_match = '', loaders }: Route, params: Run['params']): string {
  const named = Object.entries(params).find(([param]) => loaders[param]?.name === if_match)
  return named?.[1] ?? if_match
}

async function checkReply(route: Route, answer: Answer): Promise<void> {
  const schema = route.replies[answer.status]
  const where = `${route.method} ${route.path} ${answer.status}`
  if (schema === undefined) throw new Error(`${where} is not declared`)
  if (schema === null && answer.body !== undefined) throw new Error(`${where} has a body`)
  const body = answer.body instanceof WrittenJson ? JSON.parse(answer.body.text) : answer.body
  const errors = schema === null ? [] : await errorsIn(schema, body)
  if (errors.length > 0) throw new Error(`${where} does not fit its schema: ${JSON.stringify(errors)}`)
}

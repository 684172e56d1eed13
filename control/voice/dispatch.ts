import type { ParameterizedContext } from 'koa'
import { findAnyProject } from '../../core/state/people/customers.ts'
import { countBadCredential } from '../http/bad-credentials.ts'
import { errorsIn } from '../http/errors-in.ts'
import { createMatcher } from '../http/matcher.ts'
import { pipeline } from '../http/pipeline.ts'
import type { RateLimit } from '../http/rate-limit.ts'
import { Refused } from '../http/reply.ts'
import { refusalOf } from '../http/send.ts'
import type { HttpServices, Services } from '../http/services.ts'
import { authenticate } from './basic.ts'
import { forReason, isVoiceRefusal, notProxied, numbered, type VoiceRefusal, voiceErrorBody } from './errors.ts'
import { formOf, readForm } from './form.ts'
import type { VoiceAnswer, VoiceRoute } from './route.ts'

interface VoiceApi {
  readonly routes: readonly VoiceRoute[]
  /** The limit for each account. */
  readonly rate_limit: RateLimit
  /** Tests set this to check every answer against the schema of its route. */
  readonly check_replies?: boolean
}

const BELOW_ACCOUNT = /^\/2010-04-01\/Accounts\/(AC[0-9a-f]{32})(\/.*|\.json)?$/

const sid = (prefix: string): RegExp => new RegExp(`^${prefix}[0-9a-f]{32}$`)

/** The shape of each parameter of a path. */
const SHAPES: Readonly<Record<string, RegExp>> = {
  call_sid: sid('CA'),
  recording_sid: sid('RE'),
  queue_sid: sid('QU'),
  notification_sid: sid('NO'),
  number_sid: sid('PN'),
  application_sid: sid('AP'),
  /** The sid of a conference; one that does not run yet has only a name. */
  conference: /^.{1,128}$/,
  /** The sid of its call, or its label. */
  participant: /^.{1,128}$/,
  /** The sid or the name of what runs on a call. */
  activity: /^.{1,64}$/,
  subscription_sid: sid('ZY'),
  /** A recording of a call; the only one that runs has a name too. */
  call_recording: /^(RE[0-9a-f]{32}|Twilio\.CURRENT)$/,
  /** The sid of its call, or the one who waits longest. */
  member: /^(CA[0-9a-f]{32}|Front)$/,
}

/** Thrown inside a transaction to roll it back. The dispatcher answers with the refusal. */
export class VoiceRefused extends Error {
  override readonly name = 'VoiceRefused'
  readonly refusal: VoiceRefusal
  constructor(refusal: VoiceRefusal) {
    super('refused')
    this.refusal = refusal
  }
}

/** Returns the handler of requests below /2010-04-01. Its steps are in the order of voice-compat.md section 1. */
export function voiceHandler(api: VoiceApi, services: HttpServices): (ctx: ParameterizedContext) => Promise<void> {
  const { clock, bus, settings } = services
  const [spec, extended] = [finder(api.routes.filter(route => !route.extended)), finder(api.routes)]
  const find = {
    extended,
    // A route of the wider API does not exist for the others, whether its path is its own or one of the specification.
    spec(method: string, below: string): Found | VoiceRefusal {
      const wide = extended(method, below)
      return 'route' in wide && wide.route.extended ? notProxied('This path is not served.') : spec(method, below)
    },
  }
  const limiter = services.limits.bucket('/2010-04-01', api.rate_limit)
  return pipeline<VoiceAnswer, VoiceRefusal>({
    isRefusal: isVoiceRefusal,
    failed: (error, at) => unexpected(error, services, at),
    send,
    refuse: (ctx, refusal, request_id) => refuse(ctx, refusal, settings.base_url, request_id),
  })
    .gather('account in the path', ({ ctx }) => {
      const [, account_sid, below = ''] = BELOW_ACCOUNT.exec(ctx.path) ?? []
      if (account_sid === undefined) return notProxied('This path is not served.')
      return { account_sid, below }
    })
    .gather('credential', async ({ ctx, account_sid }) => {
      const account = await authenticate(ctx.req, account_sid, services)
      if (!isVoiceRefusal(account)) return { account }
      const { allowed, headers } = await countBadCredential(services, ctx.req)
      return allowed ? account : numbered(20429, 'Too many requests without a good credential.', { headers })
    })
    .check('rate', async ({ account }) => {
      const { allowed, headers } = await limiter.take(account.account_sid, clock.monotonic_ms(), clock.now())
      return allowed ? null : numbered(20429, 'Too many requests of this account.', { headers })
    })
    .gather('path and method', ({ ctx, below, account }) =>
      find[account.voice_api](ctx.method === 'HEAD' ? 'GET' : ctx.method, below),
    )
    .check('shape of the sids', ({ params }) => {
      for (const [name, sid] of Object.entries(params))
        if (!SHAPES[name]?.test(sid)) return numbered(20404, `There is no resource ${sid.slice(0, 60)}.`)
      return null
    })
    .gather('form', async ({ ctx }) => {
      const form = ctx.method === 'POST' ? await readForm(ctx) : formOf(new URLSearchParams())
      return isVoiceRefusal(form) ? form : { form }
    })
    .check('status of the project', async ({ ctx, account: { project_id } }) => {
      if (ctx.method !== 'POST' && ctx.method !== 'DELETE') return null
      // Read after the form, which a client may send slowly: the project may have been disabled meanwhile.
      const project = await findAnyProject(services.state.db, project_id)
      return project?.status === 'active'
        ? null
        : forReason('project_disabled', { name: project?.name ?? project_id, value: project?.status ?? 'released' })
    })
    .answer('route', async ({ ctx, account, route, params, form }) => {
      const { req: request, path } = ctx
      const query = new URLSearchParams(ctx.querystring)
      const answer = await route.run({ account, services, now_ms: clock.now(), request, query, path, params, form })
      if (isVoiceRefusal(answer)) return answer
      if (api.check_replies) await checkReply(route, answer)
      for (const topic of answer.wake ?? []) bus.ring(topic)
      return answer
    })
}

interface Found {
  readonly route: VoiceRoute
  readonly params: Readonly<Record<string, string>>
}

/** Finds routes by path and suffix. `/Calls/CA…` means `/Calls/CA….json`; `/Recordings/RE….wav` is its own resource. */
function finder(routes: readonly VoiceRoute[]) {
  const matchers = {
    '.json': createMatcher<VoiceRoute>(),
    '.wav': createMatcher<VoiceRoute>(),
    '.mp3': createMatcher<VoiceRoute>(),
  }
  for (const route of routes) matchers[route.suffix].add(route.method, route.path, route)
  return (method: string, below: string): Found | VoiceRefusal => {
    const suffix = /\.[^./]*$/.exec(below)?.[0] ?? ''
    const kind = suffix === '' ? '.json' : suffix
    if (kind !== '.json' && kind !== '.wav' && kind !== '.mp3') return notProxied('This path is not served.')
    const path = suffix === '' ? below : below.slice(0, -suffix.length)
    const found = matchers[kind].find(method, path)
    if (!found) return notProxied('This path is not served.')
    if (!('allow' in found)) return { route: found.value, params: found.params }
    const allow = METHODS.filter(known => found.allow.includes(known) || (known === 'HEAD' && kind !== '.json'))
    return numbered(20004, `The method ${method} is not served here.`, { headers: { Allow: allow.join(', ') } })
  }
}

const METHODS = ['GET', 'HEAD', 'POST', 'DELETE'] as const

async function checkReply(route: VoiceRoute, answer: VoiceAnswer): Promise<void> {
  const schema = route.replies[answer.status]
  const where = `${route.method} ${route.path} ${answer.status}`
  if (schema === undefined) throw new Error(`${where} is not declared`)
  const errors = schema === null ? [] : await errorsIn(schema, answer.body)
  if (errors.length > 0) throw new Error(`${where} does not fit its schema: ${JSON.stringify(errors)}`)
}

function unexpected(error: unknown, services: Services, at: Parameters<typeof refusalOf>[2]): VoiceRefusal {
  if (error instanceof VoiceRefused) return error.refusal
  const refusal = refusalOf(error, services, at)
  return error instanceof Refused ? forReason(refusal.refused, refusal.facts) : forReason(refusal.refused)
}

function refuse(ctx: ParameterizedContext, refusal: VoiceRefusal, base_url: string, request_id: string): void {
  const { status, type, body } = voiceErrorBody(refusal, { base_url, request_id })
  ctx.status = status
  ctx.set({ ...refusal.headers })
  ctx.type = type
  ctx.body = JSON.stringify(body)
}

function send(ctx: ParameterizedContext, answer: VoiceAnswer): void {
  ctx.status = answer.status
  if (answer.stream) ctx.body = answer.stream
  else if (answer.body === undefined) ctx.body = null
  else {
    ctx.type = 'application/json; charset=utf-8'
    ctx.body = JSON.stringify(answer.body)
  }
  ctx.status = answer.status
  // Set last: assigning an empty body makes Koa remove type and length, which HEAD needs.
  if (answer.headers) ctx.set({ ...answer.headers })
}

import type { ParameterizedContext } from 'koa'
import { countBadCredential } from '../http/bad-credentials.ts'
import { createBodyReader, jsonObjectOf } from '../http/body.ts'
import { createMatcher, type Matcher } from '../http/matcher.ts'
import { pipeline } from '../http/pipeline.ts'
import { isRefusal } from '../http/reply.ts'
import { refusalOf } from '../http/send.ts'
import type { HttpServices } from '../http/services.ts'
import type { RequestWindow } from '../http/window.ts'
import { authenticate, basicCredentials } from '../voice/basic.ts'
import { isVoiceRefusal } from '../voice/errors.ts'
import { type CallEnvironment, error, errorOf, type GeneralContext, type GeneralError, isError } from './environment.ts'
import { live } from './live.ts'
import { sandbox } from './sandbox.ts'

const RATE: RequestWindow = { requests: 600, seconds: 60 }
const readBody = createBodyReader(64 * 1024)
const MAX_MESSAGE_CHARACTERS = 3000
const MAX_PAGE_SIZE = 100
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

interface Answer {
  readonly status: number
  readonly body: object
}
type Handler = (ctx: ParameterizedContext) => Promise<void>

/** Returns the handlers by prefix. Production places calls, the sandbox simulates them. Each has its own rate limit. */
export const generalHandlers = (
  services: HttpServices,
  rate: RequestWindow = RATE,
): Readonly<Record<string, Handler>> => ({
  '/api/v1': handler('/api/v1', live, services, rate),
  '/sandbox/api/v1': handler('/sandbox/api/v1', sandbox, services, rate),
})

function handler(prefix: string, environment: CallEnvironment, services: HttpServices, rate: RequestWindow): Handler {
  const { clock } = services
  const windows = services.limits.window(prefix, rate)
  const matcher = matcherOf(environment)
  return pipeline<Answer, GeneralError>({
    isRefusal: isError,
    failed: (thrown, at) => errorOf(refusalOf(thrown, services, at)),
    send: (ctx, { status, body }) => send(ctx, status, body),
    refuse(ctx, { error_status, code, message, headers }) {
      ctx.set({ ...headers })
      send(ctx, error_status, { error: { code, message } })
    },
  })
    .gather('credential', async ({ ctx }) => {
      const username = basicCredentials(ctx.req)?.username ?? ''
      const account = /^AC[0-9a-f]{32}$/.test(username) ? await authenticate(ctx.req, username, services) : null
      if (account !== null && !isVoiceRefusal(account)) return { account }
      const { allowed, headers } = await countBadCredential(services, ctx.req)
      if (!allowed) return error(429, 'rate_limited', 'Too many requests without a good credential.', headers)
      return error(401, 'unauthenticated', 'Send the account identifier and its auth token by Basic authentication.', {
        'WWW-Authenticate': 'Basic realm="strowger"',
      })
    })
    .check('rate', async ({ ctx, account }) => {
      const { allowed, headers } = await windows.take(account.account_sid, clock.monotonic_ms(), clock.now())
      ctx.set({ ...headers })
      return allowed ? null : error(429, 'rate_limited', 'Too many requests: wait until the window resets.')
    })
    .gather('path and method', ({ ctx }) => {
      const found = matcher.find(ctx.method === 'HEAD' ? 'GET' : ctx.method, ctx.path.slice(prefix.length))
      if (!found) return error(404, 'not_found', 'This path is not served.')
      if (!('allow' in found)) return { run: found.value, id: found.params['call_id'] ?? '' }
      const Allow = found.allow.flatMap(method => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ')
      return error(405, 'method_not_allowed', `The method ${ctx.method} is not served here.`, { Allow })
    })
    .answer('route', ({ ctx, account, run, id }) => run(ctx, { services, account, now_ms: clock.now() }, id))
}

type Run = (ctx: ParameterizedContext, context: GeneralContext, id: string) => Promise<Answer | GeneralError>

function matcherOf(environment: CallEnvironment): Matcher<Run> {
  const matcher = createMatcher<Run>()
  matcher.add('GET', '/calls', async (ctx, context) => {
    const query = new URLSearchParams(ctx.querystring)
    const page = wholeNumber(query.get('page') ?? '0', 0, 1_000_000)
    if (page === null) return error(400, 'invalid_parameter', 'page is a whole number from 0.')
    const page_size = wholeNumber(query.get('page_size') ?? '50', 1, MAX_PAGE_SIZE)
    if (page_size === null) return error(400, 'invalid_parameter', `page_size is 1 to ${MAX_PAGE_SIZE}.`)
    const calls = await environment.list(context, { offset: page * page_size, limit: page_size + 1 })
    const has_more = calls.length > page_size
    return { status: 200, body: { data: calls.slice(0, page_size), page, page_size, has_more } }
  })
  matcher.add('POST', '/calls', async (ctx, context) => {
    const sent = await readBody(ctx)
    if (isRefusal(sent)) return errorOf(sent)
    const body = jsonObjectOf(sent)
    if (isRefusal(body)) return errorOf(body)
    const wanted = readWanted(body ?? {})
    if (isError(wanted)) return wanted
    const call = await environment.create(context, wanted)
    return isError(call) ? call : { status: 201, body: call }
  })
  matcher.add('GET', '/calls/{call_id}', async (_ctx, context, id) => {
    const call = UUID.test(id) ? await environment.find(context, id) : null
    return call ? { status: 200, body: call } : error(404, 'not_found', `There is no call ${id.slice(0, 60)}.`)
  })
  return matcher
}

function readWanted(body: object): { readonly to: string; readonly message: string } | GeneralError {
  const unknown = Object.keys(body).find(name => name !== 'to' && name !== 'message')
  if (unknown !== undefined) return error(400, 'invalid_parameter', `${unknown.slice(0, 60)} is not a parameter.`)
  const { to, message } = body as { readonly to?: unknown; readonly message?: unknown }
  if (typeof to !== 'string' || !/^\+[1-9][0-9]{6,14}$/.test(to))
    return error(400, 'invalid_parameter', 'to is required: an E.164 number such as +2348030000001.')
  if (typeof message !== 'string' || message.trim() === '')
    return error(400, 'invalid_parameter', 'message is required: the text to be spoken.')
  if (message.length > MAX_MESSAGE_CHARACTERS)
    return error(400, 'invalid_parameter', `message is at most ${MAX_MESSAGE_CHARACTERS} characters.`)
  // XML 1.0 §2.2 does not allow these characters, even escaped.
  if (/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Surrogate}/u.test(message))
    return error(400, 'invalid_parameter', 'message has characters that cannot be spoken.')
  return { to, message }
}

const wholeNumber = (text: string, least: number, most: number): number | null =>
  /^[0-9]{1,9}$/.test(text) && Number(text) >= least && Number(text) <= most ? Number(text) : null

function send(ctx: ParameterizedContext, status: number, body: object): void {
  ctx.status = status
  ctx.type = 'application/json; charset=utf-8'
  ctx.body = JSON.stringify(body)
}

import { createAddressGuard } from '../../domain/network/address-guard.ts'
import { redirectOf } from '../../domain/webhooks/redirects.ts'
import { type HttpTarget, parseTarget } from '../../domain/webhooks/target.ts'
import { systemClock } from '../clock.ts'
import { basic, DigestAnswers } from './authorize.ts'
import { memorySink } from './body.ts'
import { type DownloadOutcome, download } from './download.ts'
import { asFailure, HttpError } from './failure.ts'
import { createGate } from './gate.ts'
import { type ClientParts, resolveChecked, type SinkFactory, send } from './hop.ts'
import { REQUEST_LIMITS, withDefaults } from './limits.ts'
import { createIdleConnections } from './pool.ts'
import { createHostResolver } from './resolve.ts'
import type { HttpClient, HttpClientOptions, HttpHop, HttpLimits, HttpRequest, HttpResult } from './types.ts'

/** Creates the client. Throws when `allow_private` contains an invalid range. */
export function createHttpClient(options: HttpClientOptions): HttpClient {
  const clock = options.clock ?? systemClock
  const shared: ClientParts = {
    clock,
    guard: createAddressGuard(options.allow_private),
    resolve: options.resolver ?? createHostResolver(),
    idle: createIdleConnections(),
    gate: createGate(options.max_in_flight ?? 1000, options.max_in_flight_per_origin ?? 100),
    user_agent: options.user_agent,
    ca: options.ca,
    idle_ms: options.idle_ms ?? 4_000,
  }
  const running = new Set<{ stop(reason: HttpError): void; readonly ended: Promise<unknown> }>()
  let closed = false

  const run = async <T>(request: HttpRequest, limits: HttpLimits, sink: SinkFactory<T>) => {
    const stop = new AbortController()
    if (closed) stop.abort(new HttpError('aborted', 'the HTTP client is closed'))
    const ended = exchange(shared, request, limits, stop, sink)
    const entry = { stop: (reason: HttpError) => stop.abort(reason), ended }
    running.add(entry)
    const result = await ended
    running.delete(entry)
    if (!result.ok) options.log?.debug({ url: origin(result.url), error: result.error, detail: result.detail }, 'fetch')
    return result
  }

  return {
    async request(request) {
      const { keep_body = 'always' } = request
      const sink: SinkFactory<Buffer> = ({ status }) => {
        if (keep_body === 'never' || (keep_body === 'success' && (status < 200 || status > 299))) return null
        const memory = memorySink()
        return { stream: memory, finish: async () => memory.bytes() }
      }
      const result = await run(request, withDefaults(request, REQUEST_LIMITS), sink)
      if (!result.ok) return result
      const { content, ...answer } = result
      return { ...answer, body: content ?? Buffer.alloc(0) } satisfies HttpResult
    },

    download: async request => download(request, run),

    async resolve(hostname, timeout_ms = REQUEST_LIMITS.connect_timeout_ms) {
      const stop = new AbortController()
      const timer = clock.after(timeout_ms, () =>
        stop.abort(new HttpError('dns', `no address within ${timeout_ms} ms`)),
      )
      try {
        return { ok: true, addresses: await resolveChecked(shared, hostname, stop.signal) }
      } catch (cause) {
        const { error, message } = asFailure(cause, 'connect')
        return { ok: false, error, detail: message }
      } finally {
        timer.cancel()
      }
    },

    stats: () => ({
      in_flight: shared.gate.in_flight(),
      waiting: shared.gate.waiting(),
      idle_connections: shared.idle.count(),
    }),

    async close() {
      closed = true
      const open = [...running]
      for (const entry of open) entry.stop(new HttpError('aborted', 'the HTTP client is closed'))
      await Promise.all([shared.idle.close(), ...open.map(entry => entry.ended)])
    },
  }
}

/** Runs one exchange under its total timeout. The only place where failures become values. */
async function exchange<T>(
  shared: ClientParts,
  request: HttpRequest,
  limits: HttpLimits,
  stop: AbortController,
  sink: SinkFactory<T>,
): Promise<DownloadOutcome<T>> {
  const { clock } = shared
  const started_ms = clock.monotonic_ms()
  const elapsed = (): number => Math.round(clock.monotonic_ms() - started_ms)
  const aborted = (): void => stop.abort(new HttpError('aborted', 'the caller ended the request'))
  const total = clock.after(limits.total_timeout_ms, () =>
    stop.abort(new HttpError('total_timeout', `no complete answer within ${limits.total_timeout_ms} ms`)),
  )
  if (request.signal?.aborted) aborted()
  else request.signal?.addEventListener('abort', aborted)
  const at = { url: withoutUserInfo(request.url) }
  try {
    const answer = await follow(shared, request, limits, stop, sink, at)
    return { ok: true, ...answer, duration_ms: elapsed() }
  } catch (cause) {
    const { error, message } = asFailure(stop.signal.aborted ? stop.signal.reason : cause, 'exchange')
    return { ok: false, error, detail: message, url: at.url, duration_ms: elapsed() }
  } finally {
    total.cancel()
    request.signal?.removeEventListener('abort', aborted)
  }
}

/** Follows redirects to the final response. */
async function follow<T>(
  shared: ClientParts,
  request: HttpRequest,
  limits: HttpLimits,
  stop: AbortController,
  sink: SinkFactory<T>,
  at: { url: string },
) {
  const parsed = parseTarget(request.url)
  if (!parsed.ok) throw new HttpError('bad_url', parsed.detail)
  const first = parsed.target
  let target = first
  let hop: HttpHop = { url: first.url, method: request.method ?? 'GET', body: request.body ?? null }
  let digest = new DigestAnswers(first.credentials)
  let authorization: string | null = null
  for (let redirects = 0; ; ) {
    at.url = target.url
    const headers = hopHeaders(shared, request, { hop, target, first, authorization })
    const leave = await shared.gate.enter(target.origin, stop.signal, request.project_id)
    try {
      const open = await send(shared, { target, hop, headers, limits, stop, replayable: request.replayable === true })
      try {
        const { status } = open
        request.hop_answered?.(hop, { status, set_cookie: open.set_cookie })
        authorization = digest.to({ status, challenge: open.headers['www-authenticate'] }, hop, target)
        if (authorization !== null) continue
        const next = redirectOf({ status, location: open.headers['location'] }, hop)
        if (next.kind === 'bad') throw new HttpError('bad_redirect', next.detail)
        if (next.kind === 'final') {
          const content = await open.read(sink(open))
          return { status, headers: open.headers, url: target.url, redirects, content }
        }
        if (redirects >= limits.max_redirects)
          throw new HttpError('too_many_redirects', `more than ${limits.max_redirects} redirects`)
        redirects++
        target = next.target
        hop = { url: target.url, method: next.method, body: next.keep_body ? hop.body : null }
        digest = new DigestAnswers(target.origin === first.origin ? first.credentials : null)
      } finally {
        open.release()
      }
    } finally {
      leave()
    }
  }
}

/** Returns the headers of a hop. Names keep their case on the wire: some receivers read raw headers as documented. */
function hopHeaders(
  shared: ClientParts,
  request: HttpRequest,
  at: {
    readonly hop: HttpHop
    readonly target: HttpTarget
    readonly first: HttpTarget
    readonly authorization: string | null
  },
) {
  const { hop, target, first, authorization } = at
  const headers = new Map<string, [name: string, value: string]>()
  const set = (name: string, value: string) => headers.set(name.toLowerCase(), [name, value])
  set('Accept', '*/*')
  // Documents are small. A body that comes encoded nevertheless is decoded within the same limit.
  set('Accept-Encoding', 'identity')
  set('User-Agent', shared.user_agent)
  const at_home = target.origin === first.origin
  const credentials = target.credentials ?? (at_home ? first.credentials : null)
  if (credentials !== null) set('Authorization', basic(credentials))
  for (const [name, value] of Object.entries(request.headers ?? {})) {
    if (!at_home && /^(authorization|cookie|xi-api-key)$/i.test(name)) continue
    if (hop.body === null && /^content-/i.test(name)) continue
    set(name, value)
  }
  for (const [name, value] of Object.entries(request.hop_headers?.(hop) ?? {})) set(name, value)
  if (authorization !== null) set('Authorization', authorization)
  return Object.fromEntries(headers.values())
}

function withoutUserInfo(url: string): string {
  const parsed = parseTarget(url)
  return parsed.ok ? parsed.target.url : url.slice(0, 200).replace(/\/\/[^/?#]*@/, '//')
}

/** Returns the part of a URL that is logged: paths and queries can contain customers' secrets. */
const origin = (url: string): string => {
  const parsed = parseTarget(url)
  return parsed.ok ? parsed.target.origin : '(no URL)'
}

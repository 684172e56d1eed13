import { randomBytes } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { rename, stat, unlink } from 'node:fs/promises'
import { isIP } from 'node:net'
import type { Writable } from 'node:stream'
import type { Client, Dispatcher } from 'undici'
import { type HttpMethod, redirect } from '../../domain/webhooks/redirects.ts'
import { parseTarget, type Target } from '../../domain/webhooks/target.ts'
import { type Clock, systemClock, type Timer } from '../clock.ts'
import { memorySink, readBody } from './body.ts'
import { clientOn, connectSocket } from './connect.ts'
import { asFailure, Failure } from './failure.ts'
import { createGate, type Gate } from './gate.ts'
import { type AddressGuard, createAddressGuard } from './guard.ts'
import { createIdleConnections, end, type IdleConnections } from './pool.ts'
import { createHostResolver, type ResolveHost } from './resolve.ts'
import type {
  DownloadRequest,
  DownloadResult,
  Hop,
  HttpAnswer,
  HttpClient,
  HttpClientOptions,
  HttpFailure,
  HttpLimits,
  HttpRequest,
  HttpResult,
} from './types.ts'

const REQUEST_LIMITS: HttpLimits = {
  connect_timeout_ms: 5_000,
  read_timeout_ms: 15_000,
  total_timeout_ms: 15_000,
  max_bytes: 64 * 1024,
  max_redirects: 5,
}
const DOWNLOAD_LIMITS: HttpLimits = { ...REQUEST_LIMITS, total_timeout_ms: 60_000, max_bytes: 32 * 1024 * 1024 }
const MAX_ADDRESSES = 8

/** What all exchanges of one client share. */
interface Shared {
  readonly clock: Clock
  readonly guard: AddressGuard
  readonly resolve: ResolveHost
  readonly idle: IdleConnections
  readonly gate: Gate
  readonly user_agent: string
  readonly ca: string | undefined
  readonly idle_ms: number
}

/** Creates the client; throws when `allow_private` holds something that is no range. */
export function createHttpClient(options: HttpClientOptions): HttpClient {
  const clock = options.clock ?? systemClock
  const shared: Shared = {
    clock,
    guard: createAddressGuard(options.allow_private),
    resolve: options.resolver ?? createHostResolver(),
    idle: createIdleConnections(),
    gate: createGate(options.max_in_flight ?? 1000, options.max_in_flight_per_origin ?? 100),
    user_agent: options.user_agent,
    ca: options.ca,
    idle_ms: options.idle_ms ?? 4_000,
  }
  const running = new Set<{ stop(reason: Failure): void; readonly ended: Promise<unknown> }>()
  let closed = false

  const run = async <T>(request: HttpRequest, limits: HttpLimits, sink: SinkFactory<T>) => {
    const stop = new AbortController()
    if (closed) stop.abort(new Failure('aborted', 'the HTTP client is closed'))
    const ended = exchange(shared, request, limits, stop, sink)
    const entry = { stop: (reason: Failure) => stop.abort(reason), ended }
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

    stats: () => ({
      in_flight: shared.gate.in_flight(),
      waiting: shared.gate.waiting(),
      idle_connections: shared.idle.count(),
    }),

    async close() {
      closed = true
      const open = [...running]
      for (const entry of open) entry.stop(new Failure('aborted', 'the HTTP client is closed'))
      await Promise.all([shared.idle.close(), ...open.map(entry => entry.ended)])
    },
  }
}

/** Where an answer's body goes; null drops it. `finish` runs when it is complete, `discard` when it is not. */
type SinkFactory<T> = (answer: { status: number }) => Sink<T> | null
interface Sink<T> {
  readonly stream: Writable
  finish(): Promise<T>
  discard?(): Promise<void>
}
type Outcome<T> = (Omit<HttpAnswer, 'body'> & { readonly content: T | null }) | HttpFailure
type Run = <T>(request: HttpRequest, limits: HttpLimits, sink: SinkFactory<T>) => Promise<Outcome<T>>

async function download(request: DownloadRequest, run: Run): Promise<DownloadResult> {
  const part = `${request.file}.${randomBytes(6).toString('hex')}.part`
  const sink: SinkFactory<number> = answer => {
    if (answer.status !== 200) return null
    return {
      stream: createWriteStream(part, { flags: 'wx', mode: 0o640 }),
      async finish() {
        const { size } = await stat(part)
        await rename(part, request.file)
        return size
      },
      // The part may not exist: opening it is what failed.
      discard: () => unlink(part).catch(() => undefined),
    }
  }
  const validators = {
    ...(request.etag ? { 'if-none-match': request.etag } : {}),
    ...(request.last_modified ? { 'if-modified-since': request.last_modified } : {}),
  }
  const headers = { ...request.headers, ...validators }
  const result = await run({ ...request, headers, method: 'GET' }, withDefaults(request, DOWNLOAD_LIMITS), sink)
  if (!result.ok) return result
  const { content, ...answer } = result
  return {
    ...answer,
    saved: content !== null,
    bytes: content ?? 0,
    etag: answer.headers['etag'] ?? null,
    last_modified: answer.headers['last-modified'] ?? null,
    content_type: answer.headers['content-type'] ?? null,
  }
}

/** One exchange from URL to value; the only place where failures become values, and where timers and slots are returned. */
async function exchange<T>(
  shared: Shared,
  request: HttpRequest,
  limits: HttpLimits,
  stop: AbortController,
  sink: SinkFactory<T>,
): Promise<Outcome<T>> {
  const { clock } = shared
  const started_ms = clock.monotonic_ms()
  const elapsed = (): number => Math.round(clock.monotonic_ms() - started_ms)
  const aborted = (): void => stop.abort(new Failure('aborted', 'the caller ended the request'))
  const total = clock.after(limits.total_timeout_ms, () =>
    stop.abort(new Failure('total_timeout', `no complete answer within ${limits.total_timeout_ms} ms`)),
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

/** Hop after hop until an answer that is no redirect. */
async function follow<T>(
  shared: Shared,
  request: HttpRequest,
  limits: HttpLimits,
  stop: AbortController,
  sink: SinkFactory<T>,
  at: { url: string },
) {
  const parsed = parseTarget(request.url)
  if (!parsed.ok) throw new Failure('bad_url', parsed.detail)
  const first = parsed.target
  let target = first
  let hop: Hop = { url: first.url, method: request.method ?? 'GET', body: request.body ?? null }
  for (let redirects = 0; ; redirects++) {
    at.url = target.url
    const headers = hopHeaders(shared, request, hop, target, first)
    const leave = await shared.gate.enter(target.origin, stop.signal)
    try {
      const open = await send(shared, { target, hop, headers, limits, stop, replayable: request.replayable === true })
      try {
        request.hop_answered?.(hop, { status: open.status, set_cookie: open.set_cookie })
        const next = redirect({ status: open.status, location: open.headers['location'] }, hop)
        if (next.kind === 'bad') throw new Failure('bad_redirect', next.detail)
        if (next.kind === 'final') {
          const content = await open.read(sink(open))
          return { status: open.status, headers: open.headers, url: target.url, redirects, content }
        }
        if (redirects >= limits.max_redirects)
          throw new Failure('too_many_redirects', `more than ${limits.max_redirects} redirects`)
        target = next.target
        hop = { url: target.url, method: next.method, body: next.keep_body ? hop.body : null }
      } finally {
        open.release()
      }
    } finally {
      leave()
    }
  }
}

interface Sending {
  readonly target: Target
  readonly hop: Hop
  readonly headers: Record<string, string>
  readonly limits: HttpLimits
  readonly stop: AbortController
  readonly replayable: boolean
}

/** An answer whose head has arrived. `release` must be called; it keeps the connection when the body was read whole. */
interface OpenAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly set_cookie: readonly string[]
  read<T>(sink: Sink<T> | null): Promise<T | null>
  release(): void
}

async function send(shared: Shared, sending: Sending): Promise<OpenAnswer> {
  const { hop, stop, target } = sending
  const may_reuse = sending.replayable || hop.method === 'GET' || hop.method === 'HEAD'
  const kept = may_reuse ? shared.idle.take(target.origin) : null
  if (kept !== null) {
    try {
      return await dispatch(shared, sending, kept)
    } catch (cause) {
      // The server may have closed a kept connection just as we used it: nothing was answered, a new one decides.
      const { error } = asFailure(cause, 'exchange')
      if (error !== 'network' || stop.signal.aborted) throw cause
    }
  }
  return dispatch(shared, sending, await connect(shared, sending))
}

async function connect(shared: Shared, { target, limits, stop }: Sending): Promise<Client> {
  const phase = new AbortController()
  let error: 'dns' | 'connect_timeout' = 'dns'
  const timer = shared.clock.after(limits.connect_timeout_ms, () =>
    phase.abort(new Failure(error, `no connection within ${limits.connect_timeout_ms} ms`)),
  )
  const signal = AbortSignal.any([stop.signal, phase.signal])
  try {
    const addresses = await resolveChecked(shared, target.hostname, signal)
    error = 'connect_timeout'
    const options = { target, addresses, timeout_ms: limits.connect_timeout_ms, ca: shared.ca, signal }
    return clientOn(await connectSocket(options, shared.guard), target, Math.max(1, shared.idle_ms))
  } finally {
    timer.cancel()
  }
}

/** Addresses of a host, every one of them allowed: one forbidden address among them refuses the host. */
async function resolveChecked(shared: Shared, hostname: string, signal: AbortSignal): Promise<readonly string[]> {
  const addresses =
    isIP(hostname) > 0 ? [hostname] : (await until(resolveNamed(shared, hostname), signal)).slice(0, MAX_ADDRESSES)
  if (addresses.length === 0) throw new Failure('dns', `${hostname} has no address`)
  for (const address of addresses) {
    const refusal = shared.guard.refusal(address)
    if (refusal !== null) throw new Failure('private_address', `${hostname} is ${address} (${refusal})`)
  }
  return addresses
}

async function resolveNamed(shared: Shared, hostname: string): Promise<readonly string[]> {
  try {
    return await shared.resolve(hostname)
  } catch (cause) {
    throw new Failure('dns', `${hostname}: ${cause instanceof Error ? cause.message : String(cause)}`)
  }
}

/** Sends one request on a connection and waits for the head of its answer. On any failure the connection is ended. */
async function dispatch(shared: Shared, sending: Sending, client: Client): Promise<OpenAnswer> {
  const { hop, limits, stop, target } = sending
  const silence = watch(shared.clock, limits.read_timeout_ms, () =>
    stop.abort(new Failure('read_timeout', `the server was silent for ${limits.read_timeout_ms} ms`)),
  )
  const ended = (): void => {
    client.destroy(asFailure(stop.signal.reason, 'exchange')).catch(() => undefined)
  }
  let body: Dispatcher.ResponseData['body'] | null = null
  let whole = false
  const release = (): void => {
    silence.cancel()
    stop.signal.removeEventListener('abort', ended)
    if (body === null || stop.signal.aborted || shared.idle_ms === 0) end(client)
    else if (whole) shared.idle.put(target.origin, client)
    else shared.idle.drain(target.origin, client, body)
  }
  stop.signal.addEventListener('abort', ended)
  try {
    if (stop.signal.aborted) throw stop.signal.reason
    const { path } = target
    const response = await client.request({ path, method: hop.method, headers: sending.headers, body: hop.body })
    silence.touch()
    const headers = flatten(response.headers)
    body = response.body
    return {
      status: response.statusCode,
      headers,
      set_cookie: [response.headers['set-cookie'] ?? []].flat(),
      async read(sink) {
        if (sink === null) return null
        const content = await readInto(response.body, headers, { ...limits, touched: silence.touch }, sink)
        whole = true
        return content
      },
      release,
    }
  } catch (cause) {
    release()
    throw cause
  }
}

async function readInto<T>(
  body: Dispatcher.ResponseData['body'],
  headers: Readonly<Record<string, string>>,
  limits: { max_bytes: number; touched: () => void },
  sink: Sink<T>,
): Promise<T> {
  try {
    if (Number(headers['content-length']) > limits.max_bytes)
      throw new Failure('too_large', `Content-Length ${headers['content-length']} is over ${limits.max_bytes} bytes`)
    await readBody(body, headers['content-encoding'], limits, sink.stream)
    return await sink.finish()
  } catch (cause) {
    await sink.discard?.()
    throw isFileError(cause) ? new Failure('file', cause.message) : cause
  }
}

/** Errors of the file system name the call that failed. */
const isFileError = (cause: unknown): cause is NodeJS.ErrnoException =>
  cause instanceof Error && 'syscall' in cause && /^(open|write|rename|stat|close)$/.test(String(cause.syscall))

function hopHeaders(shared: Shared, request: HttpRequest, hop: Hop, target: Target, first: Target) {
  const headers: Record<string, string> = {
    accept: '*/*',
    // Documents are small; what comes encoded all the same is decoded within the same limit.
    'accept-encoding': 'identity',
    'user-agent': shared.user_agent,
  }
  const at_home = target.origin === first.origin
  const credentials = target.credentials ?? (at_home ? first.credentials : null)
  if (credentials !== null) headers['authorization'] = basic(credentials)
  for (const [name, value] of Object.entries(request.headers ?? {})) {
    const key = name.toLowerCase()
    if (!at_home && (key === 'authorization' || key === 'cookie')) continue
    if (hop.body === null && key.startsWith('content-')) continue
    headers[key] = value
  }
  for (const [name, value] of Object.entries(request.hop_headers?.(hop) ?? {})) headers[name.toLowerCase()] = value
  return headers
}

const basic = ({ username, password }: { username: string; password: string }): string =>
  `Basic ${Buffer.from(`${username}:${password}`, 'utf8').toString('base64')}`

function flatten(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  const flat: Record<string, string> = Object.create(null)
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined) flat[name.toLowerCase()] = Array.isArray(value) ? value.join(', ') : value
  return flat
}

/** Ends a silence: `expired` runs when `touch` was not called for `timeout_ms`. */
function watch(clock: Clock, timeout_ms: number, expired: () => void): { touch(): void; cancel(): void } {
  let timer: Timer = clock.after(timeout_ms, expired)
  return {
    touch() {
      timer.cancel()
      timer = clock.after(timeout_ms, expired)
    },
    cancel: () => timer.cancel(),
  }
}

/** The promise's value, or the signal's reason when that comes first. */
function until<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const aborted = (): void => reject(signal.reason)
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', aborted))
    if (signal.aborted) aborted()
    else signal.addEventListener('abort', aborted)
  })
}

const withDefaults = (given: Partial<HttpLimits>, defaults: HttpLimits): HttpLimits => ({
  connect_timeout_ms: given.connect_timeout_ms ?? defaults.connect_timeout_ms,
  read_timeout_ms: given.read_timeout_ms ?? defaults.read_timeout_ms,
  total_timeout_ms: given.total_timeout_ms ?? defaults.total_timeout_ms,
  max_bytes: given.max_bytes ?? defaults.max_bytes,
  max_redirects: given.max_redirects ?? defaults.max_redirects,
})

function withoutUserInfo(url: string): string {
  const parsed = parseTarget(url)
  return parsed.ok ? parsed.target.url : url.slice(0, 200).replace(/\/\/[^/?#]*@/, '//')
}

/** Paths and queries can carry customers' secrets; the log gets the origin. */
const origin = (url: string): string => {
  const parsed = parseTarget(url)
  return parsed.ok ? parsed.target.origin : '(no URL)'
}

export type { HttpMethod }

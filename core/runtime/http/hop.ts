import { isIP } from 'node:net'
import type { Writable } from 'node:stream'
import type { Client, Dispatcher } from 'undici'
import type { AddressGuard } from '../../domain/network/address-guard.ts'
import type { HttpTarget } from '../../domain/webhooks/target.ts'
import type { Clock, Timer } from '../clock.ts'
import { pipeBody } from './body.ts'
import { clientOn, connectSocket, loadUndici, requestOn } from './connect.ts'
import { asFailure, HttpError } from './failure.ts'
import type { Gate } from './gate.ts'
import { end, type IdleConnections } from './pool.ts'
import type { ResolveHost } from './resolve.ts'
import type { HttpHop, HttpLimits } from './types.ts'

/** The most addresses that one connection tries. The guard checks all addresses of a name. */
const MAX_ADDRESSES = 8

/** State that all exchanges of one client share. */
export interface ClientParts {
  readonly clock: Clock
  readonly guard: AddressGuard
  readonly resolve: ResolveHost
  readonly idle: IdleConnections
  readonly gate: Gate
  readonly user_agent: string
  readonly ca: string | undefined
  readonly idle_ms: number
}

/** Creates the receiver of a body; null drops the body. `finish` runs after a complete body, `discard` otherwise. */
export type SinkFactory<T> = (answer: { status: number }) => Sink<T> | null
interface Sink<T> {
  readonly stream: Writable
  finish(): Promise<T>
  discard?(): Promise<void>
}

interface Sending {
  readonly target: HttpTarget
  readonly hop: HttpHop
  readonly headers: Record<string, string>
  readonly limits: HttpLimits
  readonly stop: AbortController
  readonly replayable: boolean
}

/**
 * A response whose head has arrived. The caller must call `release`, which keeps the connection when it is reusable.
 */
interface OpenAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly set_cookie: readonly string[]
  read<T>(sink: Sink<T> | null): Promise<T | null>
  release(): void
}

/** Sends one request, on an idle connection where that is safe. A rejected send leaves no connection open. */
export async function send(shared: ClientParts, sending: Sending): Promise<OpenAnswer> {
  const { hop, stop, target } = sending
  const may_reuse = sending.replayable || hop.method === 'GET' || hop.method === 'HEAD'
  const kept = may_reuse ? shared.idle.take(target.origin) : null
  if (kept !== null) {
    try {
      return await dispatch(shared, sending, kept)
    } catch (cause) {
      // The server may have closed the idle connection just as we used it. Without a response, try a new connection.
      const { error } = asFailure(cause, 'exchange')
      if (error !== 'network' || stop.signal.aborted) throw cause
    }
  }
  return dispatch(shared, sending, await connect(shared, sending))
}

async function connect(shared: ClientParts, { target, limits, stop }: Sending): Promise<Client> {
  const phase = new AbortController()
  let error: 'dns' | 'connect_timeout' = 'dns'
  const timer = shared.clock.after(limits.connect_timeout_ms, () =>
    phase.abort(new HttpError(error, `no connection within ${limits.connect_timeout_ms} ms`)),
  )
  const signal = AbortSignal.any([stop.signal, phase.signal])
  try {
    const addresses = await resolveChecked(shared, target.hostname, signal)
    error = 'connect_timeout'
    const options = { target, addresses, timeout_ms: limits.connect_timeout_ms, ca: shared.ca, signal }
    const undici = await loadUndici()
    return clientOn(await connectSocket(options, shared.guard), {
      undici,
      target,
      idle_ms: Math.max(1, shared.idle_ms),
    })
  } finally {
    timer.cancel()
  }
}

/** Resolves a host and checks its addresses. One forbidden address refuses the whole host. */
export async function resolveChecked(
  shared: ClientParts,
  hostname: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const addresses = isIP(hostname) > 0 ? [hostname] : await until(resolveNamed(shared, hostname), signal)
  if (addresses.length === 0) throw new HttpError('dns', `${hostname} has no address`)
  for (const address of addresses) {
    const refusal = shared.guard.refusal(address)
    if (refusal !== null) throw new HttpError('private_address', `${hostname} is ${address} (${refusal})`)
  }
  return addresses.slice(0, MAX_ADDRESSES)
}

async function resolveNamed(shared: ClientParts, hostname: string): Promise<readonly string[]> {
  try {
    return await shared.resolve(hostname)
  } catch (cause) {
    throw new HttpError('dns', `${hostname}: ${cause instanceof Error ? cause.message : String(cause)}`)
  }
}

/** Sends one request on a connection and waits for the head of the response. Any failure ends the connection. */
async function dispatch(shared: ClientParts, sending: Sending, client: Client): Promise<OpenAnswer> {
  const { hop, limits, stop, target } = sending
  const silence = watch(shared.clock, limits.read_timeout_ms, () =>
    stop.abort(new HttpError('read_timeout', `the server was silent for ${limits.read_timeout_ms} ms`)),
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
    const response = await requestOn(client, { path, method: hop.method, headers: sending.headers, body: hop.body })
    silence.touch()
    const headers = flatten(response.headers)
    body = response.body
    // Readers handle the body's errors themselves. An error of an unread body must not end the process.
    body.on('error', () => undefined)
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
      throw new HttpError('too_large', `Content-Length ${headers['content-length']} is over ${limits.max_bytes} bytes`)
    await pipeBody(body, headers['content-encoding'], limits, sink.stream)
    return await sink.finish()
  } catch (cause) {
    await sink.discard?.()
    throw isFileError(cause) ? new HttpError('file', cause.message) : cause
  }
}

/** Reports whether an error comes from the file system: such errors name the failed system call. */
const isFileError = (cause: unknown): cause is NodeJS.ErrnoException =>
  cause instanceof Error && 'syscall' in cause && /^(open|write|rename|stat|close)$/.test(String(cause.syscall))

function flatten(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  const flat: Record<string, string> = Object.create(null)
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined) flat[name.toLowerCase()] = Array.isArray(value) ? value.join(', ') : value
  return flat
}

/** Starts a watchdog: `expired` runs when `touch` is not called for `timeout_ms`. */
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

/** Settles like the promise, or rejects with the signal's reason if the signal aborts first. */
function until<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const aborted = (): void => reject(signal.reason)
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', aborted))
    if (signal.aborted) aborted()
    else signal.addEventListener('abort', aborted)
  })
}

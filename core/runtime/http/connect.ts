import { connect as connectTcp, isIP, type LookupFunction, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Client, Dispatcher } from 'undici'
import type { AddressGuard } from '../../domain/network/address-guard.ts'
import type { HttpTarget } from '../../domain/webhooks/target.ts'
import { asFailure, HttpError } from './failure.ts'
import { dropInterim } from './interim.ts'

interface ConnectOptions {
  readonly target: HttpTarget
  /** The addresses that passed the guard. The client connects to no others. */
  readonly addresses: readonly string[]
  readonly timeout_ms: number
  /** Trusted roots in PEM in place of the system's. */
  readonly ca: string | undefined
  readonly signal: AbortSignal
}

/** Connects to one of `addresses`, with TLS for https. Rejects with Failure and leaves no open socket behind. */
export async function connectSocket(options: ConnectOptions, guard: AddressGuard): Promise<Socket> {
  const tcp = openTcp(options)
  await settled(tcp, 'connect', 'connect', options.signal)
  const refusal = guard.refusal(tcp.remoteAddress ?? '')
  if (refusal !== null) {
    tcp.destroy()
    throw new HttpError('private_address', `connected to ${tcp.remoteAddress} (${refusal})`)
  }
  if (options.target.scheme === 'http') return tcp
  const { hostname } = options.target
  const tls = connectTls({
    socket: tcp,
    // RFC 6066 §3 forbids address literals in server_name. For them the certificate is checked against `host`.
    ...(isIP(hostname) === 0 ? { servername: hostname } : { host: hostname, servername: '' }),
    minVersion: 'TLSv1.2',
    ALPNProtocols: ['http/1.1'],
    ...(options.ca === undefined ? {} : { ca: options.ca }),
  })
  tls.on('close', () => tcp.destroy())
  await settled(tls, 'secureConnect', 'tls', options.signal)
  return tls
}

/**
 * Loads what we use of undici, with the first request. All of undici, with its caches, mocks and fetch, takes three
 * times as long and 9 MB more. Signaling loads it at its start, so that no call waits for it.
 */
export async function loadUndici(): Promise<Pick<typeof import('undici'), 'Client'>> {
  const [{ default: Client }, { default: request }] = await Promise.all([
    import('undici/lib/dispatcher/client.js'),
    import('undici/lib/api/api-request.js'),
  ])
  // As the index of undici does.
  Client.prototype.request = request
  return { Client }
}

/** For each client, what its socket must know before a request. */
const beforeRequest = new WeakMap<Client, () => void>()

/** Sends a request on a client of `clientOn`. */
export function requestOn(client: Client, request: Dispatcher.RequestOptions): Promise<Dispatcher.ResponseData> {
  beforeRequest.get(client)?.()
  return client.request(request)
}

/** Creates an HTTP/1.1 client on this socket. The client never connects again: it ends with the socket. */
export function clientOn(
  socket: Socket,
  {
    undici,
    target,
    idle_ms,
  }: { readonly undici: Awaited<ReturnType<typeof loadUndici>>; readonly target: HttpTarget; readonly idle_ms: number },
): Client {
  let given = false
  const client = new undici.Client(target.origin, {
    connect: (_options, callback) => {
      if (given) return callback(new HttpError('network', 'the connection was closed by the server'), null)
      given = true
      // undici calls this while it walks its queue and would ignore a synchronous answer.
      queueMicrotask(() => callback(null, socket))
    },
    pipelining: 1,
    keepAliveTimeout: idle_ms,
    keepAliveMaxTimeout: idle_ms,
    // The exchange enforces both timeouts itself, because undici's timers are accurate only to a second.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: 32 * 1024,
  })
  beforeRequest.set(client, dropInterim(socket))
  return client
}

function openTcp({ target, addresses, timeout_ms }: ConnectOptions): Socket {
  const [first = ''] = addresses
  const pinned: LookupFunction = (_hostname, options, callback) => {
    const entries = addresses.map(address => ({ address, family: isIP(address) }))
    if (options.all) callback(null, entries)
    else callback(null, first, isIP(first))
  }
  // An address literal needs no lookup. Node tries several addresses in turn (RFC 8305).
  const where = addresses.length === 1 ? { host: first } : { host: target.hostname, lookup: pinned }
  return connectTcp({
    ...where,
    port: target.port,
    noDelay: true,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: Math.max(10, Math.min(1000, Math.floor(timeout_ms / addresses.length))),
  })
}

function settled(socket: Socket, event: string, phase: 'connect' | 'tls', signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (cause: unknown): void => {
      signal.removeEventListener('abort', aborted)
      socket.destroy()
      reject(asFailure(cause, phase))
    }
    const aborted = (): void => stop(signal.reason)
    // The listener stays: nothing else handles an error before the HTTP client adds its listener.
    socket.on('error', stop)
    socket.once(event, () => {
      signal.removeEventListener('abort', aborted)
      resolve()
    })
    socket.once('close', () => stop(new Error('the connection was closed')))
    if (signal.aborted) aborted()
    else signal.addEventListener('abort', aborted)
  })
}

import { connect as connectTcp, isIP, type LookupFunction, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { Client } from 'undici'
import type { AddressGuard } from '../../domain/network/address-guard.ts'
import type { Target } from '../../domain/webhooks/target.ts'
import { asFailure, Failure } from './failure.ts'

interface ConnectOptions {
  readonly target: Target
  /** Addresses that passed the guard; nothing else is connected to. */
  readonly addresses: readonly string[]
  readonly timeout_ms: number
  /** Trusted roots in PEM in place of the system's. */
  readonly ca: string | undefined
  readonly signal: AbortSignal
}

/**
 * A connected socket to one of `addresses`, with TLS done for https; rejects with Failure, and then leaves no socket.
 */
export async function connectSocket(options: ConnectOptions, guard: AddressGuard): Promise<Socket> {
  const tcp = openTcp(options)
  await settled(tcp, 'connect', 'connect', options.signal)
  const refusal = guard.refusal(tcp.remoteAddress ?? '')
  if (refusal !== null) {
    tcp.destroy()
    throw new Failure('private_address', `connected to ${tcp.remoteAddress} (${refusal})`)
  }
  if (options.target.scheme === 'http') return tcp
  const { hostname } = options.target
  const tls = connectTls({
    socket: tcp,
    // RFC 6066 §3: no address literals in server_name. The certificate is checked against `host` then.
    ...(isIP(hostname) === 0 ? { servername: hostname } : { host: hostname, servername: '' }),
    minVersion: 'TLSv1.2',
    ALPNProtocols: ['http/1.1'],
    ...(options.ca === undefined ? {} : { ca: options.ca }),
  })
  tls.on('close', () => tcp.destroy())
  await settled(tls, 'secureConnect', 'tls', options.signal)
  return tls
}

/** An HTTP/1.1 client on this very socket: when the socket is gone so is the client, it never connects by itself. */
export function clientOn(socket: Socket, target: Target, idle_ms: number): Client {
  let given = false
  return new Client(target.origin, {
    connect: (_options, callback) => {
      if (given) return callback(new Failure('network', 'the connection was closed by the server'), null)
      given = true
      // undici asks while it walks its queue, and would not look again after an answer in the same breath.
      queueMicrotask(() => callback(null, socket))
    },
    pipelining: 1,
    keepAliveTimeout: idle_ms,
    keepAliveMaxTimeout: idle_ms,
    // Both are timed by the exchange itself: undici's timers are accurate to a second only.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: 32 * 1024,
  })
}

function openTcp({ target, addresses, timeout_ms }: ConnectOptions): Socket {
  const [first = ''] = addresses
  const pinned: LookupFunction = (_hostname, options, callback) => {
    const entries = addresses.map(address => ({ address, family: isIP(address) }))
    if (options.all) callback(null, entries)
    else callback(null, first, isIP(first))
  }
  // A literal as host needs no lookup; with several addresses Node tries them in turn (RFC 8305).
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
    // The listener stays: between this promise and the HTTP client's own listener an error would have no owner.
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

import { createConnection } from 'node:net'
import type { Duplex } from 'node:stream'
import { WebSocket } from 'ws'
import { type AddressGuard, createAddressGuard } from '../../core/domain/network/address-guard.ts'
import { parseTarget } from '../../core/domain/webhooks/target.ts'
import { connectSocket } from '../../core/runtime/http/connect.ts'
import { asFailure } from '../../core/runtime/http/failure.ts'
import { createHostResolver, type ResolveHost } from '../../core/runtime/http/resolve.ts'

type ConnectFailure = 'url_refused' | 'timeout' | 'refused' | 'tls' | 'handshake'

type Connected = { readonly socket: WebSocket } | { readonly refused: ConnectFailure; readonly detail: string }

/** Opens a WebSocket to an address that outbound HTTP may reach too. */
export type ConnectWebSocket = (
  url: string,
  signal: AbortSignal,
  headers?: Readonly<Record<string, string>>,
) => Promise<Connected>

/** Sends live audio as text in one write. Given a string, the library writes header and text as two pieces. */
export function sendText(socket: WebSocket, text: string): void {
  socket.send(Buffer.from(text), { binary: false })
}

const CONNECT_TIMEOUT_MS = 5000
const MAX_FRAME_BYTES = 1 << 20

export function createConnectWebSocket(
  allow_private: readonly string[],
  options: { ca?: string; resolve?: ResolveHost } = {},
): ConnectWebSocket {
  const guard = createAddressGuard(allow_private)
  const resolve = options.resolve ?? createHostResolver()
  return async (url, signal, headers = {}) => {
    const parsed = parseTarget(url.replace(/^ws(s?):/i, 'http$1:'))
    if (!/^wss?:/i.test(url) || !parsed.ok)
      return { refused: 'url_refused', detail: parsed.ok ? 'the URL is not ws or wss' : parsed.detail }
    const { target } = parsed
    const found = await resolve(target.hostname).catch(() => [])
    const addresses = (/^[\d.]+$|:/.test(target.hostname) ? [target.hostname] : found).filter(
      address => guard.refusal(address) === null && (target.scheme === 'https' || isPrivate(guard, address)),
    )
    if (addresses.length === 0)
      return {
        refused: 'url_refused',
        detail: `${target.hostname} has no address that may be reached by ${url.split(':')[0]}`,
      }
    // Do not use AbortSignal.timeout: within AbortSignal.any, Node 20 collects it as garbage and it never fires.
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(), CONNECT_TIMEOUT_MS)
    const limit = AbortSignal.any([signal, late.signal])
    try {
      const { ca } = options
      const tcp = await connectSocket({ target, addresses, timeout_ms: CONNECT_TIMEOUT_MS, ca, signal: limit }, guard)
      return await handshake(target.url.replace(/^http/, 'ws'), tcp, limit, headers)
    } catch (error) {
      if (limit.aborted) return { refused: 'timeout', detail: `not connected in ${CONNECT_TIMEOUT_MS} ms` }
      const failure = asFailure(error, 'connect')
      return { refused: failure.error.startsWith('tls') ? 'tls' : 'refused', detail: failure.message }
    } finally {
      clearTimeout(timer)
    }
  }
}

/** Opens a WebSocket to an address of the platform itself, which no customer has named. */
export const connectDirectly: ConnectWebSocket = (url, signal, headers = {}) =>
  new Promise(resolve => {
    const { hostname, port } = new URL(url)
    const tcp = createConnection({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port), signal })
    tcp.once('error', ({ message }) => resolve({ refused: 'refused', detail: message }))
    tcp.once('connect', () => resolve(handshake(url, tcp, signal, headers)))
  })

/** Reports whether only the operator's settings allow the address. Audio without TLS must stay in such networks. */
function isPrivate(guard: AddressGuard, address: string): boolean {
  return guard.refusal(address) === null && createAddressGuard([]).refusal(address) !== null
}

function handshake(
  url: string,
  tcp: Duplex,
  signal: AbortSignal,
  headers: Readonly<Record<string, string>>,
): Promise<Connected> {
  return new Promise(resolve => {
    const socket = new WebSocket(url, {
      // `ws` sends its request on this socket, which is already connected and checked.
      createConnection: () => tcp as never,
      headers,
      perMessageDeflate: false,
      followRedirects: false,
      maxPayload: MAX_FRAME_BYTES,
    })
    const stop = () => socket.terminate()
    signal.addEventListener('abort', stop)
    socket.once('open', () => {
      signal.removeEventListener('abort', stop)
      // Frames may have come with the answer. Whoever waits for the promise adds its listeners before the next turn.
      socket.pause()
      setImmediate(() => socket.resume())
      resolve({ socket })
    })
    // The listener stays because `error` may be emitted again; an unhandled one would throw.
    socket.on('error', error => {
      signal.removeEventListener('abort', stop)
      resolve(
        signal.aborted
          ? { refused: 'timeout', detail: 'no answer to the handshake' }
          : { refused: 'handshake', detail: error.message },
      )
    })
  })
}

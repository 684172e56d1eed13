import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http'
import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import Router from '@koa/router'
import Koa from 'koa'
import type { KeyPair } from '../../core/runtime/certificate.ts'
import { newId } from '../../core/runtime/ids.ts'
import { TlsChallenges } from '../acme/challenges.ts'
import { meeting } from './address.ts'
import { sendLast } from './last-answer.ts'
import { PROBLEM_TYPE } from './problem.ts'
import { notFound, refuse } from './reply.ts'
import { refusalOf, sendRefusal } from './send.ts'
import type { Services } from './services.ts'
import { socketsOfSources } from './sources.ts'
import { refuseUpgrade } from './upgrade.ts'

type Handler = (ctx: Koa.ParameterizedContext) => Promise<void> | void

/** The handlers of the HTTP server: single pages by path, and everything below a prefix. */
interface Mounts {
  readonly pages: Readonly<Record<string, Handler>>
  readonly below: Readonly<Record<string, Handler>>
  /** Handles WebSocket upgrades. Without it, none are offered. */
  readonly upgrade?: (request: IncomingMessage, socket: Duplex, head: Buffer) => void
}

export interface HttpServer {
  readonly port: number
  /** Null without HTTPS. */
  readonly secure_port: number | null
  /** Handshakes from now on use this certificate. */
  renewTls(tls: KeyPair): void
  /** Proofs for an authority at the TLS port. */
  readonly challenges: TlsChallenges
  close(): Promise<void>
}

/** Where to listen: plain, and with `secure` also over TLS. The system chooses a port for 0. */
export interface Listening {
  readonly host: string
  readonly port: number
  readonly secure?: { readonly host: string; readonly port: number; readonly tls: KeyPair } | null
  readonly patience?: HttpPatience | undefined
  /** How many sockets one address may have. */
  readonly sockets_of_source?: number | undefined
}

/** How long a client may take to send its headers and its request. `look_ms` is the interval of the check. */
export interface HttpPatience {
  readonly headers_ms: number
  readonly request_ms: number
  readonly look_ms: number
}

/**
 * Longer than proxies and clients usually keep an idle connection (60 s). If the server closed first, a request already
 * on its way would fail.
 */
const IDLE_MS = 75_000
const PATIENCE: HttpPatience = { headers_ms: 30_000, request_ms: 60_000, look_ms: 2000 }
const MAX_HEADER_BYTES = 32 * 1024
const MAX_SOCKETS = 5000
/** One source leaves room for the others. */
const MAX_SOCKETS_OF_SOURCE = 2000

/** Serves `mounts` on a plain port and, where wanted, over TLS. Rejects with the error of a port that is taken. */
export async function serveHttp(mounts: Mounts, services: Services, listening: Listening): Promise<HttpServer> {
  const serve = koaApp(mounts, services).callback()
  const meet = meeting(services.settings.trusted_proxies)
  const { headers_ms, request_ms, look_ms } = listening.patience ?? PATIENCE
  const options: ServerOptions = {
    headersTimeout: headers_ms,
    requestTimeout: request_ms,
    keepAliveTimeout: IDLE_MS,
    connectionsCheckingInterval: look_ms,
    maxHeaderSize: MAX_HEADER_BYTES,
    insecureHTTPParser: false,
  }
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    meet(request)
    void serve(request, response)
  }
  const most = listening.sockets_of_source ?? MAX_SOCKETS_OF_SOURCE
  const admits = socketsOfSources(most, services.settings.trusted_proxies)
  const prepare = <S extends Server | HttpsServer>(server: S): S => {
    server.maxConnections = MAX_SOCKETS
    before(server, (socket, otherwise) => (admits(socket) ? otherwise() : socket.destroy()))
    const { upgrade } = mounts
    if (upgrade)
      server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
        // Node has taken off its own: without a listener, a reset is an exception that nobody catches.
        socket.on('error', () => socket.destroy())
        try {
          meet(request)
          upgrade(request, socket, head)
        } catch (error) {
          refuseUpgrade(socket, refusalOf(error, services, { request_id: newId.request() }), services)
        }
      })
    server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => refuseBytes(error, socket, services))
    return server
  }
  const plain = prepare(createServer(options, answer))
  const { secure } = listening
  const tls = secure && prepare(createHttpsServer({ ...options, ...tlsRules(secure.tls, headers_ms) }, answer))
  // A peer that breaks the handshake off, or speaks something else, gets nothing.
  tls?.on('tlsClientError', (_error: Error, socket: Socket) => socket.destroy())
  const challenges = new TlsChallenges(headers_ms)
  if (tls) before(tls, (socket, otherwise) => challenges.take(socket, otherwise))
  const port = await portOf(plain, listening)
  try {
    return {
      port,
      secure_port: tls ? await portOf(tls, secure) : null,
      challenges,
      renewTls: pair => tls?.setSecureContext(pairOf(pair)),
      close: async () => void (await Promise.all([plain, ...(tls ? [tls] : [])].map(closeServer))),
    }
  } catch (error) {
    await closeServer(plain)
    throw error
  }
}

const pairOf = ({ key, cert }: KeyPair) => ({ key, cert, minVersion: 'TLSv1.2' as const })
const tlsRules = (pair: KeyPair, handshakeTimeout: number) => ({ ...pairOf(pair), handshakeTimeout })

/** Has `take` see each new connection before the server does. */
function before(server: Server | HttpsServer, take: (socket: Socket, otherwise: () => void) => unknown): void {
  const own = server.listeners('connection') as ((socket: Socket) => void)[]
  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) =>
    take(socket, () => {
      for (const listener of own) listener.call(server, socket)
    }),
  )
}

/** Listens, and returns the port. */
async function portOf(server: Server | HttpsServer, { host, port }: Pick<Listening, 'host' | 'port'>): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
  return (server.address() as AddressInfo).port
}

function koaApp(mounts: Mounts, services: Services): Koa {
  const { base_url } = services.settings
  const app = new Koa()
  const router = new Router()
  for (const [path, page] of Object.entries(mounts.pages)) router.get(path, ctx => page(ctx))
  const prefixes = Object.entries(mounts.below).map(([prefix, handler]) => [`${prefix}/`, handler] as const)
  app.use(async (ctx, next) => {
    const request_id = newId.request()
    ctx.set('X-Request-ID', request_id)
    ctx.set('X-Content-Type-Options', 'nosniff')
    try {
      const { path } = ctx
      const below = Object.hasOwn(mounts.pages, path) ? undefined : prefixes.find(([prefix]) => path.startsWith(prefix))
      if (below) await below[1](ctx)
      else await next()
    } catch (error) {
      sendRefusal(ctx, refusalOf(error, services, { request_id }), { base_url, request_id })
    }
  })
  app.use(router.routes())
  app.use(ctx => {
    // The router lists the pages of this path, whatever their method.
    const { matched = [] } = ctx as { readonly matched?: readonly { readonly methods: readonly string[] }[] }
    const allow = [...new Set(matched.flatMap(({ methods }) => methods))].sort().join(', ')
    const refusal =
      allow === ''
        ? notFound('this path')
        : refuse('method_not_allowed', { value: ctx.method }, { headers: { Allow: allow } })
    sendRefusal(ctx, refusal, { base_url, request_id: ctx.response.get('X-Request-ID') })
  })
  // A client that disconnects in the middle of an answer is not a server error.
  app.on('error', (err: NodeJS.ErrnoException) => {
    if (err.code === 'ECONNRESET' || err.code === 'EPIPE' || err.code === 'ERR_STREAM_PREMATURE_CLOSE') return
    services.log.warn({ err }, 'an answer could not be sent')
  })
  return app
}

/** Answers bytes that are not a valid HTTP request with the documented error, and closes the connection. */
function refuseBytes(error: NodeJS.ErrnoException, socket: Socket, services: Services): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const status = error.code === 'HPE_HEADER_OVERFLOW' ? 431 : error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400
  const request_id = newId.request()
  const body = JSON.stringify({
    type: `${services.settings.base_url}/docs/errors/body_malformed`,
    title: STATUS_CODES[status],
    status,
    detail: 'The bytes received are not an HTTP/1.1 request.',
    code: 'body_malformed',
    request_id,
  })
  sendLast(
    socket,
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: ${PROBLEM_TYPE}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n` +
      `X-Request-ID: ${request_id}\r\nConnection: close\r\n\r\n${body}`,
    services.clock,
  )
}

const CLOSE_PATIENCE_MS = 3000

/** Stops the server after the running requests. Connections that are still open after the grace period are cut. */
function closeServer(server: Server | HttpsServer): Promise<void> {
  return new Promise(resolve => {
    server.close(() => resolve())
    server.closeIdleConnections()
    setTimeout(() => server.closeAllConnections(), CLOSE_PATIENCE_MS).unref()
  })
}

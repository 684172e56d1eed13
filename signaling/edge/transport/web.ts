import { createServer as createHttpServer, type IncomingMessage } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'
import type { TlsOptions } from '../../../core/runtime/certificate.ts'
import { peek } from './peek.ts'
import { SecureServer } from './tls.ts'

/** Called for each WebSocket after its handshake, with the underlying socket. */
export type WebSocketOpened = (client: WebSocket, socket: Socket) => void

/** The first byte of a TLS connection: the record type handshake (RFC 8446 §5.1). No HTTP request begins with it. */
const TLS_HANDSHAKE = 22

/** A port for plain WebSockets, secure ones or both (RFC 7118). The first byte of a connection distinguishes them. */
export class WebPort {
  /** The server. The caller makes it listen. */
  readonly server: Server
  readonly #handshakes: WebSocketServer
  #plain: Server | undefined
  #secure: SecureServer | undefined

  constructor(message_bytes: number) {
    this.server = createTcpServer({ noDelay: true }, socket => this.#take(socket))
    this.#handshakes = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      maxPayload: message_bytes,
      // RFC 7118 §4.1: the sub-protocol is "sip". `verifyClient` refuses a client that does not offer it.
      handleProtocols: offered => (offered.has('sip') ? 'sip' : false),
      verifyClient: (info: { req: IncomingMessage }) => offersSip(info.req.headers['sec-websocket-protocol']),
    })
  }

  serves(protocol: 'ws' | 'wss'): boolean {
    return (protocol === 'ws' ? this.#plain : this.#secure) !== undefined
  }

  servePlain(opened: WebSocketOpened): void {
    this.#plain = this.#upgrading(createHttpServer(), opened)
  }

  /** Returns what renews its certificates. */
  serveSecure(tls: TlsOptions, opened: WebSocketOpened): Pick<SecureServer, 'renew'> {
    this.#secure = new SecureServer(tls, options => this.#upgrading(createHttpsServer(options), opened))
    return this.#secure
  }

  #take(socket: Socket): void {
    const [plain, secure] = [this.#plain, this.#secure]
    if (plain && secure) {
      const first = (bytes: Buffer): number | undefined => bytes[0]
      peek(socket, first, byte => {
        if (byte === TLS_HANDSHAKE) secure.take(socket)
        else plain.emit('connection', socket)
      })
    } else if (secure) secure.take(socket)
    else plain?.emit('connection', socket)
  }

  #upgrading<S extends Server>(server: S, opened: WebSocketOpened): S {
    server.on('request', (_request, response) => {
      response.writeHead(426, { Connection: 'close', Upgrade: 'websocket' }).end()
    })
    server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
      this.#handshakes.handleUpgrade(request, socket, head, client => opened(client, socket))
    })
    return server
  }
}

function offersSip(header: string | undefined): boolean {
  return (header ?? '').split(',').some(name => name.trim().toLowerCase() === 'sip')
}

import { createSocket, type Socket as DatagramSocket, type RemoteInfo } from 'node:dgram'
import { createServer as createHttpServer, type IncomingMessage } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import {
  connect as connectTcp,
  createServer as createTcpServer,
  isIP,
  isIPv6,
  type Server,
  type Socket,
} from 'node:net'
import { connect as connectTls, createSecureContext, createServer as createTlsServer, type TLSSocket } from 'node:tls'
import { type WebSocket, WebSocketServer } from 'ws'
import type { Clock, Timer } from '../../../core/runtime/clock.ts'
import { StreamConnection } from './connection.ts'
import type { Address, Destination, Listener, Protocol, Received, TracedMessage, TransportLimits } from './types.ts'

// All sockets of one SIP stack: listening points, connections and their limits. It knows bytes and addresses, and of
// SIP only where a message ends.

export interface ListenerOptions {
  readonly protocol: Protocol
  readonly host: string
  /** 0 lets the system choose. */
  readonly port: number
  /** Take the port that the listening point before this one got: UDP and TCP usually share a number. */
  readonly same_port?: boolean | undefined
  readonly advertised_host?: string | undefined
}

export interface TlsOptions {
  /** PEM. */
  readonly key: string | Buffer
  readonly cert: string | Buffer
  /** Further certificates by server name (SNI). */
  readonly names?: ReadonlyMap<string, { readonly key: string | Buffer; readonly cert: string | Buffer }> | undefined
  /** CA certificates for client certificates and for peers that we connect to. */
  readonly ca?: string | Buffer | undefined
  /** Ask peers that connect for a certificate signed by `ca`, and refuse others. */
  readonly require_client_certificate?: boolean | undefined
  /** Refuse peers that we connect to when their certificate does not verify. */
  readonly verify_peers?: boolean | undefined
}

export interface TransportOptions {
  readonly listeners: readonly ListenerOptions[]
  readonly tls?: TlsOptions | undefined
  readonly limits: TransportLimits
  readonly clock: Clock
  readonly events: TransportEvents
}

export interface TransportEvents {
  readonly received: (message: Received) => void
  /** A stream that cannot be followed; the connection closes after `answer`, if there is one, was sent. */
  readonly broken: (received: Received, status: number, why: string) => string | undefined
  readonly closed?: ((connection: StreamConnection) => void) | undefined
  /** Asked before anything else is done with a packet or a new connection from an address. */
  readonly dropped?: ((host: string) => boolean) | undefined
  readonly traced?: ((message: TracedMessage) => void) | undefined
  readonly warn: (facts: object, text: string) => void
}

/** Thrown by `open` when a listening point cannot be had; `code` is Node's, for example EADDRINUSE. */
export class ListenError extends Error {
  readonly code: string
  readonly protocol: string
  readonly port: number

  constructor(protocol: string, host: string, port: number, cause: NodeJS.ErrnoException) {
    const what = cause.code === 'EADDRINUSE' ? 'is in use' : `cannot be opened (${cause.code ?? cause.message})`
    super(`${protocol} port ${port} on ${host} ${what}`, { cause })
    this.name = 'ListenError'
    this.code = cause.code ?? 'ELISTEN'
    this.protocol = protocol
    this.port = port
  }
}

/** What a host or the network on the way to it says by ICMP. */
const REFUSALS: ReadonlySet<string> = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN'])

type Datagram = { listener: Listener; socket: DatagramSocket }

export class TransportLayer {
  readonly listeners: Listener[] = []
  readonly #options: TransportOptions
  readonly #datagrams: Datagram[] = []
  readonly #servers: { close(): void }[] = []
  /** In order of activity: the first is idle for longest. */
  readonly #connections = new Map<number, StreamConnection>()
  readonly #byPeer = new Map<string, StreamConnection>()
  /** Open inbound connections of each source, handshakes included. */
  readonly #perSource = new Map<string, number>()
  /** Sockets in their handshake, by peer and port, the oldest first. */
  readonly #handshakes = new Map<string, Socket>()
  #sweeper: Timer | undefined
  #closed = false
  refused_connections = 0

  private constructor(options: TransportOptions) {
    this.#options = options
  }

  static async open(options: TransportOptions): Promise<TransportLayer> {
    // Where the system chooses a port that another listening point shall share, that port may be taken for the other
    // transport: then both are chosen anew.
    const chooses =
      options.listeners.some(l => l.port === 0 && !l.same_port) && options.listeners.some(l => l.same_port)
    for (let attempt = 1; ; attempt++) {
      const layer = new TransportLayer(options)
      try {
        await layer.#listenAll()
        layer.#sweeper = options.clock.every(5_000, () => layer.#sweep())
        return layer
      } catch (error) {
        layer.close()
        if (!chooses || attempt >= 20 || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
      }
    }
  }

  async #listenAll(): Promise<void> {
    for (const wanted of this.#options.listeners) {
      const port = wanted.same_port ? (this.listeners.at(-1)?.port ?? wanted.port) : wanted.port
      await this.#listen({ ...wanted, port })
    }
  }

  get connectionCount(): number {
    return this.#connections.size
  }

  /** The listening point from which messages to a destination leave. */
  listenerFor(protocol: Protocol, host: string): Listener | undefined {
    const ipv6 = host.includes(':')
    return this.listeners.find(l => l.protocol === protocol && l.ipv6 === ipv6)
  }

  hasProtocol(protocol: Protocol): boolean {
    return this.listeners.some(l => l.protocol === protocol)
  }

  /** Whether an address is one of our own listening points. */
  isOwn(host: string, port: number): boolean {
    const h = host.toLowerCase()
    return this.listeners.some(
      l =>
        l.port === port &&
        (l.host === h || l.advertised_host.toLowerCase() === h || (h === 'localhost' && isLoopback(l.host))),
    )
  }

  /** An open connection to a peer, also one that the peer made (RFC 5923). */
  connectionTo(protocol: Protocol, host: string, port: number): StreamConnection | undefined {
    const found = this.#byPeer.get(peerKey(protocol, host, port))
    return found?.open ? found : undefined
  }

  /** Lets requests to an address use a connection that came in from elsewhere (RFC 5923 §9 alias). */
  addAlias(connection: StreamConnection, port: number): void {
    const key = peerKey(connection.protocol, connection.remote.host, port)
    if (this.#byPeer.has(key) || connection.alias_ports.length >= 4) return
    connection.alias_ports.push(port)
    this.#byPeer.set(key, connection)
  }

  /**
   * Sends a byte string. `failed` is called later when the network says that it did not arrive (refused, reset, timed
   * out). Returns how it leaves, or undefined when no listening point serves this kind of destination.
   */
  send(
    to: Destination,
    text: string,
    retransmission: boolean,
    failed: (error: Error) => void,
  ): { listener: Listener; connection: StreamConnection | undefined } | undefined {
    if (this.#closed) return undefined
    let connection = to.connection?.open ? to.connection : undefined
    const listener = connection?.listener ?? this.listenerFor(to.protocol, to.host)
    if (!listener) return undefined
    if (to.protocol === 'udp') {
      const datagram = this.#datagrams.find(d => d.listener === listener)
      datagram?.socket.send(Buffer.from(text, 'latin1'), to.port, to.host, error => {
        if (error) failed(error)
      })
    } else {
      connection ??= this.connectionTo(to.protocol, to.host, to.port)
      if (!connection) {
        if (to.protocol === 'ws' || to.protocol === 'wss') {
          // RFC 7118 §5: a server never opens WebSocket connections.
          queueMicrotask(() => failed(new Error('WebSocket connection is gone')))
          return { listener, connection: undefined }
        }
        connection = this.#connect(to, listener)
      }
      connection.send(text, failed)
    }
    if (this.#options.events.traced) {
      const remote = connection?.remote ?? { host: to.host, port: to.port }
      this.#trace('out', listener, remote, text, retransmission)
    }
    return { listener, connection }
  }

  /** Sends a short probe from a socket of its own, and reports whether the peer's host refuses the port (ICMP). */
  probe(host: string, port: number, refused: () => void): void {
    const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
    const end = this.#options.clock.after(1_000, () => socket.close())
    let answered = false
    const gone = (): void => {
      if (answered) return
      answered = true
      end.cancel()
      socket.close()
      refused()
    }
    const failed = (error: NodeJS.ErrnoException): void => {
      // Want of descriptors or of memory is our own fault, and says nothing of the peer.
      if (REFUSALS.has(error.code ?? '')) gone()
    }
    socket.on('error', failed)
    socket.connect(port, host, () => socket.send('\r\n\r\n', error => error && failed(error)))
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#sweeper?.cancel()
    for (const { socket } of this.#datagrams) socket.close()
    for (const server of this.#servers) server.close()
    for (const socket of this.#handshakes.values()) socket.destroy()
    for (const connection of [...this.#connections.values()]) connection.fail(new Error('stack closed'))
  }

  /** Records a message that came in; the stack calls it, because it knows what is a retransmission. */
  traceReceived(received: Received, retransmission: boolean): void {
    if (!this.#options.events.traced) return
    this.#trace('in', received.listener, received.source, received.text, retransmission)
  }

  #trace(
    direction: 'in' | 'out',
    listener: Listener,
    remote: { host: string; port: number },
    text: string,
    again: boolean,
  ) {
    this.#options.events.traced?.({
      direction,
      protocol: listener.protocol,
      local: { host: listener.host, port: listener.port },
      remote,
      raw: Buffer.from(text, 'latin1'),
      retransmission: again,
      at: this.#options.clock.now(),
    })
  }

  async #listen(wanted: ListenerOptions): Promise<void> {
    switch (wanted.protocol) {
      case 'udp':
        return await this.#listenUdp(wanted)
      case 'tcp':
        return await this.#listenStream(wanted, createTcpServer({ noDelay: true }), 'connection')
      case 'tls':
        return await this.#listenStream(wanted, this.#tlsServer(), 'secureConnection')
      default:
        return await this.#listenWeb(wanted)
    }
  }

  #added(wanted: ListenerOptions, port: number): Listener {
    const listener: Listener = {
      protocol: wanted.protocol,
      host: wanted.host,
      port,
      advertised_host: wanted.advertised_host ?? wanted.host,
      ipv6: isIPv6(wanted.host),
    }
    this.listeners.push(listener)
    return listener
  }

  async #listenUdp(wanted: ListenerOptions): Promise<void> {
    const socket = createSocket({
      type: isIPv6(wanted.host) ? 'udp6' : 'udp4',
      ...(isIPv6(wanted.host) ? { ipv6Only: true } : {}),
      // Destinations are literal addresses: skip the resolver that Node would call for each datagram.
      lookup: (host, _options, callback) => callback(null, host, isIP(host)),
    })
    await new Promise<void>((resolve, reject) => {
      const failed = (cause: Error): void => reject(new ListenError('udp', wanted.host, wanted.port, cause))
      socket.once('error', failed)
      socket.bind(wanted.port, wanted.host, () => {
        socket.off('error', failed)
        resolve()
      })
    })
    const listener = this.#added(wanted, socket.address().port)
    this.#datagrams.push({ listener, socket })
    socket.on('error', error => this.#options.events.warn({ err: error }, 'UDP socket error'))
    try {
      socket.setRecvBufferSize(4 * 1024 * 1024)
    } catch (error) {
      // The system's maximum may be lower: the default then stays.
      this.#options.events.warn({ err: error }, 'receive buffer stays at the default')
    }
    socket.on('message', (data: Buffer, from: RemoteInfo) => {
      if (this.#options.events.dropped?.(from.address)) return
      if (data.length < 10) return
      const received: Received = {
        text: data.toString('latin1', leadingBreaks(data)),
        protocol: 'udp',
        source: { host: from.address, port: from.port },
        listener,
        connection: undefined,
      }
      this.#options.events.received(received)
    })
  }

  #tlsServer(): Server {
    const tls = this.#options.tls
    if (!tls) throw new Error('a TLS listening point needs a key and a certificate')
    const names = new Map([...(tls.names ?? [])].map(([name, pair]) => [name.toLowerCase(), createSecureContext(pair)]))
    return createTlsServer({
      key: tls.key,
      cert: tls.cert,
      ...(tls.ca === undefined ? {} : { ca: tls.ca }),
      requestCert: tls.require_client_certificate ?? false,
      rejectUnauthorized: tls.require_client_certificate ?? false,
      handshakeTimeout: this.#options.limits.handshake_ms,
      minVersion: 'TLSv1.2',
      SNICallback: (name, done) => done(null, names.get(name.toLowerCase())),
    })
  }

  async #listenStream(
    wanted: ListenerOptions,
    server: Server,
    ready: 'connection' | 'secureConnection',
  ): Promise<void> {
    await listenOn(server, wanted)
    const listener = this.#added(wanted, portOf(server))
    this.#servers.push(server)
    if (ready === 'secureConnection') {
      this.#guardHandshakes(server)
      server.on('tlsClientError', (_error: Error, socket: Socket) => socket.destroy())
    }
    server.on(ready, (socket: Socket) => {
      const remote = remoteOf(socket)
      if (ready === 'connection') {
        if (!this.#admits(remote.host)) {
          socket.destroy()
          return
        }
        this.#count(socket, remote.host)
      } else this.#handshakes.delete(handshakeKey(remote))
      this.#adopt(listener, remote, true).attachSocket(socket, false)
    })
  }

  // Connections count from their first byte on, so that handshakes that never end fall under the limits too.
  #guardHandshakes(server: Server): void {
    server.on('connection', (socket: Socket) => {
      const remote = remoteOf(socket)
      if (!this.#admits(remote.host)) {
        socket.destroy()
        return
      }
      this.#count(socket, remote.host)
      const key = handshakeKey(remote)
      this.#handshakes.set(key, socket)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        if (this.#handshakes.get(key) === socket) this.#handshakes.delete(key)
      })
      if (this.#handshakes.size <= this.#options.limits.connections) return
      for (const oldest of this.#handshakes.values()) {
        this.refused_connections++
        oldest.destroy()
        break
      }
    })
  }

  #count(socket: Socket, host: string): void {
    this.#perSource.set(host, (this.#perSource.get(host) ?? 0) + 1)
    socket.on('close', () => {
      const left = (this.#perSource.get(host) ?? 1) - 1
      if (left > 0) this.#perSource.set(host, left)
      else this.#perSource.delete(host)
    })
  }

  async #listenWeb(wanted: ListenerOptions): Promise<void> {
    const tls = this.#options.tls
    if (wanted.protocol === 'wss' && !tls) throw new Error('a WSS listening point needs a key and a certificate')
    const server =
      wanted.protocol === 'wss' && tls ? createHttpsServer({ key: tls.key, cert: tls.cert }) : createHttpServer()
    server.headersTimeout = this.#options.limits.handshake_ms
    server.requestTimeout = this.#options.limits.handshake_ms
    server.on('request', (_request, response) => {
      response.writeHead(426, { Connection: 'close', Upgrade: 'websocket' }).end()
    })
    await listenOn(server, wanted)
    const listener = this.#added(wanted, portOf(server))
    this.#servers.push(server)
    this.#guardHandshakes(server)
    const web = new WebSocketServer({
      server,
      maxPayload: this.#options.limits.message_bytes,
      // RFC 7118 §4.1: the sub-protocol is "sip"; a client that does not offer it is refused below.
      handleProtocols: offered => (offered.has('sip') ? 'sip' : false),
      verifyClient: (info: { req: IncomingMessage }) => offersSip(info.req.headers['sec-websocket-protocol']),
    })
    web.on('connection', (client: WebSocket, request) => {
      const remote = remoteOf(request.socket)
      this.#handshakes.delete(handshakeKey(remote))
      this.#adopt(listener, remote, true).attachWebSocket(client)
    })
    this.#servers.push({ close: () => web.close() })
  }

  #connect(to: Destination, listener: Listener): StreamConnection {
    const connection = this.#adopt(listener, { host: to.host, port: to.port }, false)
    const give_up = this.#options.clock.after(this.#options.limits.connect_ms, () =>
      connection.fail(Object.assign(new Error('connect timed out'), { code: 'ETIMEDOUT' })),
    )
    const ready = (): void => {
      give_up.cancel()
      connection.connected()
    }
    // As datagrams do: peers that know us by our address must see the same one over every transport.
    const from = { host: to.host, port: to.port, ...(isWildcard(listener.host) ? {} : { localAddress: listener.host }) }
    if (to.protocol === 'tls') {
      const tls = this.#options.tls
      const name = to.server_name !== undefined && isIP(to.server_name) === 0 ? to.server_name : undefined
      const socket: TLSSocket = connectTls({
        ...from,
        rejectUnauthorized: tls?.verify_peers ?? false,
        ...(name === undefined ? {} : { servername: name }),
        ...(tls ? { key: tls.key, cert: tls.cert } : {}),
        ...(tls?.ca === undefined ? {} : { ca: tls.ca }),
      })
      socket.once('secureConnect', ready)
      connection.attachSocket(socket, true)
    } else {
      const socket = connectTcp(from)
      socket.once('connect', ready)
      connection.attachSocket(socket, true)
    }
    return connection
  }

  #adopt(listener: Listener, remote: { host: string; port: number }, inbound: boolean): StreamConnection {
    const { limits, events, clock } = this.#options
    if (this.#connections.size >= limits.connections) this.#closeOldest()
    const connection = new StreamConnection({
      protocol: listener.protocol,
      listener,
      remote,
      inbound,
      limits,
      now: () => clock.monotonic_ms(),
      events: {
        message: (from, text) => {
          // Keeps the map in order of activity.
          this.#connections.delete(from.id)
          this.#connections.set(from.id, from)
          if (events.dropped?.(remote.host)) return
          events.received({ text, protocol: listener.protocol, source: remote, listener, connection: from })
        },
        broken: (from, item) => {
          const received: Received = {
            text: item.text,
            protocol: listener.protocol,
            source: remote,
            listener,
            connection: from,
          }
          const answer = events.broken(received, item.status, item.why)
          if (answer !== undefined) from.send(answer, () => undefined)
          from.end()
          clock.after(1_000, () => from.fail(new Error('stream could not be followed')))
        },
        closed: from => this.#gone(from),
      },
    })
    this.#connections.set(connection.id, connection)
    this.#byPeer.set(peerKey(connection.protocol, remote.host, remote.port), connection)
    return connection
  }

  #gone(connection: StreamConnection): void {
    this.#connections.delete(connection.id)
    for (const key of this.#keysOf(connection)) this.#byPeer.delete(key)
    this.#options.events.closed?.(connection)
  }

  #keysOf(connection: StreamConnection): string[] {
    const keys: string[] = []
    const own = peerKey(connection.protocol, connection.remote.host, connection.remote.port)
    if (this.#byPeer.get(own) === connection) keys.push(own)
    for (const port of connection.alias_ports) {
      const key = peerKey(connection.protocol, connection.remote.host, port)
      if (this.#byPeer.get(key) === connection) keys.push(key)
    }
    return keys
  }

  #admits(host: string): boolean {
    if (this.#options.events.dropped?.(host) || this.#closed) return false
    if ((this.#perSource.get(host) ?? 0) < this.#options.limits.connections_per_source) return true
    this.refused_connections++
    return false
  }

  #closeOldest(): void {
    for (const connection of this.#connections.values()) {
      this.refused_connections++
      connection.fail(new Error('connection limit reached, this one was idle for longest'))
      return
    }
  }

  #sweep(): void {
    const now = this.#options.clock.monotonic_ms()
    const { idle_ms, incomplete_ms } = this.#options.limits
    for (const connection of [...this.#connections.values()]) {
      if (connection.incomplete_at !== 0 && now - connection.incomplete_at > incomplete_ms) {
        connection.fail(new Error('message stayed incomplete'))
      } else if (now - connection.active_at > idle_ms) connection.fail(new Error('idle'))
    }
  }
}

function peerKey(protocol: Protocol, host: string, port: number): string {
  return `${protocol}|${host}|${port}`
}

async function listenOn(server: Server, wanted: ListenerOptions): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const failed = (cause: Error): void => reject(new ListenError(wanted.protocol, wanted.host, wanted.port, cause))
    server.once('error', failed)
    server.listen({ port: wanted.port, host: wanted.host, ipv6Only: true }, () => {
      server.off('error', failed)
      resolve()
    })
  })
}

function portOf(server: Server): number {
  const address = server.address()
  return typeof address === 'object' && address ? address.port : 0
}

function handshakeKey({ host, port }: Address): string {
  return `${host}|${port}`
}

function remoteOf(socket: Socket): Address {
  return { host: plainHost(socket.remoteAddress ?? ''), port: socket.remotePort ?? 0 }
}

function plainHost(address: string): string {
  return address.startsWith('::ffff:') ? address.slice(7) : address
}

function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::'
}

function isLoopback(host: string): boolean {
  return host === '127.0.0.1' || host === '::1'
}

function offersSip(header: string | undefined): boolean {
  return (header ?? '').split(',').some(name => name.trim().toLowerCase() === 'sip')
}

function leadingBreaks(data: Buffer): number {
  let i = 0
  while (i < data.length && (data[i] === 13 || data[i] === 10)) i++
  return i
}

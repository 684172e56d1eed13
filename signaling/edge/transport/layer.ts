import { createSocket, type Socket as DatagramSocket, type RemoteInfo } from 'node:dgram'
import { connect as connectTcp, createServer as createTcpServer, isIPv6, type Server, type Socket } from 'node:net'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import type { TlsVerification } from '../../../core/domain/network/tls-verification.ts'
import type { TlsOptions } from '../../../core/runtime/certificate.ts'
import type { Clock } from '../../../core/runtime/clock.ts'
import type { StreamConnection } from './connection.ts'
import { ConnectionTable } from './connections.ts'
import { ListenError, listenOn, portOf } from './listen.ts'
import { certifiedBy, peerOptions, proofOfName, proofOfPin, SecureServer, wrongPin } from './tls.ts'
import type {
  Address,
  BorrowedListeners,
  Listener,
  Protocol,
  Received,
  TransportDestination,
  TransportEvents,
  TransportLimits,
} from './types.ts'
import { WebPort, type WebSocketOpened } from './web.ts'

// All sockets of one SIP stack. This layer handles bytes and addresses. Of SIP it knows only where a message ends.

export interface ListenerOptions {
  readonly protocol: Protocol
  readonly host: string
  /** 0 lets the system choose. */
  readonly port: number
  /**
   * Use the port of the previous listening point: UDP and TCP usually share a number. WS and WSS on the same address
   * and port also share the socket; the first byte of a connection distinguishes them.
   */
  readonly same_port?: boolean | undefined
  /** For UDP: a socket that is bound to this place already. */
  readonly socket?: DatagramSocket | undefined
  readonly advertised_host?: string | undefined
}

interface TransportOptions {
  readonly listeners: readonly ListenerOptions[]
  readonly tls?: TlsOptions | undefined
  readonly limits: TransportLimits
  readonly clock: Clock
  readonly events: TransportEvents
}

/** Errors that a host, or the network on the way to it, reports by ICMP. */
const REFUSALS: ReadonlySet<string> = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN'])

export class TransportLayer {
  /** Our own listening points. */
  readonly own: Listener[] = []
  #borrowed: BorrowedListeners | undefined
  readonly #options: TransportOptions
  readonly #datagrams = new Map<Listener, DatagramSocket>()
  readonly #servers: Server[] = []
  readonly #web_ports: { readonly listener: Listener; readonly port: WebPort }[] = []
  readonly #connections: ConnectionTable
  readonly #secure: Pick<SecureServer, 'renew'>[] = []
  #tls: TlsOptions | undefined
  #closed = false

  private constructor(options: TransportOptions) {
    this.#options = options
    this.#tls = options.tls
    this.#connections = new ConnectionTable(options.limits, options.clock, options.events)
  }

  static async open(options: TransportOptions): Promise<TransportLayer> {
    // The port that the system chooses for one transport may be in use for the transport that shall share it. Then
    // choose both again.
    const chooses =
      options.listeners.some(l => l.port === 0 && !l.same_port) && options.listeners.some(l => l.same_port)
    for (let attempt = 1; ; attempt++) {
      const layer = new TransportLayer(options)
      try {
        await layer.#listenAll()
        return layer
      } catch (error) {
        layer.close()
        if (!chooses || attempt >= 20 || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
      }
    }
  }

  async #listenAll(): Promise<void> {
    for (const wanted of this.#options.listeners) {
      const port = wanted.same_port ? (this.own.at(-1)?.port ?? wanted.port) : wanted.port
      await this.#listen({ ...wanted, port })
    }
  }

  /** The listening points by which peers reach us: our own, or those of another machine's edge. */
  get listeners(): readonly Listener[] {
    return this.own.length > 0 ? this.own : (this.#borrowed?.listeners ?? [])
  }

  /** Without listening points of our own, all messages leave by these; undefined: by none. */
  borrow(borrowed: BorrowedListeners | undefined): void {
    this.#borrowed = borrowed
  }

  get connection_count(): number {
    return this.#connections.size
  }

  get refused_connections(): number {
    return this.#connections.refused
  }

  /** Returns the listening point that sends messages to a destination. */
  listenerFor(protocol: Protocol, host: string): Listener | undefined {
    const ipv6 = host.includes(':')
    for (const listener of this.listeners) if (listener.protocol === protocol && listener.ipv6 === ipv6) return listener
    return undefined
  }

  hasProtocol(protocol: Protocol): boolean {
    return this.listeners.some(l => l.protocol === protocol)
  }

  /** Reports whether an address is one of our listening points. */
  isOwn(host: string, port: number): boolean {
    const h = host.toLowerCase()
    return this.listeners.some(
      l =>
        l.port === port &&
        (l.host === h || l.advertised_host.toLowerCase() === h || (h === 'localhost' && isLoopback(l.host))),
    )
  }

  /**
   * Returns an open connection to a destination, which may be one that the peer made (RFC 5923). Its peer must have
   * proved what the destination requires.
   */
  connectionFor(to: TransportDestination): StreamConnection | undefined {
    if (to.connection?.open) return to.connection
    if (to.protocol === 'udp') return undefined
    return this.#connections.to(to.protocol, to.host, to.port, this.#proofOf(to))
  }

  /** Lets requests to this port that require this proof use a connection that the peer made (RFC 5923 §9). */
  addAlias(connection: StreamConnection, port: number, proved: string): void {
    this.#connections.addAlias(connection, port, proved)
  }

  /**
   * Sends a byte string. `traced` is false for answers to strangers. `failed` is called later when the network reports
   * that the message did not arrive (refused, reset, timed out). Returns the listening point and the connection used,
   * or undefined when no listening point serves this kind of destination.
   */
  send(
    to: TransportDestination,
    text: string,
    retransmission: boolean,
    failed: (error: Error) => void,
    traced = true,
  ): { listener: Listener; connection: StreamConnection | undefined } | undefined {
    if (this.#closed) return undefined
    let connection = to.connection?.open ? to.connection : undefined
    const listener = connection?.listener ?? this.listenerFor(to.protocol, to.host)
    if (!listener) return undefined
    if (!connection && this.#borrowed && this.own.length === 0) {
      if (traced) this.#traceSent(listener, to, text, retransmission)
      this.#borrowed.send(to, text, failed)
      return { listener, connection }
    }
    if (to.protocol === 'udp' && !connection) {
      if (traced) this.#traceSent(listener, to, text, retransmission)
      this.#datagrams.get(listener)?.send(Buffer.from(text, 'latin1'), to.port, to.host, error => {
        if (error) failed(error)
      })
      return { listener, connection }
    }
    connection ??= this.connectionFor(to)
    if (!connection) {
      if (to.protocol === 'ws' || to.protocol === 'wss' || to.tls?.mode === 'flow') {
        // RFC 7118 §5: a server never opens a WebSocket. Nor does any connection replace a registered one.
        queueMicrotask(() => failed(new Error('the connection is gone')))
        return { listener, connection: undefined }
      }
      connection = this.#connect(to, listener)
    }
    if (traced) this.#traceSent(listener, connection.remote, text, retransmission)
    connection.send(text, failed)
    return { listener, connection }
  }

  /** Sends a short probe from a separate socket. Calls `refused` if an ICMP error shows the port unreachable. */
  probe(host: string, port: number, refused: () => void): void {
    // Where another machine's edge sends for us, our own network says nothing about the peer.
    if (this.own.length === 0) return
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
      // A lack of descriptors or memory is a local fault and does not concern the peer.
      if (REFUSALS.has(error.code ?? '')) gone()
    }
    socket.on('error', failed)
    socket.connect(port, host, () => socket.send('\r\n\r\n', error => error && failed(error)))
  }

  /** Handshakes from now on, in both directions, use these certificates and rules. Open connections stay. */
  renewTls(tls: TlsOptions): void {
    for (const server of this.#secure) server.renew(tls)
    this.#tls = tls
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    for (const socket of this.#datagrams.values()) socket.close()
    for (const server of this.#servers) server.close()
    this.#connections.close()
  }

  /**
   * Traces a received message. The transaction layer calls this because it recognizes retransmissions and strangers.
   */
  traceReceived(received: Received, retransmission: boolean, at = this.#options.clock.now()): void {
    if (!this.#options.events.traced) return
    this.#trace('in', received.listener, received.source, received.text, retransmission, at)
  }

  // Called before the message is sent, so that the journal holds it even if this process is killed (see journal.ts).
  #traceSent(listener: Listener, { host, port }: Address, text: string, retransmission: boolean): void {
    if (this.#options.events.traced) this.#trace('out', listener, { host, port }, text, retransmission)
  }

  #trace(
    direction: 'in' | 'out',
    listener: Listener,
    remote: { host: string; port: number },
    text: string,
    again: boolean,
    at = this.#options.clock.now(),
  ) {
    this.#options.events.traced?.({
      direction,
      protocol: listener.protocol,
      local: { host: listener.host, port: listener.port },
      remote,
      text,
      retransmission: again,
      at,
    })
  }

  async #listen(wanted: ListenerOptions): Promise<void> {
    switch (wanted.protocol) {
      case 'udp':
        return await this.#listenUdp(wanted)
      case 'tcp':
        return await this.#listenTcp(wanted)
      case 'tls':
        return await this.#listenTls(wanted)
      default:
        return await this.#listenWeb(wanted, wanted.protocol)
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
    this.own.push(listener)
    return listener
  }

  async #listenUdp(wanted: ListenerOptions): Promise<void> {
    const ipv6 = isIPv6(wanted.host)
    const family = ipv6 ? 6 : 4
    const socket =
      wanted.socket ??
      createSocket({
        type: ipv6 ? 'udp6' : 'udp4',
        ...(ipv6 ? { ipv6Only: true } : {}),
        // Destinations are IP literals of this family, so skip the resolver that Node would call for each datagram.
        lookup: (host, _options, callback) => callback(null, host, family),
      })
    if (!wanted.socket) await bound(socket, wanted)
    const listener = this.#added(wanted, socket.address().port)
    this.#datagrams.set(listener, socket)
    socket.on('error', error => this.#options.events.warn({ err: error }, 'UDP socket error'))
    try {
      socket.setRecvBufferSize(4 * 1024 * 1024)
    } catch (error) {
      // The system's maximum may be lower; the default then stays.
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

  async #listenTcp(wanted: ListenerOptions): Promise<void> {
    const listener = await this.#opened(createTcpServer({ noDelay: true, allowHalfOpen: true }), wanted, server => {
      server.on('connection', (socket: Socket) => {
        if (this.#connections.admits(socket, 'tcp'))
          this.#connections.accepted(listener, socket)?.attachSocket(socket, false)
      })
    })
  }

  async #listenTls(wanted: ListenerOptions): Promise<void> {
    const tls = this.#tls
    if (!tls) throw new Error('a TLS listening point needs a key and a certificate')
    const secure = new SecureServer(tls, options =>
      createTlsServer({ ...options, allowHalfOpen: true }, socket => {
        this.#connections.accepted(listener, socket, certifiedBy(socket))?.attachSocket(socket, false)
      }),
    )
    const listener = await this.#opened(secure.server, wanted, server => this.#guardHandshakes(server, 'tls'))
    this.#secure.push(secure)
  }

  /** Opens a listening point. `serve` is called before the first connection can arrive. */
  async #opened(server: Server, wanted: ListenerOptions, serve: (server: Server) => void): Promise<Listener> {
    serve(server)
    await listenOn(server, wanted)
    this.#servers.push(server)
    return this.#added(wanted, portOf(server))
  }

  // Connections count as soon as they are accepted, so the limits also cover handshakes that never finish.
  #guardHandshakes(server: Server, protocol?: Protocol): void {
    server.on('connection', (socket: Socket) => void this.#connections.admitsHandshake(socket, protocol))
  }

  async #listenWeb(wanted: ListenerOptions, protocol: 'ws' | 'wss'): Promise<void> {
    const { limits } = this.#options
    const tls = this.#tls
    const shared = this.#web_ports.find(
      ({ listener, port }) => listener.host === wanted.host && listener.port === wanted.port && !port.serves(protocol),
    )?.port
    const port = shared ?? new WebPort(limits.message_bytes)
    const opened: WebSocketOpened = (client, socket) =>
      this.#connections.accepted(listener, socket)?.attachWebSocket(client)
    if (protocol === 'ws') port.servePlain(opened)
    else if (tls) this.#secure.push(port.serveSecure(tls, opened))
    else throw new Error('a WSS listening point needs a key and a certificate')
    const listener = shared
      ? this.#added(wanted, wanted.port)
      : await this.#opened(port.server, wanted, server => this.#guardHandshakes(server))
    if (!shared) this.#web_ports.push({ listener, port })
  }

  #connect(to: TransportDestination, listener: Listener): StreamConnection {
    const connection = this.#connections.dialled(listener, { host: to.host, port: to.port }, this.#proofOf(to))
    const give_up = this.#options.clock.after(this.#options.limits.connect_ms, () =>
      connection.fail(Object.assign(new Error('connect timed out'), { code: 'ETIMEDOUT' })),
    )
    const ready = (): void => {
      give_up.cancel()
      connection.connected()
    }
    // Connect from the address of the listening point, as for datagrams. Peers that identify us by address must see the
    // same one over every transport.
    const from = { host: to.host, port: to.port, ...(isWildcard(listener.host) ? {} : { localAddress: listener.host }) }
    if (to.protocol === 'tls') {
      const socket = connectTls({
        ...from,
        ...peerOptions(this.#tls, this.#verificationOf(to), to.server_name),
      })
      socket.once('secureConnect', () => {
        const wrong = wrongPin(socket, this.#verificationOf(to))
        if (wrong) connection.fail(wrong)
        else ready()
      })
      connection.attachSocket(socket, true)
    } else {
      const socket = connectTcp({ ...from, allowHalfOpen: true })
      socket.once('connect', ready)
      connection.attachSocket(socket, true)
    }
    return connection
  }

  #verificationOf({ tls }: TransportDestination): TlsVerification {
    return tls ?? { mode: this.#tls?.verify_peers ? 'required' : 'off' }
  }

  /** Returns what a connection's peer must have proved to serve a destination; '' when nothing is required. */
  #proofOf(to: TransportDestination): string {
    if (to.protocol !== 'tls' || to.tls?.mode === 'flow') return ''
    const verification = this.#verificationOf(to)
    switch (verification.mode) {
      case 'required':
        return proofOfName(to.server_name ?? to.host)
      case 'pinned':
        return proofOfPin(verification.fingerprint)
      default:
        return ''
    }
  }
}

function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::'
}

function isLoopback(host: string): boolean {
  return host === '127.0.0.1' || host === '::1'
}

function leadingBreaks(data: Buffer): number {
  let i = 0
  while (i < data.length && (data[i] === 13 || data[i] === 10)) i++
  return i
}

async function bound(socket: DatagramSocket, { host, port }: ListenerOptions): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const failed = (cause: Error): void => reject(new ListenError('udp', host, port, cause))
    socket.once('error', failed)
    socket.bind(port, host, () => {
      socket.off('error', failed)
      resolve()
    })
  })
}

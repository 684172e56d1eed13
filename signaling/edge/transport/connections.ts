import type { Socket } from 'node:net'
import { hostGroup } from '../../../core/domain/identity/address.ts'
import type { Clock, Timer } from '../../../core/runtime/clock.ts'
import { type ConnectionSetup, StreamConnection } from './connection.ts'
import { type Holder, OpenConnections } from './open-connections.ts'
import type { Address, Listener, Protocol, Received, TransportEvents, TransportLimits } from './types.ts'

// All connections of a stack. The table limits their number, in total and per source, closes idle ones, and finds a
// connection by the addresses of its peer.

/** A connection has one alias for each port on which its peer listens and each name in the peer's certificate. */
const MAX_ALIASES = 16
/** How long a connection that can no longer be read waits for answers to what was read. */
const ANSWERS_MS = 5_000

export class ConnectionTable {
  readonly #limits: TransportLimits
  readonly #clock: Clock
  readonly #events: TransportEvents
  readonly #open: OpenConnections
  readonly #by_peer = new Map<string, StreamConnection>()
  /** Open inbound connections per source, including handshakes. A source is a peer's host, or a stranger's network. */
  readonly #per_source = new Map<string, number>()
  /** Sockets in their handshake by peer and ports, oldest first. The timer `late` closes a slow one. */
  readonly #handshakes = new Map<string, { readonly socket: Socket; readonly late: Timer }>()
  readonly #sweeper: Timer
  /** Connections that were refused or closed to make room. */
  refused = 0

  constructor(limits: TransportLimits, clock: Clock, events: TransportEvents) {
    this.#limits = limits
    this.#clock = clock
    this.#events = events
    this.#open = new OpenConnections(limits.connections, connection => this.#holderOf(connection))
    this.#sweeper = clock.every(5_000, () => this.#sweep())
  }

  get size(): number {
    return this.#open.size
  }

  /** Returns an open connection to a peer, which may be one that the peer made (RFC 5923). */
  to(protocol: Protocol, host: string, port: number, proved = ''): StreamConnection | undefined {
    const found = this.#by_peer.get(peerKey(protocol, host, port, proved))
    return found?.takes_requests ? found : undefined
  }

  /** Lets requests to this port that require this proof use a connection that the peer made (RFC 5923 §9). */
  addAlias(connection: StreamConnection, port: number, proved: string): void {
    const key = peerKey(connection.protocol, connection.remote.host, port, proved)
    if (this.#by_peer.has(key) || connection.aliases.length >= MAX_ALIASES) return
    connection.aliases.push(key)
    this.#by_peer.set(key, connection)
  }

  /** Reports whether an accepted socket may stay; closes it otherwise. It counts for its source until it closes. */
  admits(socket: Socket, protocol?: Protocol): boolean {
    const { host } = remoteOf(socket)
    const source = this.#isPeer(host) ? host : hostGroup(host)
    const dropped = this.#events.dropped?.(host, protocol) ?? false
    if (dropped || (this.#per_source.get(source) ?? 0) >= this.#limits.connections_per_source) {
      if (!dropped) this.refused++
      socket.destroy()
      return false
    }
    this.#per_source.set(source, (this.#per_source.get(source) ?? 0) + 1)
    socket.on('close', () => {
      const left = (this.#per_source.get(source) ?? 1) - 1
      if (left > 0) this.#per_source.set(source, left)
      else this.#per_source.delete(source)
    })
    return true
  }

  /**
   * Like `admits`, for a socket that begins with a handshake. The handshake has a fixed deadline, even while bytes
   * trickle in. When too many are unfinished, the oldest one is closed, a stranger's first.
   */
  admitsHandshake(socket: Socket, protocol?: Protocol): boolean {
    if (!this.admits(socket, protocol)) return false
    const key = handshakeKey(socket)
    const late = this.#clock.after(this.#limits.handshake_ms, () => socket.destroy())
    this.#handshakes.set(key, { socket, late })
    socket.on('error', () => undefined)
    socket.on('close', () => {
      late.cancel()
      if (this.#handshakes.get(key)?.socket === socket) this.#handshakes.delete(key)
    })
    if (this.#handshakes.size > this.#limits.connections) this.#giveUpHandshake()
    return true
  }

  /** Adds an accepted socket whose handshake is done. Closes the socket when there is no room for it. */
  accepted(listener: Listener, socket: Socket, certified?: readonly string[]): StreamConnection | undefined {
    const key = handshakeKey(socket)
    this.#handshakes.get(key)?.late.cancel()
    this.#handshakes.delete(key)
    const remote = remoteOf(socket)
    if (this.#makeRoom(this.#isPeer(remote.host))) return this.#add(listener, remote, { inbound: true, certified })
    this.refused++
    socket.destroy()
    return undefined
  }

  /** Adds a connection that we make. */
  dialled(listener: Listener, remote: Address, proved: string): StreamConnection {
    // If configured peers hold all connections, one of theirs makes room.
    if (!this.#makeRoom(this.#isPeer(remote.host))) this.#makeRoom(true)
    return this.#add(listener, remote, { inbound: false, proved })
  }

  #add(
    listener: Listener,
    remote: Address,
    side: Pick<ConnectionSetup, 'inbound' | 'proved' | 'certified'>,
  ): StreamConnection {
    const limits = this.#limits
    const heard = (text: string, connection: StreamConnection): Received => ({
      text,
      protocol: listener.protocol,
      source: remote,
      listener,
      connection,
    })
    const connection = new StreamConnection({
      protocol: listener.protocol,
      listener,
      remote,
      ...side,
      limits,
      now: () => this.#clock.monotonic_ms(),
      events: {
        message: (from, text) => {
          this.#open.active(from)
          if (!this.#events.dropped?.(remote.host)) this.#events.received(heard(text, from))
        },
        broken: (from, item) => {
          const answer = this.#events.broken(heard(item.text, from), item.status, item.why)
          if (answer !== undefined) from.refuse(answer)
          this.#finish(from, 'stream could not be followed')
        },
        ended: from => this.#finish(from, 'connection closed'),
        closed: from => this.#gone(from),
      },
    })
    this.#open.active(connection)
    this.#by_peer.set(ownKey(connection), connection)
    return connection
  }

  close(): void {
    this.#sweeper.cancel()
    for (const { socket } of this.#handshakes.values()) socket.destroy()
    for (const connection of this.#open.all()) connection.fail(new Error('stack closed'))
  }

  /** Closes a connection on which nothing more can be read, after the requests before that have been answered. */
  #finish(connection: StreamConnection, why: string): void {
    const limit_ms = connection.finish() ? ANSWERS_MS : 1_000
    this.#clock.after(limit_ms, () => connection.fail(new Error(why)))
  }

  #gone(connection: StreamConnection): void {
    this.#open.delete(connection)
    for (const key of [ownKey(connection), ...connection.aliases]) {
      if (this.#by_peer.get(key) === connection) this.#by_peer.delete(key)
    }
  }

  #isPeer(host: string): boolean {
    return this.#events.isPeer?.(host) ?? true
  }

  #holderOf({ inbound, protocol, remote }: StreamConnection): Holder {
    if (this.#isPeer(remote.host)) return 'peer'
    // Customers decide whom we call and how often, so outbound connections get no reserve.
    return !inbound || this.#events.hasProved?.({ protocol, source: remote }) ? 'user' : 'stranger'
  }

  #makeRoom(is_peer: boolean): boolean {
    const { free, instead } = this.#open.placeFor(is_peer)
    if (!instead) return free
    this.refused++
    instead.fail(new Error('connection limit reached, this one was idle for longest'))
    return true
  }

  #giveUpHandshake(): void {
    const [oldest] = this.#handshakes.values()
    let given_up = oldest?.socket
    for (const { socket } of this.#handshakes.values()) {
      if (this.#isPeer(remoteOf(socket).host)) continue
      given_up = socket
      break
    }
    this.refused++
    given_up?.destroy()
  }

  #sweep(): void {
    const now = this.#clock.monotonic_ms()
    const { idle_ms, incomplete_ms } = this.#limits
    for (const connection of this.#open.all()) {
      if (connection.incomplete_at !== 0 && now - connection.incomplete_at > incomplete_ms) {
        connection.fail(new Error('message stayed incomplete'))
      } else if (now - connection.active_at > idle_ms && now >= connection.wanted_until) {
        connection.fail(new Error('idle'))
      }
    }
  }
}

function peerKey(protocol: Protocol, host: string, port: number, proved = ''): string {
  return `${protocol}|${host}|${port}|${proved}`
}

const ownKey = ({ protocol, remote, proved }: StreamConnection): string =>
  peerKey(protocol, remote.host, remote.port, proved)

// After a handshake the socket is another object with the same addresses.
function handshakeKey(socket: Socket): string {
  const { host, port } = remoteOf(socket)
  return `${host}|${port}|${socket.localPort}`
}

function remoteOf(socket: Socket): Address {
  const address = socket.remoteAddress ?? ''
  return { host: address.startsWith('::ffff:') ? address.slice(7) : address, port: socket.remotePort ?? 0 }
}

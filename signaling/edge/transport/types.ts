import type { Destination as Place, Protocol } from '../../../core/runtime/sip/locate.ts'
import type { StreamConnection } from './connection.ts'

export type { Protocol } from '../../../core/runtime/sip/locate.ts'

export interface Address {
  readonly host: string
  readonly port: number
}

/** A listening point: its bound address and the address that peers use. */
export interface Listener {
  readonly protocol: Protocol
  /** The bound address, an IP literal. */
  readonly host: string
  /** The bound port; the actual one when 0 was requested. */
  readonly port: number
  /** The address that Via, Contact and Record-Route show. */
  readonly advertised_host: string
  readonly ipv6: boolean
}

/** Where a message is to go: a resolved address or an existing connection. */
export interface TransportDestination extends Place {
  /** Use this connection while it is open. */
  readonly connection?: StreamConnection | undefined
}

/** The listening points of another machine's edge, for a stack that has none, and how messages leave there. */
export interface BorrowedListeners {
  readonly listeners: readonly Listener[]
  send(to: Place, text: string, failed: (error: Error) => void): void
}

/** A framed message as it came from the network. `text` is a byte string. */
export interface Received {
  readonly text: string
  readonly protocol: Protocol
  readonly source: Address
  readonly listener: Listener
  readonly connection: StreamConnection | undefined
}

/** One message that was sent or received, for the SIP ladder. */
export interface TracedMessage {
  readonly direction: 'in' | 'out'
  readonly protocol: Protocol
  readonly local: Address
  readonly remote: Address
  /** The bytes on the wire, as a byte string. */
  readonly text: string
  readonly retransmission: boolean
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** Bounds of the transport layer (threats §2.2). */
export interface TransportLimits {
  readonly message_bytes: number
  readonly connections: number
  readonly connections_per_source: number
  /** A connection that receives nothing for this long is closed, unless a registered contact needs it. */
  readonly idle_ms: number
  /** A message must be complete this long after its first byte. */
  readonly incomplete_ms: number
  /** Bytes that may wait for a peer that does not read. */
  readonly unsent_bytes: number
  readonly connect_ms: number
  readonly handshake_ms: number
}

export const DEFAULT_TRANSPORT_LIMITS: TransportLimits = {
  message_bytes: 65_536,
  connections: 10_000,
  connections_per_source: 2_000,
  idle_ms: 600_000,
  incomplete_ms: 30_000,
  unsent_bytes: 1_048_576,
  connect_ms: 5_000,
  handshake_ms: 10_000,
}

export interface TransportEvents {
  readonly received: (message: Received) => void
  /** A stream can no longer be framed. Returns the answer, if any, to send before the connection closes. */
  readonly broken: (received: Received, status: number, why: string) => string | undefined
  /** Called before a packet is read, and for a new connection with the protocol if known. True drops it silently. */
  readonly dropped?: ((host: string, connection?: Protocol) => boolean) | undefined
  /** Whether a host is a configured peer's. Such peers have a reserve of connections. Default: all are. */
  readonly isPeer?: ((host: string) => boolean) | undefined
  /** Whether valid credentials arrived over this connection recently. */
  readonly hasProved?: ((from: Pick<Received, 'protocol' | 'source'>) => boolean) | undefined
  readonly traced?: ((message: TracedMessage) => void) | undefined
  readonly warn: (facts: object, text: string) => void
}

export function isReliable(protocol: Protocol): boolean {
  return protocol !== 'udp'
}

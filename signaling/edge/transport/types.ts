import type { Destination as Place, Protocol } from '../../../core/runtime/sip/locate.ts'
import type { StreamConnection } from './connection.ts'

export type { Protocol } from '../../../core/runtime/sip/locate.ts'

export interface Address {
  readonly host: string
  readonly port: number
}

/** A listening point: where it is bound and how peers are told to reach it. */
export interface Listener {
  readonly protocol: Protocol
  /** Bound address, an IP literal. */
  readonly host: string
  /** Bound port, the actual one when 0 was asked for. */
  readonly port: number
  /** Address that Via, Contact and Record-Route show. */
  readonly advertised_host: string
  readonly ipv6: boolean
}

/** Where a message is to go: a resolved address, or a connection that exists already. */
export interface Destination extends Place {
  /** Use this connection as long as it is open. */
  readonly connection?: StreamConnection | undefined
}

/** A framed message as it came from the network; `text` is a byte string. */
export interface Received {
  readonly text: string
  readonly protocol: Protocol
  readonly source: Address
  readonly listener: Listener
  readonly connection: StreamConnection | undefined
}

/** One direction of one message, for the SIP ladder. */
export interface TracedMessage {
  readonly direction: 'in' | 'out'
  readonly protocol: Protocol
  readonly local: Address
  readonly remote: Address
  /** As it was on the wire, a byte string. */
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
  /** A connection on which nothing arrived for so long is closed. */
  readonly idle_ms: number
  /** A message that has begun must be complete after so long. */
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
  /** A stream that cannot be followed; the connection closes after `answer`, if there is one, was sent. */
  readonly broken: (received: Received, status: number, why: string) => string | undefined
  /** Asked before a packet of an address is read, and with the protocol, where it is known, for a new connection. */
  readonly dropped?: ((host: string, connection?: Protocol) => boolean) | undefined
  /** Whether a host is a configured peer's: these have a reserve of connections. Unset: all are. */
  readonly isPeer?: ((host: string) => boolean) | undefined
  /** Whether credentials that came by this connection lately were good. */
  readonly hasProved?: ((from: Pick<Received, 'protocol' | 'source'>) => boolean) | undefined
  readonly traced?: ((message: TracedMessage) => void) | undefined
  readonly warn: (facts: object, text: string) => void
}

export function isReliable(protocol: Protocol): boolean {
  return protocol !== 'udp'
}

import { boundedMap } from '../../core/domain/bounded-map.ts'
import type { TlsVerification } from '../../core/domain/network/tls-verification.ts'
import type { TlsOptions } from '../../core/runtime/certificate.ts'
import { type Clock, systemClock } from '../../core/runtime/clock.ts'
import {
  type DnsSource,
  type Located,
  Locator,
  type Destination as Place,
  systemDns,
} from '../../core/runtime/sip/locate.ts'
import { viaFor } from './dialog/dialog.ts'
import { newBranch } from './sip/ids.ts'
import type { Draft, SipMessage } from './sip/message.ts'
import { DEFAULT_MESSAGE_LIMITS } from './sip/parse.ts'
import { branchOf, cancelOf } from './sip/sent-text.ts'
import { parseUri } from './sip/uri.ts'
import { DEFAULT_TIMER_SCALE, type TimerScale } from './timers.ts'
import { type ClientEvents, type ClientTransaction, UNHEARD } from './transaction/client.ts'
import { TransactionLayer, type TransactionUser } from './transaction/layer.ts'
import type { StreamConnection } from './transport/connection.ts'
import { type ListenerOptions, TransportLayer } from './transport/layer.ts'
import {
  DEFAULT_TRANSPORT_LIMITS,
  type Listener,
  type Protocol,
  type TracedMessage,
  type TransportDestination,
  type TransportLimits,
} from './transport/types.ts'

// The SIP stack without an application: it combines transports, transactions and location. The edge uses it, and so do
// the sandbox carrier and test peers (useragent/user-agent.ts).

/** The log of the stack. A pino logger satisfies it. */
export interface EdgeLog {
  debug(facts: object, text: string): void
  info(facts: object, text: string): void
  warn(facts: object, text: string): void
  error(facts: object, text: string): void
}

export const silentLog: EdgeLog = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
}

export interface StackOptions {
  readonly listeners: readonly ListenerOptions[]
  readonly tls?: TlsOptions | undefined
  readonly user: TransactionUser
  readonly log?: EdgeLog | undefined
  readonly clock?: Clock | undefined
  readonly timers?: TimerScale | undefined
  readonly dns?: DnsSource | undefined
  readonly random?: (() => number) | undefined
  readonly limits?:
    | (Partial<TransportLimits> & { readonly transactions?: number; readonly header_count?: number })
    | undefined
  /**
   * Called for each packet, and with the protocol for each new connection, before it is read. True drops it silently.
   */
  readonly dropped?: ((host: string, connection?: Protocol) => boolean) | undefined
  /** Called with every message in either direction, for the SIP ladder. */
  readonly onMessage?: ((message: TracedMessage) => void) | undefined
  /** A request above this size goes over TCP although UDP was located (RFC 3261 §18.1.1). */
  readonly tcp_above_bytes?: number | undefined
  /** Whether requests in a dialog with `peer` may go to an address that the peer named. Default: to any address. */
  readonly mayReach?: ((named: TransportDestination, peer: TransportDestination) => boolean) | undefined
  /** The edges of other machines. */
  readonly machines?: OtherMachines | undefined
}

/** What the stack needs of the edges of other machines (machines/machines.ts). */
export interface OtherMachines {
  /** Begins the tags and branches of this edge, so that others know whose they are; '' while there are no others. */
  readonly mark: string
  /** Gives the flow of a peer that reaches another machine's edge; undefined when that edge cannot be reached. */
  flow(machine_id: string, peer: Place, then: (flow: StreamConnection | undefined) => void): void
}

/** A request as it was sent. */
export interface SentRequest {
  readonly text: string
  readonly listener: Listener
  readonly destination: TransportDestination
}

export interface RequestEvents {
  /** Called once, when the request is first handed to the network. */
  readonly sent?: (sent: SentRequest) => void
  readonly response: (response: SipMessage, from: { host: string; port: number }, sent: SentRequest) => void
  /** No address answered in time. `sent` is the last attempt. */
  readonly timeout: (sent: SentRequest) => void
  /** No address could be reached. */
  readonly unreachable: (why: 'dns' | 'scheme' | 'transport' | 'network', sent: SentRequest | undefined) => void
}

/** A request in progress. It may use several client transactions in sequence (RFC 3263 §4.3). */
export interface OutgoingRequest {
  readonly transaction: ClientTransaction | undefined
  readonly sent: SentRequest | undefined
  /** Ends the current transaction. No further address is tried and no further event is reported. */
  abandon(): void
  /** Stops failover: no further address is tried. */
  settle(): void
}

export type NextHop =
  | {
      readonly uri: string
      /** The name that the peer's TLS certificate must prove when `uri` holds the resolved address. */
      readonly server_name?: string | undefined
      /** The peer of the dialog. A request goes to a located address that the peer may name, otherwise to the peer. */
      readonly peer?: TransportDestination | undefined
      /** How the peer's TLS certificate is verified. Default: the stack's own setting. */
      readonly tls?: TlsVerification | undefined
      /** The machine whose edge has a flow to this address. Default: this one. */
      readonly machine_id?: string | undefined
    }
  | { readonly destination: TransportDestination }

export class EdgeStack {
  readonly transport: TransportLayer
  readonly transactions: TransactionLayer
  readonly locator: Locator
  readonly clock: Clock
  readonly log: EdgeLog
  readonly #machines: OtherMachines | undefined
  readonly #tcp_above: number
  readonly #mayReach: (named: TransportDestination, peer: TransportDestination) => boolean
  /** Peers that refused TCP after a large request was switched to it, with the time of the refusal. */
  readonly #udp_only = boundedMap<string, number>(2_000)

  private constructor(options: StackOptions, transport: TransportLayer, transactions: TransactionLayer, clock: Clock) {
    this.transport = transport
    this.transactions = transactions
    this.clock = clock
    this.log = options.log ?? silentLog
    this.#machines = options.machines
    this.#tcp_above = options.tcp_above_bytes ?? 1_300
    this.#mayReach = options.mayReach ?? (() => true)
    this.locator = new Locator({
      clock,
      dns: options.dns ?? systemDns(),
      random: options.random ?? Math.random,
      serves: protocol => transport.hasProtocol(protocol),
      servesFamily: (protocol, host) => transport.listenerFor(protocol, host) !== undefined,
      first_family: transport.listeners[0]?.ipv6 ? 'ipv6' : 'ipv4',
    })
  }

  /** Opens all listening points or none. Rejects with ListenError when one is in use. */
  static async open(options: StackOptions): Promise<EdgeStack> {
    const clock = options.clock ?? systemClock
    const log = options.log ?? silentLog
    const limits: TransportLimits = { ...DEFAULT_TRANSPORT_LIMITS, ...options.limits }
    const transactions = new TransactionLayer({
      clock,
      scale: options.timers ?? DEFAULT_TIMER_SCALE,
      limits: {
        message_bytes: limits.message_bytes,
        header_count: options.limits?.header_count ?? DEFAULT_MESSAGE_LIMITS.header_count,
      },
      max_transactions: options.limits?.transactions ?? 50_000,
      user: options.user,
      failed: error => log.error({ err: error }, 'unexpected exception in the SIP stack'),
    })
    const transport = await TransportLayer.open({
      listeners: options.listeners,
      tls: options.tls,
      limits,
      clock,
      events: {
        received: received => transactions.receive(received),
        broken: (received, status, why) => transactions.refuseBroken(received, status, why),
        dropped: options.dropped,
        isPeer: options.user.isPeer,
        hasProved: options.user.hasProved,
        traced: options.onMessage,
        warn: (facts, text) => log.warn(facts, text),
      },
    })
    transactions.attach(transport)
    return new EdgeStack(options, transport, transactions, clock)
  }

  /** Begins the tags and branches of this edge. */
  get mark(): string {
    return this.#machines?.mark ?? ''
  }

  renewTls(tls: TlsOptions): void {
    this.transport.renewTls(tls)
  }

  close(): void {
    this.transactions.close()
    this.transport.close()
  }

  /**
   * Sends a request. `build` makes the message, without Via, for the listening point that sends it. It is called again
   * for each further address. An ACK is sent without a transaction. `patience_ms` replaces 64×T1 at the last address.
   */
  request(
    method: string,
    hop: NextHop,
    build: (listener: Listener) => Draft,
    events: RequestEvents,
    patience_ms?: number | undefined,
  ): OutgoingRequest {
    const attempt = new Attempts(this, method, build, events, patience_ms)
    if ('destination' in hop) attempt.begin([hop.destination])
    else {
      const uri = parseUri(hop.uri)
      if (!uri) queueMicrotask(() => events.unreachable('scheme', undefined))
      else {
        this.locator.locate(uri, (located: Located) => {
          if (located.kind === 'found' && hop.machine_id) this.#borrow(attempt, hop.machine_id, located.destinations)
          else if (located.kind === 'found') attempt.begin(this.#judged(located.destinations, hop))
          else if (hop.peer) attempt.begin([hop.peer])
          else attempt.fail(located.why === 'family' ? 'transport' : located.why)
        })
      }
    }
    return attempt
  }

  // The address is a literal, so it is one destination. A datagram may also leave here: not each peer is behind a NAT.
  #borrow(attempt: Attempts, machine_id: string, [peer]: readonly TransportDestination[]): void {
    if (!peer || !this.#machines) {
      attempt.fail('transport')
      return
    }
    this.#machines.flow(machine_id, peer, connection => {
      if (connection) attempt.begin([{ ...peer, connection }])
      else attempt.begin(peer.protocol === 'udp' ? [peer] : [])
    })
  }

  // A peer may name any address in Contact or Record-Route. If none of them is allowed, the request goes to the address
  // with which the dialog was established.
  #judged(
    located: readonly TransportDestination[],
    { server_name: named, peer, tls }: Extract<NextHop, { uri: string }>,
  ): readonly TransportDestination[] {
    if (!peer) {
      if (named === undefined && tls === undefined) return located
      return located.map(found => ({ ...found, tls, server_name: named ?? found.server_name }))
    }
    const allowed: TransportDestination[] = []
    for (const found of located) {
      const { protocol, host, port } = found
      // The peer's certificate is verified in the same way as when the dialog began. A peer that called has shown none.
      const server_name = peer.server_name ?? found.server_name
      if (host === peer.host) allowed.push({ protocol, host, port, tls: peer.tls, server_name })
      else if (this.#mayReach(found, peer)) allowed.push(found)
    }
    return allowed.length > 0 ? allowed : [peer]
  }

  /** Cancels an INVITE that has received a provisional response (RFC 3261 §9.1). */
  cancel(
    { text, destination }: Pick<SentRequest, 'text' | 'destination'>,
    cancel = cancelOf(text).serialize(),
    events: ClientEvents = UNHEARD,
  ): void {
    this.transactions.send({ method: 'CANCEL', branch: branchOf(text), text: cancel, destination }, events)
  }

  /**
   * RFC 3261 §18.1.1: switches a request too large for UDP to TCP, unless the peer refused TCP in the last 10 minutes.
   */
  suits(destination: TransportDestination, bytes: number): TransportDestination {
    if (destination.protocol !== 'udp' || bytes <= this.#tcp_above || destination.connection) return destination
    const tcp: TransportDestination = { ...destination, protocol: 'tcp' }
    if (!this.transport.listenerFor('tcp', destination.host)) return destination
    const refused = this.#udp_only.get(`${destination.host}|${destination.port}`)
    return refused !== undefined && this.clock.monotonic_ms() - refused < 600_000 ? destination : tcp
  }

  refusesTcp(destination: TransportDestination): void {
    this.#udp_only.set(`${destination.host}|${destination.port}`, this.clock.monotonic_ms())
  }
}

class Attempts implements OutgoingRequest {
  transaction: ClientTransaction | undefined
  sent: SentRequest | undefined
  readonly #stack: EdgeStack
  readonly #method: string
  readonly #build: (listener: Listener) => Draft
  readonly #events: RequestEvents
  readonly #patience_ms: number | undefined
  #left: TransportDestination[] = []
  #settled = false
  #abandoned = false
  #provisional = false

  constructor(
    stack: EdgeStack,
    method: string,
    build: (listener: Listener) => Draft,
    events: RequestEvents,
    patience_ms: number | undefined,
  ) {
    this.#patience_ms = patience_ms
    this.#stack = stack
    this.#method = method
    this.#build = build
    this.#events = events
  }

  begin(destinations: readonly TransportDestination[]): void {
    this.#left = [...destinations]
    this.#next('transport')
  }

  fail(why: 'dns' | 'scheme' | 'transport'): void {
    if (!this.#abandoned) this.#events.unreachable(why, undefined)
  }

  settle(): void {
    this.#settled = true
  }

  abandon(): void {
    this.#settled = true
    this.#abandoned = true
    this.transaction?.terminate()
  }

  #next(why: 'transport' | 'network'): void {
    if (this.#abandoned) return
    const destination = this.#settled ? undefined : this.#left.shift()
    if (!destination) {
      this.#events.unreachable(why, this.sent)
      return
    }
    this.#try(destination)
  }

  #try(located: TransportDestination): void {
    const { connection } = located
    const own = connection?.lent ? undefined : this.#stack.transport.listenerFor(located.protocol, located.host)
    let listener = own ?? connection?.listener
    if (!listener) {
      this.#next('transport')
      return
    }
    const branch = newBranch(this.#stack.mark)
    let draft = this.#build(listener)
    draft.headers.unshift({ rank: 0, id: 'via', name: 'Via', value: viaFor(listener, branch) })
    let text = draft.serialize()
    const destination = this.#stack.suits(located, text.length)
    if (destination.protocol !== located.protocol) {
      listener = this.#stack.transport.listenerFor(destination.protocol, destination.host) ?? listener
      draft = this.#build(listener)
      draft.headers.unshift({ rank: 0, id: 'via', name: 'Via', value: viaFor(listener, branch) })
      text = draft.serialize()
    }
    const sent: SentRequest = { text, listener, destination }
    const first = this.sent === undefined
    this.sent = sent
    if (this.#method === 'ACK') {
      this.#stack.transport.send(destination, text, false, () => undefined)
      this.#events.sent?.(sent)
      return
    }
    if (first) this.#events.sent?.(sent)
    const { t1 } = this.#stack.transactions.scale
    this.transaction = this.#stack.transactions.send(
      {
        method: this.#method,
        branch,
        text,
        destination,
        // While other addresses remain, a wait of the full 32 s would make failover useless.
        patience_ms: this.#left.length > 0 ? 10 * t1 : this.#patience_ms,
      },
      {
        response: (response, from) => this.#response(response, from, sent),
        timeout: () => {
          this.#stack.locator.failedAt(destination)
          if (this.#left.length > 0 && !this.#settled && !this.#provisional) this.#next('network')
          else if (!this.#abandoned) this.#events.timeout(sent)
        },
        unreachable: () => {
          if (destination.protocol !== located.protocol) {
            // We chose TCP; the peer may serve only UDP.
            this.#stack.refusesTcp(located)
            if (!this.#abandoned && !this.#settled) this.#try(located)
            return
          }
          this.#stack.locator.failedAt(destination)
          this.#next('network')
        },
      },
    )
  }

  #response(response: SipMessage, from: { host: string; port: number }, sent: SentRequest): void {
    if (this.#abandoned) return
    this.#provisional = true
    // RFC 3263 §4.3: 503 means that this address cannot serve the request now. Try the next one.
    if (response.status === 503 && this.#left.length > 0 && !this.#settled) {
      this.#stack.locator.failedAt(sent.destination)
      this.#next('network')
      return
    }
    this.#stack.locator.answered(sent.destination)
    this.#events.response(response, from, sent)
  }
}

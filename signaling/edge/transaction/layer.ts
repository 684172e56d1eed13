import { boundedMap } from '../../../core/domain/bounded-map.ts'
import type { Clock } from '../../../core/runtime/clock.ts'
import { defaultPort } from '../../../core/runtime/sip/locate.ts'
import { newTag } from '../sip/ids.ts'
import { draftResponse, type SipMessage } from '../sip/message.ts'
import { canBeAnswered, checkRequest, checkResponse, type MessageLimits, parseMessage } from '../sip/parse.ts'
import { smallAnswer } from '../sip/small-answer.ts'
import type { Via } from '../sip/uri.ts'
import { type TimerScale, TimerWheel } from '../timers.ts'
import type { TransportLayer } from '../transport/layer.ts'
import type { Address, Received, TransportDestination } from '../transport/types.ts'
import { type ClientEvents, type ClientRequest, ClientTransaction, clientKey } from './client.ts'
import { HostPool } from './host-pool.ts'
import { ServerTransaction } from './server.ts'
import { inviteKey, serverKey } from './server-key.ts'
import { fixVia } from './via-source.ts'

// Matches messages to transactions (RFC 3261 §17.1.3, §17.2.3). It handles malformed requests, retransmissions and the
// ACK of failures without the transaction user.

/**
 * The standing of a request's sender. `unproven`: the sender's credentials are not verified yet. `done`: the sender is
 * a stranger and its request has been handled.
 */
export type SenderStanding = 'peer' | 'unproven' | 'done'

/** The user of the transaction layer (RFC 3261's TU). */
export interface TransactionUser {
  /** A new request other than ACK and CANCEL. */
  readonly request: (transaction: ServerTransaction) => void
  /** The ACK of a 2xx, or a stray ACK. */
  readonly ack: (ack: SipMessage, received: Received) => void
  /** A CANCEL with its own transaction, and the INVITE that it cancels, if known (RFC 3261 §9.2). */
  readonly cancel: (cancel: ServerTransaction, invite: ServerTransaction | undefined) => void
  /** A message is malformed. Returns false to suppress the response, because the source is answered too often. */
  readonly malformed?: ((received: Received, why: string) => boolean) | undefined
  /**
   * Passes on a message that belongs to another machine's edge: a request in its dialog, or a response to its request.
   * Returns false for any other.
   */
  readonly relays?: ((message: SipMessage, received: Received) => boolean) | undefined
  /** Called for each request that matches no transaction, before any state is created. Default: all are peers'. */
  readonly standing?: ((request: SipMessage, received: Received) => SenderStanding) | undefined
  /**
   * Whether a host is a configured peer's. Stray messages of strangers are not traced, answers to strangers are small,
   * and strangers cannot use the transactions reserved for peers.
   */
  readonly isPeer?: ((host: string) => boolean) | undefined
  /** Whether valid credentials arrived over this flow recently. */
  readonly hasProved?: ((from: Pick<Received, 'protocol' | 'source'>) => boolean) | undefined
  /** Whether the sender at this host also owns this port. Default: never. */
  readonly ownsAddress?: ((address: Address) => boolean) | undefined
  /** The credentials in this request are valid. */
  readonly proved?: ((received: Received) => void) | undefined
}

interface TransactionCounters {
  received: number
  malformed: number
  stray: number
  retransmissions_received: number
  retransmissions_sent: number
  unsent_responses: number
  refused_busy: number
  /** Requests of strangers that were answered without a transaction. */
  strangers_answered: number
}

interface TransactionOptions {
  readonly clock: Clock
  readonly scale: TimerScale
  readonly limits: MessageLimits
  /** Concurrent server transactions. Further requests get 503. */
  readonly max_transactions: number
  readonly user: TransactionUser
  readonly failed: (error: unknown) => void
}

/** Concurrent transactions with unverified credentials. Verification takes milliseconds, so this is ample. */
const MAX_UNPROVEN = 500
/** The share of transactions that strangers leave to peers. */
const FOR_PEERS = 0.1

/**
 * Sent with a 503 when all transactions are in use, or no application serves yet. Both pass soon. Peers take a 503
 * without it for a 500 (RFC 3261 §21.5.4).
 */
export const RETRY_AFTER_SECONDS = '5'

export class TransactionLayer {
  readonly wheel: TimerWheel
  readonly scale: TimerScale
  readonly counters: TransactionCounters = {
    received: 0,
    malformed: 0,
    stray: 0,
    retransmissions_received: 0,
    retransmissions_sent: 0,
    unsent_responses: 0,
    refused_busy: 0,
    strangers_answered: 0,
  }
  readonly #options: TransactionOptions
  readonly #clients = new Map<string, ClientTransaction>()
  readonly #servers = new Map<string, ServerTransaction>()
  readonly #merge = new Map<string, ServerTransaction>()
  /** Addresses that sent something, with the time of the last message. Recent ones are not probed. */
  readonly #heard = boundedMap<string, { last_ms: number }>(10_000)
  #transport: TransportLayer | undefined
  /** The transactions of strangers and of peers, by host. No host may take those that the others need. */
  readonly #unproven = new HostPool()
  readonly #proven = new HostPool()

  constructor(options: TransactionOptions) {
    this.#options = options
    this.scale = options.scale
    this.wheel = new TimerWheel(options.clock, options.failed)
  }

  get transport(): TransportLayer {
    if (!this.#transport) throw new Error('transport is not attached')
    return this.#transport
  }

  attach(transport: TransportLayer): void {
    this.#transport = transport
  }

  now(): number {
    return this.#options.clock.now()
  }

  get client_count(): number {
    return this.#clients.size
  }

  get server_count(): number {
    return this.#servers.size
  }

  /** Starts a client transaction. The topmost Via of the text must hold `branch`. */
  send(request: ClientRequest, events: ClientEvents): ClientTransaction {
    const transaction = new ClientTransaction(this, request, events)
    this.#clients.set(transaction.key, transaction)
    transaction.start()
    return transaction
  }

  /**
   * Resumes an INVITE of an earlier run that has received a provisional response, so that its responses match again.
   */
  resumeInvite(request: ClientRequest, events: ClientEvents): ClientTransaction {
    const transaction = new ClientTransaction(this, request, events)
    this.#clients.set(transaction.key, transaction)
    transaction.resume()
    return transaction
  }

  /** Resumes a request of an earlier run, so that it can be answered. Undefined when it is unreadable or known. */
  resumeServer(received: Received): ServerTransaction | undefined {
    const parsed = parseMessage(received.text, this.#options.limits)
    if (parsed.kind === 'junk') return undefined
    const { message } = parsed
    const key = serverKey(message, received)
    if (this.#servers.has(key)) return undefined
    fixVia(message, received)
    const share = this.#proven.take(received.source.host)
    const transaction = new ServerTransaction(this, key, '', message, received, true, share)
    this.#servers.set(key, transaction)
    return transaction
  }

  forgetClient(key: string): void {
    this.#clients.delete(key)
  }

  forgetServer(transaction: ServerTransaction): void {
    this.#servers.delete(transaction.key)
    if (this.#merge.get(transaction.merge_key) === transaction) this.#merge.delete(transaction.merge_key)
    const pool = transaction.proven ? this.#proven : this.#unproven
    pool.give(transaction.share)
  }

  /** The transaction's credentials are valid. Traces its request and counts it as a peer's from now on. */
  proved(transaction: ServerTransaction): void {
    this.#unproven.give(transaction.share)
    transaction.share = this.#proven.take(transaction.received.source.host)
    this.#hear(transaction.received)
    this.transport.traceReceived(transaction.received, false, transaction.arrived_at)
    this.#options.user.proved?.(transaction.received)
  }

  /** Sends an answer without a transaction and without tracing it. */
  answerStranger({ protocol, source, connection }: Received, text: string): void {
    this.counters.strangers_answered++
    const to = { protocol, host: source.host, port: source.port, connection }
    this.transport.send(to, text, false, () => this.counters.unsent_responses++, false)
  }

  /**
   * A destination did not answer in time. Probes its port unless it sent something in the last 5 s, so that a refusing
   * host is noticed without waiting for Timer B.
   */
  silent(destination: TransportDestination, refused: () => void): void {
    if (destination.protocol !== 'udp' || destination.connection) return
    const key = `${destination.host}|${destination.port}`
    const heard = this.#heard.get(key)
    if (heard !== undefined && this.#options.clock.monotonic_ms() - heard.last_ms < 5_000) return
    this.transport.probe(destination.host, destination.port, refused)
  }

  /** Handles each message that the transport layer receives. */
  receive(received: Received): void {
    this.counters.received++
    try {
      this.#receive(received)
    } catch (error) {
      this.#options.failed(error)
    }
  }

  /** Returns the answer to a stream that can no longer be framed; undefined when no answer is possible. */
  refuseBroken(received: Received, status: number, why: string): string | undefined {
    this.counters.malformed++
    if (this.#isPeer(received)) this.transport.traceReceived({ ...received, text: received.text.slice(0, 4096) }, false)
    if (this.#options.user.malformed?.(received, why) === false) return undefined
    const parsed = parseMessage(`${received.text}\r\n`, this.#options.limits)
    if (parsed.kind === 'junk' || !canBeAnswered(parsed.message) || parsed.message.method === 'ACK') return undefined
    fixVia(parsed.message, received)
    const answer = draftResponse(parsed.message, status, newTag())
    return this.#isPeer(received) ? answer.serialize() : smallAnswer(answer, received)
  }

  close(): void {
    this.wheel.close()
    this.#clients.clear()
    this.#servers.clear()
    this.#merge.clear()
  }

  #receive(received: Received): void {
    const parsed = parseMessage(received.text, this.#options.limits)
    if (parsed.kind === 'junk') {
      this.counters.malformed++
      this.#options.user.malformed?.(received, parsed.why)
      return
    }
    const { message } = parsed
    if (!message.is_request) {
      const fault = parsed.kind === 'refused' ? parsed.why : checkResponse(message)
      if (fault !== undefined) {
        this.counters.malformed++
        this.#traceStray(received)
        this.#options.user.malformed?.(received, fault)
        return
      }
      this.#response(message, received)
      return
    }
    const refusal = parsed.kind === 'refused' ? parsed : checkRequest(message)
    if (refusal) {
      this.counters.malformed++
      this.#traceStray(received)
      if (this.#options.user.malformed?.(received, refusal.why) !== false) {
        this.#refuse(message, received, refusal.status)
      }
      return
    }
    this.#request(message, received)
  }

  #isPeer(received: Received): boolean {
    return this.#options.user.isPeer?.(received.source.host) ?? true
  }

  #traceStray(received: Received): void {
    if (this.#isPeer(received)) this.transport.traceReceived(received, false)
  }

  #hear(received: Received): void {
    if (received.protocol !== 'udp') return
    const key = `${received.source.host}|${received.source.port}`
    const last_ms = this.#options.clock.monotonic_ms()
    const known = this.#heard.get(key)
    // Each message comes here, and to replace a value of this map takes several times as long as to find it.
    if (known) known.last_ms = last_ms
    else this.#heard.set(key, { last_ms })
  }

  #response(message: SipMessage, received: Received): void {
    const transaction = this.#clients.get(clientKey(message.branch, message.cseq.method))
    if (!transaction) {
      if (this.#options.user.relays?.(message, received)) return
      this.counters.stray++
      this.#traceStray(received)
      return
    }
    this.#hear(received)
    const again = transaction.received(message, received.source)
    if (again) this.counters.retransmissions_received++
    this.transport.traceReceived(received, again)
  }

  #request(message: SipMessage, received: Received): void {
    if (this.#options.user.relays?.(message, received)) return
    const key = serverKey(message, received)
    this.#offered(message.via, received)
    fixVia(message, received)
    const method = message.method
    if (method === 'ACK') {
      const invite = this.#servers.get(key)
      if (!invite && this.#standing(message, received) !== 'peer') {
        this.counters.stray++
        return
      }
      if (invite?.proven !== false) this.transport.traceReceived(received, invite?.state === 'confirmed')
      if (invite && invite.state !== 'accepted') invite.acknowledged()
      else this.#options.user.ack(message, received)
      return
    }
    const known = this.#servers.get(key)
    if (known && known.method === method) {
      if (known.proven) this.transport.traceReceived(received, true)
      known.retransmitted()
      return
    }
    const cancelled = method === 'CANCEL' ? this.#servers.get(inviteKey(key)) : undefined
    const standing = this.#standing(message, received, cancelled)
    if (standing === 'done') return
    const proven = standing === 'peer'
    if (proven) {
      this.#hear(received)
      this.transport.traceReceived(received, false)
    }
    if (!this.#hasRoom(received.source.host, proven)) {
      this.counters.refused_busy++
      if (proven) this.#refuse(message, received, 503)
      return
    }
    const merge_key =
      message.to_tag === '' && method !== 'CANCEL'
        ? `${message.from_tag}|${message.call_id}|${message.cseq.seq}|${method}`
        : ''
    const share = (proven ? this.#proven : this.#unproven).take(received.source.host)
    const transaction = new ServerTransaction(this, key, merge_key, message, received, proven, share)
    if (merge_key !== '') {
      // RFC 3261 §8.2.2.2: the same request arrived over another path.
      if (this.#merge.has(merge_key)) {
        this.#servers.set(key, transaction)
        transaction.respond(draftResponse(message, 482, newTag()), 482)
        return
      }
      this.#merge.set(merge_key, transaction)
    }
    this.#servers.set(key, transaction)
    if (method === 'CANCEL') {
      this.#options.user.cancel(transaction, cancelled?.method === 'INVITE' ? cancelled : undefined)
    } else this.#options.user.request(transaction)
  }

  /** Reports whether a host may begin another transaction. Strangers leave the last tenth of all to peers. */
  #hasRoom(host: string, proven: boolean): boolean {
    const { max_transactions } = this.#options
    const free = max_transactions - this.#servers.size
    if (proven) return this.#proven.mayTake(host, free)
    return free > max_transactions * FOR_PEERS && this.#unproven.mayTake(host, MAX_UNPROVEN - this.#unproven.taken)
  }

  // RFC 5923: a peer offers its connection for requests to the port in its Via. Another host behind the same address
  // may own that port. So the offer holds only for names that the peer's certificate proves, or if the peer owns the
  // address.
  #offered(via: Via | undefined, { connection, protocol, source }: Received): void {
    if (!connection?.inbound || !via?.params.has('alias')) return
    const { host } = source
    const port = via.port ?? defaultPort(protocol)
    for (const proof of connection.certified) this.transport.addAlias(connection, port, proof)
    if (via.host !== host || !this.#options.user.ownsAddress?.({ host, port })) return
    this.transport.addAlias(connection, port, '')
  }

  #standing(message: SipMessage, received: Received, cancelled?: ServerTransaction): SenderStanding {
    if (cancelled) return cancelled.proven ? 'peer' : 'unproven'
    return this.#options.user.standing?.(message, received) ?? 'peer'
  }

  // Keeps no state: a repeated malformed request is answered again.
  #refuse(message: SipMessage, received: Received, status: number): void {
    if (message.method === 'ACK' || !canBeAnswered(message)) return
    fixVia(message, received)
    const { protocol, source, connection } = received
    const answer = draftResponse(message, status, newTag())
    if (status === 503) answer.add('Retry-After', RETRY_AFTER_SECONDS)
    if (!this.#isPeer(received)) {
      const small = smallAnswer(answer, received)
      if (small !== undefined) this.answerStranger(received, small)
      return
    }
    const text = answer.serialize()
    this.transport.send({ protocol, host: source.host, port: source.port, connection }, text, false, () => {
      this.counters.unsent_responses++
    })
  }
}

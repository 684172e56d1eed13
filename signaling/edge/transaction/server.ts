import { defaultPort } from '../../../core/runtime/sip/locate.ts'
import { type Draft, SipMessage } from '../sip/message.ts'
import { isSmall, smallAnswer } from '../sip/small-answer.ts'
import type { WheelTimer } from '../timers.ts'
import { isReliable, type Received, type TransportDestination } from '../transport/types.ts'
import type { HostShare } from './host-pool.ts'
import type { TransactionLayer } from './layer.ts'

// Server transactions (RFC 3261 §17.2, RFC 6026 §7.1).

type ServerState = 'trying' | 'proceeding' | 'completed' | 'accepted' | 'confirmed' | 'terminated'

/** Callbacks of the owner of a server transaction. */
interface ServerWatch {
  /** No ACK for a final response of 300 or above came within 64×T1. */
  readonly unacknowledged?: () => void
  /** The transaction was removed from memory. */
  readonly terminated?: () => void
}

const NO_REQUEST = new SipMessage()

export class ServerTransaction {
  readonly method: string
  readonly key: string
  /** The key by which the same request over another path is detected (RFC 3261 §8.2.2.2). */
  readonly merge_key: string
  state: ServerState
  /** False until the sender's credentials are verified. Until then the sender is a stranger and nothing is traced. */
  proven: boolean
  /** What the sender's host holds of the transactions of its kind. */
  share: HostShare
  /** Whether the request came within a dialog. */
  readonly in_dialog: boolean
  readonly arrived_at: number
  watch: ServerWatch = {}
  readonly #layer: TransactionLayer
  #request: SipMessage
  #received: Received
  readonly #via_port: number
  #last = ''
  #resend: WheelTimer | undefined
  #deadline: WheelTimer | undefined

  constructor(
    layer: TransactionLayer,
    key: string,
    merge_key: string,
    request: SipMessage,
    received: Received,
    proven: boolean,
    share: HostShare,
  ) {
    this.#layer = layer
    this.proven = proven
    this.share = share
    this.in_dialog = request.to_tag !== ''
    this.arrived_at = layer.now()
    this.key = key
    this.merge_key = merge_key
    this.#request = request
    this.#received = received
    this.#via_port = request.via?.port ?? defaultPort(received.protocol)
    this.method = request.method
    this.state = this.method === 'INVITE' ? 'proceeding' : 'trying'
  }

  /** Without headers and body once the final response has been sent. */
  get request(): SipMessage {
    return this.#request
  }

  /** Without the text once the final response has been sent. */
  get received(): Received {
    return this.#received
  }

  get answered(): boolean {
    return this.state !== 'trying' && this.state !== 'proceeding'
  }

  get reliable(): boolean {
    return isReliable(this.received.protocol)
  }

  /**
   * Where responses go: back to the source of the request (RFC 3581 §4). If its connection has closed, they go to the
   * port in the Via (RFC 3261 §18.2.2).
   */
  get destination(): TransportDestination {
    const { protocol, source, connection } = this.received
    const gone = this.reliable && !connection?.open
    const port = gone ? this.#via_port : source.port
    return { protocol, host: source.host, port, connection }
  }

  /** Whether the connection of a stream peer is still open. Always true over UDP. */
  get reachable(): boolean {
    return this.received.connection?.open ?? true
  }

  /** Sends a response and returns its bytes; undefined when a final response was already sent. */
  respond(draft: Draft, status: number): string | undefined {
    if (this.answered) return undefined
    if (this.#refusesStranger(status)) {
      const text = draft.serialize()
      this.#refuse(smallAnswer(draft, this.received))
      return text
    }
    const text = draft.serialize()
    this.respondText(text, status)
    return text
  }

  /** Like `respond`, with a serialized response. */
  respondText(text: string, status: number): void {
    if (this.answered) return
    if (this.#refusesStranger(status)) {
      this.#refuse(isSmall(text, this.received) ? text : undefined)
      return
    }
    if (!this.proven) {
      this.proven = true
      this.#layer.proved(this)
    }
    this.#last = text
    this.#send(text, false)
    if (status < 200) {
      this.state = 'proceeding'
      return
    }
    queueMicrotask(() => this.#release())
    const { t1 } = this.#layer.scale
    if (this.method !== 'INVITE') {
      this.state = 'completed'
      // Timer J
      this.#endAfter(this.reliable ? 0 : 64 * t1)
    } else if (status < 300) {
      this.state = 'accepted'
      // Timer L. The dialog retransmits the response until the ACK arrives, see `repeat`.
      this.#endAfter(64 * t1)
    } else {
      this.state = 'completed'
      // Timers G and H
      if (!this.reliable) this.#resendAfter(t1)
      this.#deadline = this.#layer.wheel.after(64 * t1, () => {
        this.watch.unacknowledged?.()
        this.terminate()
      })
    }
  }

  /**
   * Frees the request: from now on only the response is sent again, for up to 32 s, and a peer's messages of 64 kB
   * would fill the memory. Whoever has answered may read it until then.
   */
  #release(): void {
    const { protocol, source, listener, connection } = this.#received
    this.#received = { text: '', protocol, source, listener, connection }
    this.#request = NO_REQUEST
  }

  /** Retransmits a response. A layer above holds the timers for a 2xx to INVITE and for reliable 1xx. */
  repeat(text = this.#last): void {
    this.#layer.counters.retransmissions_sent++
    this.#send(text, true)
  }

  /** Handles a retransmission of the request. */
  retransmitted(): void {
    this.#layer.counters.retransmissions_received++
    if (this.#last !== '' && this.state !== 'confirmed') this.#send(this.#last, true)
  }

  /** Handles the ACK of a response of 300 or above. */
  acknowledged(): void {
    if (this.state !== 'completed') return
    this.state = 'confirmed'
    this.#resend?.cancel()
    this.#deadline?.cancel()
    // Timer I
    this.#endAfter(this.reliable ? 0 : this.#layer.scale.t4)
  }

  /** Frees the 2xx after its ACK. Retransmissions of the INVITE are then no longer answered. */
  releaseAnswer(): void {
    if (this.state === 'accepted') this.#last = ''
  }

  terminate(): void {
    if (this.state === 'terminated') return
    this.state = 'terminated'
    this.#resend?.cancel()
    this.#deadline?.cancel()
    this.#last = ''
    this.#layer.forgetServer(this)
    this.watch.terminated?.()
  }

  /** Whether the sender stays a stranger after this answer. Only a call that proceeds or a registration proves it. */
  #refusesStranger(status: number): boolean {
    if (this.proven) return false
    return !(this.method === 'INVITE' || (this.method === 'REGISTER' && status >= 200)) || status >= 300
  }

  // Keeps no state: a repeated request is judged again.
  #refuse(text: string | undefined): void {
    if (text !== undefined) this.#layer.answerStranger(this.received, text)
    this.terminate()
  }

  #endAfter(delay_ms: number): void {
    this.#deadline?.cancel()
    if (delay_ms === 0) this.terminate()
    else this.#deadline = this.#layer.wheel.after(delay_ms, () => this.terminate())
  }

  #resendAfter(delay_ms: number): void {
    this.#resend = this.#layer.wheel.after(delay_ms, () => {
      if (this.state !== 'completed') return
      this.repeat()
      this.#resendAfter(Math.min(delay_ms * 2, this.#layer.scale.t2))
    })
  }

  #send(text: string, again: boolean): void {
    // Only a missing ACK reveals an undelivered response (RFC 3261 §17.2.4); otherwise it is just counted.
    this.#layer.transport.send(this.destination, text, again, () => this.#layer.counters.unsent_responses++)
  }
}

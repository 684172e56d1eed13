import { defaultPort } from '../../../core/runtime/sip/locate.ts'
import type { Draft, SipMessage } from '../sip/message.ts'
import { isSmall, smallAnswer } from '../sip/small-answer.ts'
import type { WheelTimer } from '../timers.ts'
import { type Destination, isReliable, type Received } from '../transport/types.ts'
import type { TransactionLayer } from './layer.ts'

// Server transactions (RFC 3261 §17.2, RFC 6026 §7.1).

type ServerState = 'trying' | 'proceeding' | 'completed' | 'accepted' | 'confirmed' | 'terminated'

/** What the owner of a server transaction may want to hear. */
interface ServerWatch {
  /** No ACK came for a final response of 300 or above, in 64×T1. */
  readonly unacknowledged?: () => void
  /** The transaction has left memory. */
  readonly terminated?: () => void
}

export class ServerTransaction {
  readonly request: SipMessage
  readonly method: string
  readonly key: string
  /** Key of RFC 3261 §8.2.2.2, to notice the same request by another path. */
  readonly merge_key: string
  readonly received: Received
  state: ServerState
  /** False while the credentials of its sender are not judged: until then it is a stranger's, and nothing is kept. */
  proven: boolean
  readonly arrived_at: number
  watch: ServerWatch = {}
  readonly #layer: TransactionLayer
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
  ) {
    this.#layer = layer
    this.proven = proven
    this.arrived_at = layer.now()
    this.key = key
    this.merge_key = merge_key
    this.request = request
    this.received = received
    this.method = request.method
    this.state = this.method === 'INVITE' ? 'proceeding' : 'trying'
  }

  get answered(): boolean {
    return this.state !== 'trying' && this.state !== 'proceeding'
  }

  get reliable(): boolean {
    return isReliable(this.received.protocol)
  }

  /**
   * Responses go back where the request came from (RFC 3581 §4), and where that connection is gone to the port that
   * the Via names (RFC 3261 §18.2.2).
   */
  get destination(): Destination {
    const { protocol, source, connection } = this.received
    const gone = this.reliable && !connection?.open
    const port = gone ? (this.request.via?.port ?? defaultPort(protocol)) : source.port
    return { protocol, host: source.host, port, connection }
  }

  /** Whether the connection of a stream peer is still there. */
  get reachable(): boolean {
    return this.received.connection?.open ?? true
  }

  /** Sends a response. Returns its bytes, or undefined when a final response was sent before. */
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

  /** As `respond`, with bytes that are ready. */
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
    const { t1 } = this.#layer.scale
    if (this.method !== 'INVITE') {
      this.state = 'completed'
      // Timer J
      this.#endAfter(this.reliable ? 0 : 64 * t1)
    } else if (status < 300) {
      this.state = 'accepted'
      // Timer L. The response is repeated by the dialog until the ACK arrives, see `repeat`.
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

  /** Sends the last response once more: for 2xx to INVITE and reliable 1xx, whose timers live above this layer. */
  repeat(text = this.#last): void {
    this.#layer.counters.retransmissions_sent++
    this.#send(text, true)
  }

  /** The same request came again. */
  retransmitted(): void {
    this.#layer.counters.retransmissions_received++
    if (this.#last !== '' && this.state !== 'confirmed') this.#send(this.#last, true)
  }

  /** An ACK for a response of 300 or above. */
  acknowledged(): void {
    if (this.state !== 'completed') return
    this.state = 'confirmed'
    this.#resend?.cancel()
    this.#deadline?.cancel()
    // Timer I
    this.#endAfter(this.reliable ? 0 : this.#layer.scale.t4)
  }

  /** Stops answering retransmissions of the INVITE with the 2xx (the ACK has come), to give its memory back. */
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

  /** Whether the answer leaves its receiver a stranger: only who gets on with a call or registers is none. */
  #refusesStranger(status: number): boolean {
    if (this.proven) return false
    return !(this.method === 'INVITE' || (this.method === 'REGISTER' && status >= 200)) || status >= 300
  }

  // Nothing stays behind: the request that comes again is judged again.
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
    // A response that cannot be delivered is noticed by the missing ACK, or by nobody (RFC 3261 §17.2.4).
    this.#layer.transport.send(this.destination, text, again, () => this.#layer.counters.unsent_responses++)
  }
}

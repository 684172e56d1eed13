import type { SipMessage } from '../sip/message.ts'
import { tagOf } from '../sip/uri.ts'
import type { WheelTimer } from '../timers.ts'
import { type Destination, isReliable } from '../transport/types.ts'
import type { TransactionLayer } from './layer.ts'

// Client transactions (RFC 3261 §17.1, RFC 6026 §8.4), one class per kind.

export interface ClientEvents {
  /** Every response that is not a retransmission of the same final one; for INVITE also each further 2xx (forks). */
  readonly response: (response: SipMessage, from: { host: string; port: number }) => void
  /** No (final) response in 64×T1. */
  readonly timeout: () => void
  /** The network says that the request cannot reach its destination. */
  readonly unreachable: (error: Error) => void
}

/** For a request whose outcome changes nothing. */
export const UNHEARD = {
  response: () => undefined,
  timeout: () => undefined,
  unreachable: () => undefined,
} satisfies ClientEvents

/** What a client transaction sends, and what it must know of it. */
export interface ClientRequest {
  readonly method: string
  readonly branch: string
  /** The request as bytes. */
  readonly text: string
  readonly destination: Destination
  /** Overrides 64×T1 for Timer B or F, in ms: shorter when other addresses are left to try. */
  readonly patience_ms?: number | undefined
}

type InviteState = 'calling' | 'proceeding' | 'completed' | 'accepted' | 'terminated'

/** INVITE client transaction, RFC 3261 figure 5 with the changes of RFC 6026 figure 1. */
export class InviteClient {
  readonly request: ClientRequest
  readonly key: string
  state: InviteState = 'calling'
  readonly #layer: TransactionLayer
  readonly #events: ClientEvents
  #text: string
  #ack = ''
  #resend: WheelTimer | undefined
  #deadline: WheelTimer | undefined

  constructor(layer: TransactionLayer, request: ClientRequest, events: ClientEvents) {
    this.#layer = layer
    this.request = request
    this.#events = events
    this.#text = request.text
    this.key = clientKey(request.branch, 'INVITE')
  }

  start(): void {
    const { t1 } = this.#layer.scale
    this.#deadline = this.#layer.wheel.after(this.request.patience_ms ?? 64 * t1, () => this.#timedOut())
    if (!isReliable(this.request.destination.protocol)) this.#resendAfter(t1)
    this.#send(this.#text, false)
  }

  /** In place of `start`, for one that an earlier run has sent, and that has got a provisional response. */
  resume(): void {
    this.state = 'proceeding'
  }

  received(response: SipMessage, from: { host: string; port: number }): boolean {
    if (response.status < 200) {
      if (this.state !== 'calling' && this.state !== 'proceeding') return true
      this.state = 'proceeding'
      this.#resend?.cancel()
      this.#deadline?.cancel()
      this.#events.response(response, from)
      return false
    }
    if (response.status < 300) {
      if (this.state === 'completed' || this.state === 'terminated') return true
      const first = this.state !== 'accepted'
      if (first) {
        this.state = 'accepted'
        this.#text = ''
        this.#resend?.cancel()
        this.#deadline?.cancel()
        // Timer M
        this.#deadline = this.#layer.wheel.after(64 * this.#layer.scale.t1, () => this.terminate())
      }
      this.#events.response(response, from)
      return !first
    }
    if (this.state === 'accepted' || this.state === 'terminated') return true
    if (this.state === 'completed') {
      this.#send(this.#ack, true)
      return true
    }
    this.#ack = ackForFailure(this.#text, response)
    this.#text = ''
    this.state = 'completed'
    this.#resend?.cancel()
    this.#deadline?.cancel()
    this.#send(this.#ack, false)
    // Timer D
    if (isReliable(this.request.destination.protocol)) this.terminate()
    else this.#deadline = this.#layer.wheel.after(Math.max(64 * this.#layer.scale.t1, 1), () => this.terminate())
    this.#events.response(response, from)
    return false
  }

  terminate(): void {
    this.state = 'terminated'
    this.#resend?.cancel()
    this.#deadline?.cancel()
    this.#text = ''
    this.#ack = ''
    this.#layer.forgetClient(this.key)
  }

  #resendAfter(delay_ms: number): void {
    this.#resend = this.#layer.wheel.after(delay_ms, () => {
      if (this.state !== 'calling') return
      this.#send(this.#text, true)
      this.#layer.silent(this.request.destination, () => this.#unreachable(new Error('port unreachable')))
      this.#resendAfter(delay_ms * 2)
    })
  }

  #send(text: string, again: boolean): void {
    const sent = this.#layer.transport.send(this.request.destination, text, again, error => this.#unreachable(error))
    if (again) this.#layer.counters.retransmissions_sent++
    if (!sent) queueMicrotask(() => this.#unreachable(new Error('no listening point for this transport')))
  }

  #unreachable(error: Error): void {
    if (this.state !== 'calling') return
    this.terminate()
    this.#events.unreachable(error)
  }

  #timedOut(): void {
    if (this.state !== 'calling') return
    this.terminate()
    this.#events.timeout()
  }
}

type PlainState = 'trying' | 'proceeding' | 'completed' | 'terminated'

/** Non-INVITE client transaction, RFC 3261 figure 6. */
export class PlainClient {
  readonly request: ClientRequest
  readonly key: string
  state: PlainState = 'trying'
  readonly #layer: TransactionLayer
  readonly #events: ClientEvents
  #text: string
  #resend: WheelTimer | undefined
  #deadline: WheelTimer | undefined

  constructor(layer: TransactionLayer, request: ClientRequest, events: ClientEvents) {
    this.#layer = layer
    this.request = request
    this.#events = events
    this.#text = request.text
    this.key = clientKey(request.branch, request.method)
  }

  start(): void {
    const { t1 } = this.#layer.scale
    this.#deadline = this.#layer.wheel.after(this.request.patience_ms ?? 64 * t1, () => this.#timedOut())
    if (!isReliable(this.request.destination.protocol)) this.#resendAfter(t1)
    this.#send(false)
  }

  received(response: SipMessage, from: { host: string; port: number }): boolean {
    if (this.state === 'completed' || this.state === 'terminated') return true
    if (response.status < 200) {
      this.state = 'proceeding'
      this.#events.response(response, from)
      return false
    }
    this.state = 'completed'
    this.#text = ''
    this.#resend?.cancel()
    this.#deadline?.cancel()
    // Timer K
    if (isReliable(this.request.destination.protocol)) this.terminate()
    else this.#deadline = this.#layer.wheel.after(this.#layer.scale.t4, () => this.terminate())
    this.#events.response(response, from)
    return false
  }

  terminate(): void {
    this.state = 'terminated'
    this.#resend?.cancel()
    this.#deadline?.cancel()
    this.#text = ''
    this.#layer.forgetClient(this.key)
  }

  #resendAfter(delay_ms: number): void {
    this.#resend = this.#layer.wheel.after(delay_ms, () => {
      if (this.state !== 'trying' && this.state !== 'proceeding') return
      this.#send(true)
      if (this.state === 'trying') {
        this.#layer.silent(this.request.destination, () => this.#unreachable(new Error('port unreachable')))
      }
      const { t2 } = this.#layer.scale
      this.#resendAfter(this.state === 'proceeding' ? t2 : Math.min(delay_ms * 2, t2))
    })
  }

  #send(again: boolean): void {
    const { destination } = this.request
    const sent = this.#layer.transport.send(destination, this.#text, again, error => this.#unreachable(error))
    if (again) this.#layer.counters.retransmissions_sent++
    if (!sent) queueMicrotask(() => this.#unreachable(new Error('no listening point for this transport')))
  }

  #unreachable(error: Error): void {
    if (this.state !== 'trying') return
    this.terminate()
    this.#events.unreachable(error)
  }

  #timedOut(): void {
    if (this.state === 'completed' || this.state === 'terminated') return
    this.terminate()
    this.#events.timeout()
  }
}

export type ClientTransaction = InviteClient | PlainClient

export function clientKey(branch: string, method: string): string {
  return `${branch}|${method}`
}

// RFC 3261 §17.1.1.3: the ACK repeats request-URI, topmost Via, From, Call-ID, CSeq number and Route of the INVITE and
// takes To from the response.
function ackForFailure(invite: string, response: SipMessage): string {
  const lines = invite.slice(0, invite.indexOf('\r\n\r\n')).split('\r\n')
  const out = [`ACK${(lines[0] ?? '').slice('INVITE'.length)}`]
  let via = false
  for (let i = 1; i < lines.length; i++) {
    const line = lines[i] ?? ''
    const name = line.slice(0, line.indexOf(':'))
    if (name === 'Via' && !via) {
      via = true
      out.push(line)
    } else if (name === 'Route' || name === 'Max-Forwards' || name === 'From' || name === 'Call-ID') out.push(line)
    else if (name === 'To') out.push(tagOf(line.slice(3)) === '' ? `To: ${response.get('to') ?? ''}` : line)
    else if (name === 'CSeq') out.push(line.replace(/INVITE\s*$/, 'ACK'))
  }
  out.push('Content-Length: 0')
  return `${out.join('\r\n')}\r\n\r\n`
}

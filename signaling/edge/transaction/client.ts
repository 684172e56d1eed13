import type { SipMessage } from '../sip/message.ts'
import { tagOf } from '../sip/uri.ts'
import type { WheelTimer } from '../timers.ts'
import { isReliable, type TransportDestination } from '../transport/types.ts'
import {
  type ClientEffect,
  type ClientEvent,
  type ClientRules,
  type ClientState,
  clientStep,
} from './client-machine.ts'
import type { TransactionLayer } from './layer.ts'

// Client transactions (RFC 3261 §17.1, RFC 6026 §8.4).

export interface ClientEvents {
  /** Called for each response except a retransmitted final one. For INVITE also for each further 2xx (forks). */
  readonly response: (response: SipMessage, from: { host: string; port: number }) => void
  /** No final response came in 64×T1; for INVITE, no response at all. */
  readonly timeout: () => void
  /** The network reports that the request cannot reach its destination. */
  readonly unreachable: (error: Error) => void
}

/** Events of a request whose outcome does not matter. */
export const UNHEARD = {
  response: () => undefined,
  timeout: () => undefined,
  unreachable: () => undefined,
} satisfies ClientEvents

/** The request that a client transaction sends, and its destination. */
export interface ClientRequest {
  readonly method: string
  readonly branch: string
  /** The request as bytes. */
  readonly text: string
  readonly destination: TransportDestination
  /** Overrides 64×T1 for Timer B or F, in ms. It is shorter while other addresses remain to be tried. */
  readonly patience_ms?: number | undefined
}

/** A client transaction. It carries out the effects that client-machine.ts returns. */
export class ClientTransaction {
  readonly request: ClientRequest
  readonly key: string
  readonly #layer: TransactionLayer
  readonly #events: ClientEvents
  readonly #rules: ClientRules
  #state: ClientState = 'trying'
  #text: string
  #ack = ''
  #resend: WheelTimer | undefined
  #deadline: WheelTimer | undefined

  constructor(layer: TransactionLayer, request: ClientRequest, events: ClientEvents) {
    const { t1, t2, t4 } = layer.scale
    this.#layer = layer
    this.request = request
    this.#events = events
    this.#text = request.text
    this.key = clientKey(request.branch, request.method)
    this.#rules = {
      invite: request.method === 'INVITE',
      reliable: isReliable(request.destination.protocol),
      patience_ms: request.patience_ms ?? 64 * t1,
      t1,
      t2,
      t4,
    }
  }

  start(): void {
    this.#step({ kind: 'begin' })
  }

  /** Replaces `start` for an INVITE of an earlier run that has received a provisional response. */
  resume(): void {
    this.#state = 'proceeding'
  }

  /** Handles a response. Returns true when it is a retransmission. */
  received(response: SipMessage, from: { host: string; port: number }): boolean {
    return this.#step({ kind: 'response', status: response.status }, { response, from })
  }

  /** Ends the transaction. Later responses are stray. */
  terminate(): void {
    this.#state = 'terminated'
    this.#end()
  }

  #step(event: ClientEvent, heard?: Heard, error?: Error): boolean {
    const { state, effects, again } = clientStep(this.#rules, this.#state, event)
    this.#state = state
    for (const effect of effects) this.#carryOut(effect, heard, error)
    if (state !== 'trying' && state !== 'proceeding') this.#text = ''
    return again
  }

  #carryOut(effect: ClientEffect, heard: Heard | undefined, error: Error | undefined): void {
    if (typeof effect === 'object') this.#startTimer(effect)
    else if (effect === 'send' || effect === 'send_again') this.#send(this.#text, effect === 'send_again')
    else if (effect === 'ack' && heard) {
      this.#ack = ackForFailure(this.#text, heard.response)
      this.#send(this.#ack, false)
    } else if (effect === 'ack_again') this.#send(this.#ack, true)
    else if (effect === 'probe') this.#layer.silent(this.request.destination, () => this.#unreachable(REFUSED))
    else if (effect === 'stop_timers') this.#stopTimers()
    else if (effect === 'tell_response' && heard) this.#events.response(heard.response, heard.from)
    else if (effect === 'tell_timeout') this.#events.timeout()
    else if (effect === 'tell_unreachable' && error) this.#events.unreachable(error)
    else if (effect === 'end') this.#end()
  }

  #startTimer(effect: ClientEffect & object): void {
    const { wheel } = this.#layer
    if ('deadline_ms' in effect) {
      this.#deadline = wheel.after(effect.deadline_ms, () => this.#step({ kind: 'deadline' }))
      return
    }
    const { resend_ms } = effect
    this.#resend = wheel.after(resend_ms, () => this.#step({ kind: 'resend', waited_ms: resend_ms }))
  }

  #stopTimers(): void {
    this.#resend?.cancel()
    this.#deadline?.cancel()
  }

  #end(): void {
    this.#stopTimers()
    this.#text = ''
    this.#ack = ''
    this.#layer.forgetClient(this.key)
  }

  #send(text: string, again: boolean): void {
    const sent = this.#layer.transport.send(this.request.destination, text, again, error => this.#unreachable(error))
    if (again) this.#layer.counters.retransmissions_sent++
    if (!sent) queueMicrotask(() => this.#unreachable(new Error('no listening point for this transport')))
  }

  #unreachable(error: Error): void {
    this.#step({ kind: 'unreachable' }, undefined, error)
  }
}

/** The response of an event and its source. */
interface Heard {
  readonly response: SipMessage
  readonly from: { host: string; port: number }
}

const REFUSED = new Error('port unreachable')

export function clientKey(branch: string, method: string): string {
  return `${branch}|${method}`
}

// RFC 3261 §17.1.1.3: the ACK repeats the INVITE's request-URI, topmost Via, From, Call-ID, CSeq number and Route, and
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

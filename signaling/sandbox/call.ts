import type { UserAgentCall } from '../edge/useragent/call.ts'
import type { IncomingRequest } from '../edge/useragent/message-parts.ts'
import type { Behaviour, SandboxCall } from './behaviours.ts'
import type { Remote, RtpSession } from './rtp.ts'
import { answerFor, farEndOf } from './sdp.ts'

/** Ends a call without RTP, as networks do. A killed edge sends no BYE. */
const QUIET_LIMIT_MS = 90_000

/** One call to the sandbox carrier. Carries out its behaviour on SIP and RTP. */
export class CallOfSandbox implements SandboxCall {
  readonly called: string
  readonly rtp: RtpSession
  readonly #call: UserAgentCall
  readonly #address: string
  readonly #waits = new Set<NodeJS.Timeout>()
  readonly #watch: NodeJS.Timeout
  #remote: Remote

  constructor(parts: { call: UserAgentCall; called: string; rtp: RtpSession; remote: Remote; address: string }) {
    this.called = parts.called
    this.rtp = parts.rtp
    this.#call = parts.call
    this.#address = parts.address
    this.#remote = parts.remote
    this.#watch = setInterval(() => {
      if (this.rtp.quiet_ms > QUIET_LIMIT_MS) this.hangUp()
    }, QUIET_LIMIT_MS / 10)
    parts.call.events.ended = () => this.#end()
    parts.call.events.request = request => this.#within(request)
  }

  /** Runs the behaviour. When the call ends, its pending waits never settle and are garbage collected. */
  run(behaviour: Behaviour, failed: (error: unknown) => void): void {
    behaviour(this).catch(error => {
      failed(error)
      this.#call.reject(500)
      this.#call.hangUp()
    })
  }

  ring(): void {
    this.#call.ring(180)
  }

  earlyMedia(): void {
    this.#call.ring(183, { body: this.#sdp() })
    this.rtp.start(this.#remote)
  }

  answer(): Promise<void> {
    return new Promise(resolve => {
      this.#call.events.acknowledged = () => resolve()
      this.#call.answer({ body: this.#sdp() })
      this.rtp.start(this.#remote)
    })
  }

  refuse(status: number): void {
    this.#call.reject(status)
  }

  hangUp(): void {
    this.#call.hangUp()
  }

  wait(ms: number): Promise<void> {
    return new Promise(resolve => {
      const timer = setTimeout(() => {
        this.#waits.delete(timer)
        resolve()
      }, ms)
      this.#waits.add(timer)
    })
  }

  #sdp(): string {
    return answerFor(this.#remote, this.#address, this.rtp.port)
  }

  /** Answers new offers, such as a hold, with SDP and other requests with a plain 200. */
  #within(request: IncomingRequest): void {
    const { method } = request.message
    const offers = method === 'INVITE' || (method === 'UPDATE' && request.body !== '')
    const remote = request.body === '' ? this.#remote : farEndOf(request.body)
    if (!offers) request.answer(200)
    else if (!remote) request.answer(488)
    else {
      this.#remote = remote
      this.rtp.start(remote)
      request.answer(200, { body: this.#sdp() })
    }
  }

  #end(): void {
    clearInterval(this.#watch)
    for (const timer of this.#waits) clearTimeout(timer)
    this.#waits.clear()
    this.rtp.close()
  }
}

import { sipRefusal } from '../core/domain/reasons/index.ts'
import { type Clock, delay } from '../core/runtime/clock.ts'
import type { Works } from '../core/runtime/works.ts'
import type { State } from '../core/state/index.ts'
import { type AdmissionGate, DECIDES_WITHIN_MS } from './admission/gate.ts'
import { ALLOW } from './b2bua/methods.ts'
import type { InboundRequest } from './drachtio/types.ts'

/** An answer of the state counts for so long: anybody may ask, and each question is a write. */
const COUNTS_MS = 500

/** Finds whether the state takes a write of this process as fast as an admission must be decided. */
export class StateProbe {
  readonly #state: Pick<State, 'probe'>
  readonly #clock: Clock
  #last: { readonly since_ms: number; readonly taken: Promise<boolean>; done: boolean } | null = null

  constructor(state: Pick<State, 'probe'>, clock: Clock) {
    this.#state = state
    this.#clock = clock
  }

  async takes(): Promise<boolean> {
    const now_ms = this.#clock.monotonic_ms()
    const known = this.#last
    const last = known && (!known.done || now_ms - known.since_ms < COUNTS_MS) ? known : this.#ask(now_ms)
    const late = delay(this.#clock, Math.max(0, last.since_ms + DECIDES_WITHIN_MS - now_ms)).then(() => false)
    return Promise.race([last.taken, late])
  }

  #ask(since_ms: number) {
    const answered = this.#state.probe().then(
      () => true,
      () => false,
    )
    const asked = { since_ms, done: false, taken: answered }
    void answered.then(() => {
      asked.done = true
    })
    this.#last = asked
    return asked
  }
}

interface Parts {
  readonly probe: StateProbe
  readonly gate: Pick<AdmissionGate, 'stalls'>
  readonly drain: { readonly on: boolean }
  readonly peers: { readonly whole: boolean }
  readonly sip: { readonly connected: boolean }
  readonly media: { readonly connected: boolean }
}

/** Tells peers that send OPTIONS, and load balancers, whether the node takes calls. */
export class TakesCalls {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Why it takes none, as far as it knows without asking; null: it does. */
  get refuses(): 'draining' | 'state_unavailable' | null {
    const { drain, peers, gate } = this.#parts
    if (drain.on) return 'draining'
    return peers.whole && !gate.stalls ? null : 'state_unavailable'
  }

  async works(): Promise<Works> {
    const { probe, drain, sip, media } = this.#parts
    const taken = await probe.takes()
    return {
      state_writable: taken && this.refuses !== 'state_unavailable',
      signaling: !drain.on,
      edge: sip.connected,
      media: media.connected,
    }
  }

  /** Answers OPTIONS as an INVITE would be answered (RFC 3261 §11.2), and other methods outside a dialog with 405. */
  outsideDialog(request: InboundRequest): void {
    const { refuses } = this
    if (request.method === 'OPTIONS' && refuses) {
      const { code, headers } = sipRefusal(refuses, { value: 'it is not reached' })
      request.respond(code, { headers })
    } else if (request.method === 'OPTIONS')
      request.respond(200, { headers: { Allow: ALLOW, Accept: 'application/sdp' } })
    else request.respond(405, { headers: { Allow: ALLOW } })
  }
}

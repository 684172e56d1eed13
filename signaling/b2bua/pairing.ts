import type { Leg } from './leg.ts'

/** A leg and the call that owns it. */
export interface PartyOf<C> {
  readonly call: C
  readonly leg: Leg
}

/** The other side of a leg after a transfer: a leg of another call. */
interface PartnerOf<C> extends PartyOf<C> {
  /** A mixer joins the legs because they belong to two media sessions. It does not pass keys. */
  readonly mixed: boolean
}

/** Is notified when a leg that it waits for has ended. */
export interface LegWaiter {
  /** Returns true when the call must survive the end of this leg. */
  gone(leg: Leg): boolean
}

/** A call whose legs may be joined with those of another. */
interface Paired<C extends Paired<C>> {
  readonly pairing: Pairing<C>
}

/**
 * Which leg is the other side of which: within a call, or, after a transfer, of another call. `C` is the call, so that
 * this part of it needs nothing of the rest.
 */
export class Pairing<C extends Paired<C>> {
  readonly #call: C
  readonly #legs: () => readonly Leg[]
  #partner: PartnerOf<C> | null = null
  readonly #departed = new Set<Leg>()
  /** The transfer in progress. */
  transfer: LegWaiter | null = null
  /** The legs that were asked to call a target themselves, with the leg that asked (RFC 3515). */
  readonly referrers = new Map<Leg, Leg>()

  /** `legs` returns the call's current legs. */
  constructor(call: C, legs: () => readonly Leg[]) {
    this.#call = call
    this.#legs = legs
  }

  /** The leg of another call that this call's remaining leg is joined with. */
  get partner(): PartnerOf<C> | null {
    return this.#partner
  }

  /** The party that this leg is joined to; null when there is none, or a script runs on the leg. */
  peerOf(leg: Leg): PartyOf<C> | null {
    if (this.#partner) return this.#departed.has(leg) ? null : this.#partner
    const other = this.#legs().find(one => one !== leg)
    return other?.answered && !other.ended ? { call: this.#call, leg: other } : null
  }

  /** Joins this call's remaining leg with a leg of another call. From then on the end of one call ends both. */
  pairWith(partner: PartnerOf<C> | null): void {
    this.#partner = partner
  }

  /** Parts from the partner. Returns it when it was still joined with this call: its call ends too. */
  unpair(): PartnerOf<C> | null {
    const partner = this.#partner
    this.#partner = null
    // A second transfer may have paired the partner with another leg.
    if (!partner || partner.call.pairing.partner?.call !== this.#call) return null
    partner.call.pairing.pairWith(null)
    return partner
  }

  /** Marks a leg that leaves after a transfer: from now on its peer may hang up and end nothing but its leg. */
  leave(leg: Leg): void {
    this.#departed.add(leg)
  }

  /** Whether the call survives the end of this leg: it leaves after a transfer, or a transfer waits for its end. */
  survives(leg: Leg): boolean {
    return this.#departed.has(leg) || this.transfer?.gone(leg) === true
  }

  /** Whether a leg is left that has neither ended nor left after a transfer. */
  get staffed(): boolean {
    return this.#legs().some(leg => !this.#departed.has(leg) && !leg.ended)
  }
}

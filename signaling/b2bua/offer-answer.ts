/**
 * The offer/answer state machine of a leg (RFC 3264 §4, RFC 3261 §14, RFC 6337). It allows one exchange at a time. The
 * state names the exchange that is open; a step says whether the event may open or close one.
 */

export type OfferState =
  | 'stable'
  /** We are answering the peer's re-INVITE or UPDATE. */
  | 'theirs'
  /** The peer's re-INVITE had no offer. Our 200 carried one; the ACK brings the answer. */
  | 'awaiting_ack'
  /** Our re-INVITE awaits its final response. */
  | 'ours'

export type OfferEvent = 'remote_offer' | 'remote_empty' | 'answered' | 'refused' | 'ack' | 'local_offer'

type OfferStep =
  | { readonly state: OfferState; readonly allowed: true }
  /** While our offer is open: 491. While the peer's is: 500 with Retry-After (RFC 3261 §14.2, RFC 3311 §5.2). */
  | { readonly state: OfferState; readonly allowed: false; readonly sip_code: 491 | 500 }

const go = (state: OfferState): OfferStep => ({ state, allowed: true })
const stay = (state: OfferState, sip_code: 491 | 500): OfferStep => ({ state, allowed: false, sip_code })

export function offerStep(state: OfferState, event: OfferEvent): OfferStep {
  switch (event) {
    case 'remote_offer':
    case 'remote_empty':
      if (state === 'stable') return go('theirs')
      return stay(state, state === 'theirs' ? 500 : 491)
    case 'local_offer':
      return state === 'stable' ? go('ours') : stay(state, 491)
    case 'answered':
      return go('stable')
    case 'refused':
      return go('stable')
    case 'ack':
      return go('stable')
  }
}

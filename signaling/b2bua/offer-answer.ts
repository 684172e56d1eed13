/**
 * Who may offer on a leg now (RFC 3264 §4, RFC 3261 §14, RFC 6337). One exchange at a time: the state says which one is
 * open, the events what happens, the answers what to do.
 */

export type OfferState =
  | 'stable'
  /** Their re-INVITE or UPDATE is being answered. */
  | 'theirs'
  /** Their re-INVITE had no offer: ours went out in the 200, the answer comes in the ACK. */
  | 'awaiting_ack'
  /** Our re-INVITE is out. */
  | 'ours'

export type OfferEvent = 'remote_offer' | 'remote_empty' | 'answered' | 'refused' | 'ack' | 'local_offer'

type OfferStep =
  | { readonly state: OfferState; readonly allowed: true }
  /** Glare: 491. Overlap of two of theirs: 500 with Retry-After (RFC 3261 §14.2). */
  | { readonly state: OfferState; readonly allowed: false; readonly sip_code: 491 | 500 }

const go = (state: OfferState): OfferStep => ({ state, allowed: true })
const stay = (state: OfferState, sip_code: 491 | 500): OfferStep => ({ state, allowed: false, sip_code })

export function offerStep(state: OfferState, event: OfferEvent): OfferStep {
  switch (event) {
    case 'remote_offer':
    case 'remote_empty':
      if (state === 'stable') return go('theirs')
      return stay(state, state === 'ours' ? 491 : 500)
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

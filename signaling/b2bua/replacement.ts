import type { Party, RingingLeg } from './call.ts'
import type { InboundCall } from './inbound-call.ts'
import type { Leg } from './leg.ts'
import type { LegWaiter } from './pairing.ts'
import { joinLegs, pairLegs } from './partners.ts'

/** What an INVITE with Replaces does: a new caller takes the place of a leg (RFC 3891). */

/** The leg that is replaced, and the party that the new caller is joined with. */
export type Replacement =
  | { readonly kind: 'confirmed'; readonly replaced: Party; readonly stays: Party }
  | {
      readonly kind: 'early'
      readonly stays: { readonly call: InboundCall; readonly leg: Leg }
      /** The target that rings, whose place the new caller takes. */
      readonly rings: RingingLeg
    }

/**
 * Answers the new caller, joins it with the leg that stays, and releases the replaced leg. Does nothing more when one
 * of them has ended meanwhile. @throws MediaRefusal, Cancelled, CallerGone, LinkLost
 */
export async function replaceLeg(comes: Party, answer: () => Promise<void>, how: Replacement): Promise<void> {
  const { stays } = how
  // Admission took time: another request may have taken or ended what this one names.
  if (!isStillThere(how)) return void comes.call.end({ cause: 'refused', sip_code: 481 })
  comes.leg.prefer = stays.leg
  const replaced = how.kind === 'early' ? null : how.replaced
  // The replaced leg's peer may hang up by itself while we answer the new caller. Nobody else may have the calls now.
  const waiter: LegWaiter = { gone: leg => leg === replaced?.leg }
  const claimed = new Set([stays.call, ...(replaced ? [replaced.call] : [])])
  for (const call of claimed) call.pairing.transfer = waiter
  try {
    await answer()
    if (comes.call.ended || stays.leg.ended) return end(comes)
    if (how.kind === 'early') {
      // The target may have answered meanwhile.
      if (!stillRings(how)) return end(comes)
      await how.stays.call.pickedUp(comes.leg)
      if (comes.call.ended || stays.leg.ended) return end(comes)
    }
    const mixed = await joinLegs(stays.leg, comes.leg, comes.call.sid)
    if (comes.call.ended || stays.leg.ended) return end(comes)
    pairLegs(stays, comes, mixed)
    if (!replaced) return
    stays.call.event('state', null, { what: 'replaced', by: comes.leg.id })
    replaced.call.depart(replaced.leg)
  } finally {
    for (const call of claimed) if (call.pairing.transfer === waiter) call.pairing.transfer = null
  }
}

const stillRings = ({ stays, rings }: Extract<Replacement, { kind: 'early' }>): boolean =>
  stays.call.ringingLeg === rings && rings.earlyDialogs.length > 0

function isStillThere(how: Replacement): boolean {
  const { stays } = how
  if (stays.leg.ended || stays.call.ended || stays.call.pairing.transfer) return false
  if (how.kind === 'early') return stillRings(how)
  const { call, leg } = how.replaced
  return !leg.ended && !call.pairing.transfer
}

function end({ call }: Party): void {
  void call.end({ cause: 'called_hung_up' })
}

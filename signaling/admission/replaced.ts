import { DEFAULT_COUNTRY } from '../../core/domain/numbers/default-country.ts'
import { parseNumber } from '../../core/domain/numbers/parse.ts'
import type { Party } from '../b2bua/call.ts'
import { InboundCall } from '../b2bua/inbound-call.ts'
import { findDialog, findRinging } from '../b2bua/partners.ts'
import { isNamed, readReplaces } from '../b2bua/refer-to.ts'
import type { Replacement } from '../b2bua/replacement.ts'
import type { InboundInvite } from '../drachtio/types.ts'
import type { CallDestination } from './call-row.ts'
import type { AdmissionContext } from './context.ts'
import type { CallingPeer } from './peer.ts'
import { InviteRefused } from './refuse.ts'

/**
 * Decides what an INVITE with Replaces does (RFC 3891 §3): only a trunk's peer may send it, and only for a dialog of
 * its own tenant. A dialog of anyone else is unknown to it.
 */
export function replacedBy(
  ctx: AdmissionContext,
  invite: InboundInvite,
  peer: CallingPeer,
): Extract<CallDestination, { kind: 'replaced' }> | InviteRefused {
  const named = readReplaces(invite.header('replaces') ?? '')
  if (!named) return bySip(400)
  if (peer.kind !== 'trunk') return bySip(481)
  const { trunk } = peer
  const found = findDialog(ctx, trunk.id, isNamed(named))
  if (found && named.early_only) return bySip(486)
  const replacement = found ? answeredLeg(found) : ringing(findRinging(ctx, trunk.id, isNamed(named)))
  if (typeof replacement === 'number') return bySip(replacement)
  // Admission reads the called number: that of the party which stays.
  const { from_number, to_number } = replacement.stays.call.row_now
  const called = [to_number, from_number].find(number => parseNumber(number, DEFAULT_COUNTRY)) ?? to_number
  return { kind: 'replaced', project_id: trunk.project_id, trunk, called, replacement }
}

const bySip = (code: number): InviteRefused => new InviteRefused({ kind: 'sip', code })

function answeredLeg(replaced: Party): Replacement | 488 | 491 {
  const stays = replaced.call.pairing.peerOf(replaced.leg)
  // A leg on which a document runs has no party to be joined with.
  if (!stays) return 488
  if (replaced.call.pairing.transfer || stays.call.pairing.transfer) return 491
  return { kind: 'confirmed', replaced, stays }
}

function ringing(found: ReturnType<typeof findRinging>): Replacement | 481 | 491 {
  const { call, leg: rings } = found ?? {}
  if (!rings || !(call instanceof InboundCall)) return 481
  return call.pairing.transfer ? 491 : { kind: 'early', stays: { call, leg: call.leg }, rings }
}

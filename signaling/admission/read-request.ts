import { intervalTooSmall } from '../b2bua/session-timer.ts'
import type { InboundInvite } from '../drachtio/types.ts'
import type { CallDestination, PeerRequest } from './call-row.ts'
import type { AdmissionContext } from './context.ts'
import { destinationOf } from './destination.ts'
import { type Offered, offeredIn } from './offer.ts'
import type { CallingPeer } from './peer.ts'
import { type Reading, readInvite } from './read-invite.ts'
import { InviteRefused, refusedFor } from './refuse.ts'
import { replacedBy } from './replaced.ts'

/** What the INVITE of a known peer asks for. */
export interface InviteRequest {
  readonly asked: Reading
  readonly offered: Offered | null
  /** Null: a number of a foreign plan, which we can't call. */
  readonly destination: CallDestination | null
}

/** Reads what the INVITE of a known peer asks for, and where its call would go. It changes nothing. */
export function readRequest(
  ctx: AdmissionContext,
  invite: InboundInvite,
  peer: CallingPeer,
): InviteRequest | InviteRefused {
  if (ctx.draining()) return refusedFor('draining')
  if (peer.kind === 'carrier' && !peer.carrier.enabled)
    return refusedFor('carrier_draining', { name: peer.carrier.name })
  if (!ctx.media.connected) return refusedFor('media_unavailable')
  const asked = readInvite(peer, invite, ctx.snapshot().numbers)
  if (asked.max_forwards <= 0) return refusedFor('too_many_hops')
  if (comesBack(ctx, invite, asked) || circles(asked)) return refusedFor('loop_detected', { value: asked.called })
  const min_se = intervalTooSmall(invite)
  if (min_se !== null) return new InviteRefused({ kind: 'sip', code: 422, headers: { 'Min-SE': min_se } })
  const { refused: body } = invite.content()
  if (body) return refusedFor('body_unsupported', { value: body.value }, { headers: body.headers })
  const offered = offeredIn(invite)
  if (offered instanceof InviteRefused) return offered
  if (asked.foreign_context !== null) return { asked, offered, destination: null }
  const replaces = invite.header('replaces') !== null
  const destination = replaces ? replacedBy(ctx, invite, peer) : destinationOf(ctx, asked)
  return destination instanceof InviteRefused ? destination : { asked, offered, destination }
}

/** Telephone networks end a call that was diverted 5 times (ITU-T Q.732.2), PBXs after 12 or so. */
const MOST_DIVERSIONS = 15

/**
 * Whether a call goes round between us and a PBX that forwards it to us. Each round is a new call with a new
 * Max-Forwards, but it is diverted once more.
 */
const circles = ({ diverters }: PeerRequest): boolean =>
  Math.max(diverters.length, ...diverters.map(({ counter }) => counter)) >= MOST_DIVERSIONS

/** Whether a target has returned our own call: it names one that is live here, with the same called number. */
function comesBack(ctx: AdmissionContext, invite: InboundInvite, asked: PeerRequest): boolean {
  const sid = invite.header('x-strowger-callsid')
  const running = sid === null ? undefined : ctx.calls.get(sid)
  return running !== undefined && running.row_now.to_number === (asked.called_e164 ?? asked.called)
}

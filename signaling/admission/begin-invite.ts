import { browserPolicy } from '../b2bua/browser.ts'
import { InboundCall } from '../b2bua/inbound-call.ts'
import type { LegPolicy } from '../b2bua/media.ts'
import { authOf, carrierPolicy, trunkPolicy } from '../b2bua/routes.ts'
import type { InboundInvite } from '../drachtio/types.ts'
import { limitsOf } from './admit-queued.ts'
import type { CallDestination } from './call-row.ts'
import type { AdmissionContext } from './context.ts'
import type { AdmittedInvite } from './decide-invite.ts'
import type { Offered } from './offer.ts'
import { type CallingPeer, credentialsFor } from './peer.ts'
import { planOf } from './plan.ts'
import { type InviteRefused, refusedFor } from './refuse.ts'
import { endUnplaced } from './unplaced.ts'

/** Begins the admitted call of an INVITE. */
export async function beginInvite(
  ctx: AdmissionContext,
  invite: InboundInvite,
  admitted: AdmittedInvite,
): Promise<InviteRefused | null> {
  const { row, decided, asked, offered, destination, asks, foreign } = admitted
  const { sid, trunk_id, origin } = row
  const { peer } = asked
  const session = await sessionFor(ctx, sid, row.project_id, destination)
  if (!session) {
    await endUnplaced(ctx, row, { cause: 'media_unavailable' })
    return refusedFor('media_unavailable')
  }
  const running = new InboundCall(ctx, {
    row,
    session,
    invite,
    limits: limitsOf(decided, (peer.kind === 'trunk' && peer.trunk.max_call_duration_seconds) || null),
    peer_trunk_id: peer.kind === 'trunk' ? peer.trunk.id : null,
    ...authOf(ctx, credentialsFor(ctx, peer, invite.source.address)),
  })
  ctx.log.info({ call_id: sid, trunk_id, origin, destination: destination.kind }, 'call admitted')
  for (const detail of [...asked.notes, ...invite.content().notes]) running.event('warning', null, { detail })
  const policy = callerPolicy(peer, invite.source.address, offered?.family ?? null)
  await running.begin(policy, planOf(ctx, sid, invite, asked, destination, decided, foreign, asks))
  return null
}

/** Opens the call's media, or shares that of the leg which the new caller is joined with. */
function sessionFor(ctx: AdmissionContext, sid: string, project_id: string, destination: CallDestination) {
  if (destination.kind !== 'replaced') return ctx.media.open(sid, project_id)
  const { session } = destination.replacement.stays.leg
  session.hold()
  return session
}

/** Returns the media policy of the caller's leg. Media may use another address family than SIP (RFC 6157). */
function callerPolicy(peer: CallingPeer, address: string, family: Offered['family']): LegPolicy {
  if (peer.kind === 'client') return browserPolicy(address)
  const policy = peer.kind === 'trunk' ? trunkPolicy(peer.trunk, address) : carrierPolicy(peer.carrier, address)
  return family === null ? policy : { ...policy, family }
}

import { voiceService } from '../../core/domain/admission/index.ts'
import { ownTargets } from '../b2bua/routes.ts'
import type { InboundInvite } from '../drachtio/types.ts'
import type { CallDestination, PeerRequest } from './call-row.ts'
import type { AdmissionContext } from './context.ts'
import type { Ask } from './gate.ts'

/** Returns an admission request for each side of an INVITE's call: the caller's first, then the number's route. */
export function asksOfInvite(
  ctx: AdmissionContext,
  call_sid: string,
  project_id: string,
  invite: InboundInvite,
  asked: PeerRequest,
  offer: Ask['offer'],
  destination: CallDestination,
): Ask[] {
  const common = {
    call_sid,
    called: destination.kind === 'replaced' ? destination.called : asked.called,
    caller: asked.caller_given,
    transport: invite.source.transport,
    offer,
  }
  const { peer } = asked
  const asks: Ask[] = []
  if (peer.kind === 'trunk')
    asks.push({
      ...common,
      ...(destination.kind === 'world' ? { part: 'outbound', way: 'peer' } : { part: 'on_net', way: null }),
      project_id: peer.trunk.project_id,
      service: { type: 'trunk', id: peer.trunk.id },
      own_targets: ownTargets(ctx, peer.trunk),
    })
  if (peer.kind === 'client')
    asks.push({
      ...common,
      ...(destination.kind === 'world' ? { part: 'outbound', way: 'client' } : { part: 'on_net', way: null }),
      project_id: peer.project_id,
      service: voiceService(peer.project_id, null),
      // A browser's leg always uses SRTP and can be transcoded, so neither its transport nor its offer is checked.
      transport: null,
      offer: null,
      own_targets: destination.kind === 'world' && destination.trunk ? ownTargets(ctx, destination.trunk) : 0,
    })
  if (destination.kind !== 'world' && destination.kind !== 'replaced')
    asks.push({
      ...common,
      // In E.164: the number's route may be a trunk of another country than the caller's.
      called: destination.number.e164,
      caller: asked.caller,
      part: 'inbound',
      way: null,
      from_carrier: peer.kind === 'carrier',
      project_id,
      service:
        destination.kind === 'application'
          ? { type: 'voice_application', id: destination.application.id }
          : destination.service,
      own_targets: null,
    })
  return asks
}

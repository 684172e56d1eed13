import { customHeaders } from '../../core/domain/calls/custom-headers.ts'
import { attestationOf } from '../../core/domain/identity/index.ts'
import type { Decided } from '../../core/state/calls/running-calls.ts'
import type { CallPlan } from '../b2bua/inbound-call.ts'
import { deliveryHops, type Outgoing } from '../b2bua/routes.ts'
import type { InboundInvite } from '../drachtio/types.ts'
import type { CallDestination, PeerRequest } from './call-row.ts'
import type { AdmissionContext } from './context.ts'
import { hopsToWorld } from './lines.ts'

/** Returns what an admitted call does: it runs a document, replaces a leg, or is joined with the one it called. */
export function planOf(
  ctx: AdmissionContext,
  sid: string,
  invite: InboundInvite,
  asked: PeerRequest,
  destination: CallDestination,
  decided: Decided,
  foreign: boolean,
): CallPlan {
  if (destination.kind === 'application') {
    const { application } = destination
    return {
      kind: 'script',
      entry: {
        kind: 'call',
        entry: { kind: 'request', url: application.voice_url, method: application.voice_method },
        fallback: application.fallback_url
          ? { url: application.fallback_url, method: application.fallback_method }
          : null,
      },
    }
  }
  if (destination.kind === 'replaced') return { kind: 'replace', replacement: destination.replacement }
  const outgoing: Outgoing = {
    call_sid: sid,
    called_e164: decided.called?.e164 ?? asked.called_e164 ?? asked.called,
    caller_e164: decided.caller_e164 ?? asked.caller,
    restricted: asked.restricted,
    caller_name: asked.caller_name,
    max_forwards: asked.max_forwards - 1,
    diverters: asked.diverters,
    passed: asked.peer.kind === 'trunk' && !foreign ? customHeaders(invite.headers) : {},
    attest: attestationOf(decided.caller_ownership, null),
    verstat: asked.verstat,
  }
  const hops =
    destination.kind === 'delivery'
      ? deliveryHops(ctx, destination.trunk, outgoing)
      : hopsToWorld(ctx, { project_id: destination.project_id, trunk: destination.trunk, outgoing })
  return { kind: 'bridge', hops }
}

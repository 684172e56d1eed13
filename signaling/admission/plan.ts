import { customHeaders } from '../../core/domain/calls/custom-headers.ts'
import { attestationOf } from '../../core/domain/identity/index.ts'
import type { Decided } from '../../core/state/calls/running-calls.ts'
import type { CallPlan } from '../b2bua/inbound-call.ts'
import { deliveryHops, type Outgoing } from '../b2bua/routes.ts'
import type { InboundInvite } from '../drachtio/types.ts'
import { applicationEntry } from '../scripts/application-call.ts'
import type { CallDestination, PeerRequest } from './call-row.ts'
import type { AdmissionContext } from './context.ts'
import type { Ask } from './gate.ts'
import { hopsToWorld } from './lines.ts'
import { secondRoute } from './second-route.ts'

/** Returns what an admitted call does: it runs a document, replaces a leg, or is joined with the one it called. */
export function planOf(
  ctx: AdmissionContext,
  sid: string,
  invite: InboundInvite,
  asked: PeerRequest,
  destination: CallDestination,
  decided: Decided,
  foreign: boolean,
  asks: readonly Ask[],
): CallPlan {
  if (destination.kind === 'application') return { kind: 'script', entry: applicationEntry(destination.application) }
  if (destination.kind === 'replaced') return { kind: 'replace', replacement: destination.replacement }
  const outgoing: Outgoing = {
    call_sid: sid,
    called_e164: decided.called?.e164 ?? asked.called_e164 ?? asked.called,
    // Admission of a delivery reads it by the country of the number's route, which is not the caller's.
    caller_e164: destination.kind === 'world' ? (decided.caller_e164 ?? asked.caller) : asked.caller,
    restricted: asked.restricted,
    caller_name: asked.caller_name,
    max_forwards: asked.max_forwards - 1,
    diverters: asked.diverters,
    passed: asked.peer.kind === 'trunk' && !foreign ? customHeaders(invite.headers) : {},
    attest: attestationOf(decided.caller_ownership, null),
    verstat: asked.verstat,
  }
  if (destination.kind === 'delivery') {
    const ask = asks.find(({ part }) => part === 'inbound')
    const second = ask ? secondRoute(ctx, destination.number, ask, outgoing, true) : null
    return { kind: 'bridge', hops: deliveryHops(ctx, destination.trunk, outgoing), second }
  }
  const { project_id, trunk } = destination
  return { kind: 'bridge', hops: hopsToWorld(ctx, { project_id, trunk, outgoing }), second: null }
}

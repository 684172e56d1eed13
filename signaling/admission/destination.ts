import type { CallDestination, PeerRequest } from './call-row.ts'
import type { AdmissionContext } from './context.ts'
import { trunkOfCaller } from './lines.ts'
import { type InviteRefused, refusedFor } from './refuse.ts'

/** Decides where the call of an INVITE goes. */
export function destinationOf(ctx: AdmissionContext, asked: PeerRequest): CallDestination | InviteRefused {
  const snapshot = ctx.snapshot()
  const number = asked.called_e164 === null ? undefined : snapshot.numbers.get(asked.called_e164)
  if (!number || number.status === 'available') {
    const { peer } = asked
    if (peer.kind === 'trunk') return { kind: 'world', project_id: peer.trunk.project_id, trunk: peer.trunk }
    if (peer.kind === 'client')
      return { kind: 'world', project_id: peer.project_id, trunk: trunkOfCaller(ctx, peer.caller) }
    return refusedFor('number_unallocated', { value: asked.called })
  }
  if (number.status === 'quarantined') return refusedFor('number_quarantined', { value: number.e164 })
  if (number.route_kind === 'voice_application' && number.route_id !== null) {
    const application = snapshot.applications.get(number.route_id)
    if (application) return { kind: 'application', number, application }
  }
  if ((number.route_kind === 'trunk' || number.route_kind === 'subtrunk') && number.route_id !== null) {
    const trunk_id = number.route_kind === 'trunk' ? number.route_id : snapshot.trunk_of_subtrunk.get(number.route_id)
    const trunk = trunk_id ? snapshot.trunks.get(trunk_id) : undefined
    if (trunk) return { kind: 'delivery', number, trunk, service: { type: number.route_kind, id: number.route_id } }
  }
  return refusedFor('number_unrouted', { value: number.e164 })
}

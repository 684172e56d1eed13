import { sameTenant } from '../../core/domain/identity/index.ts'
import { takeAdmission } from '../../core/state/calls/leases.ts'
import { deliveryHops, type Outgoing } from '../b2bua/routes.ts'
import type { SecondRoute } from '../b2bua/second-route.ts'
import { applicationEntry } from '../scripts/application-call.ts'
import type { NumberConfig } from '../trunks/snapshot.ts'
import type { AdmissionContext } from './context.ts'
import type { Ask } from './gate.ts'
import type { OwnNumberLine } from './lines.ts'

/**
 * Returns the second route of a number; null when it has none. It is looked up and admitted when it is needed, by the
 * rules and ceilings of its own service. Its slots are held beside those of the first until the call ends.
 *
 * @param ask the request that admitted the first route
 * @param runs_documents whether the call can go to an application: one that we place cannot
 */
export function secondRoute(
  ctx: AdmissionContext,
  number: NumberConfig,
  ask: Ask,
  outgoing: Outgoing,
  runs_documents: boolean,
): SecondRoute | null {
  const { fallback_kind: type, fallback_id: id, project_id } = number
  if (type === null || id === null || project_id === null) return null
  return async () => {
    const { applications, trunks, trunk_of_subtrunk } = ctx.snapshot()
    const application = type === 'voice_application' && runs_documents ? applications.get(id) : undefined
    const trunkOf = (kind: typeof type | null, of: string | null) =>
      trunks.get((kind === 'trunk' ? of : trunk_of_subtrunk.get(of ?? '')) ?? '')
    const [first, trunk] = [trunkOf(number.route_kind, number.route_id), trunkOf(type, id)]
    const to = application?.name ?? trunk?.name
    if (to === undefined) return { kind: 'none' }
    const wanted: Ask = {
      ...ask,
      called: number.e164,
      part: 'inbound',
      way: null,
      second_route: true,
      from_carrier: false,
      own_targets: null,
      project_id,
      service: { type, id },
    }
    const [request] = ctx.gate.stamped([wanted]).requests
    if (!request) return { kind: 'none' }
    const decided = await takeAdmission(ctx.state.db, request)
    if (!decided.admitted) {
      ctx.metrics.refusals.inc({ reason: decided.reason })
      return { kind: 'refused', to, sentence: decided.sentence }
    }
    if (trunk) {
      // X- headers pass between trunks of one tenant alone, and a subaccount is one.
      const passed = first && sameTenant(first, trunk) ? outgoing.passed : {}
      return { kind: 'hops', to, hops: deliveryHops(ctx, trunk, { ...outgoing, passed }) }
    }
    if (!application) return { kind: 'none' }
    return { kind: 'script', to, application_id: application.id, entry: applicationEntry(application) }
  }
}

/** Returns the second route of a call that we place to a number of the project's own trunk; null for none. */
export const secondOf = (
  ctx: AdmissionContext,
  ask: Omit<Ask, 'call_sid' | 'part' | 'way'>,
  outgoing: Outgoing,
  line: Extract<OwnNumberLine, { kind: 'trunk' }> | null,
): SecondRoute | null =>
  line &&
  secondRoute(ctx, line.number, { ...ask, call_sid: outgoing.call_sid, part: 'inbound', way: null }, outgoing, false)

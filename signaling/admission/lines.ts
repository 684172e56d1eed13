import { DEFAULT_COUNTRY } from '../../core/domain/numbers/default-country.ts'
import { parseNumber } from '../../core/domain/numbers/parse.ts'
import type { HuntHop } from '../b2bua/hunt.ts'
import { deliveryHops, egressHops, type Outgoing } from '../b2bua/routes.ts'
import type { NodeServices } from '../b2bua/services.ts'
import type { ApplicationConfig, NumberConfig, TrunkConfig } from '../trunks/snapshot.ts'
import type { Ask } from './gate.ts'

/** Finds the trunk or own line that carries a call to a number, and its hops. */

/** Returns the trunk whose targets carry calls of this caller number (design section 4, "Egress"). */
export function trunkOfCaller(ctx: NodeServices, caller: string): TrunkConfig | null {
  const snapshot = ctx.snapshot()
  const e164 = parseNumber(caller, DEFAULT_COUNTRY)?.e164
  const number = e164 ? snapshot.numbers.get(e164) : undefined
  if (!number?.route_id) return null
  const trunk_id =
    number.route_kind === 'trunk'
      ? number.route_id
      : number.route_kind === 'subtrunk'
        ? snapshot.trunk_of_subtrunk.get(number.route_id)
        : undefined
  return (trunk_id ? snapshot.trunks.get(trunk_id) : undefined) ?? null
}

/** A call of a project to one of its own numbers. It stays on the platform. */
export type OwnNumberLine = { readonly service: Ask['service']; readonly number: NumberConfig } & (
  | { readonly kind: 'trunk'; readonly trunk: TrunkConfig }
  | { readonly kind: 'application'; readonly application: ApplicationConfig }
)

/** Returns the line of a number that the project itself holds and routes; null for all other numbers. */
export function ownLine(ctx: NodeServices, project_id: string, called: string): OwnNumberLine | null {
  const snapshot = ctx.snapshot()
  const number = snapshot.numbers.get(parseNumber(called, DEFAULT_COUNTRY)?.e164 ?? '')
  if (number?.project_id !== project_id || number.status !== 'held' || number.route_id === null) return null
  const { route_kind: type, route_id: id } = number
  if (type === null) return null
  const service = { type, id }
  if (type === 'voice_application') {
    const application = snapshot.applications.get(id)
    return application ? { kind: 'application', number, application, service } : null
  }
  const trunk = snapshot.trunks.get(type === 'trunk' ? id : (snapshot.trunk_of_subtrunk.get(id) ?? ''))
  return trunk ? { kind: 'trunk', number, trunk, service } : null
}

/** Returns the hops of an admitted call to a number: those of the project's own trunk, else to the public network. */
export const hopsOf = (
  ctx: NodeServices,
  to: { readonly project_id: string; readonly trunk: TrunkConfig | null; readonly outgoing: Outgoing },
  line: Extract<OwnNumberLine, { kind: 'trunk' }> | null,
): HuntHop[] => (line ? deliveryHops(ctx, line.trunk, to.outgoing) : hopsToWorld(ctx, to))

/** Returns the hops of an admitted call to the public network. */
export function hopsToWorld(
  ctx: NodeServices,
  options: { project_id: string; trunk: TrunkConfig | null; outgoing: Outgoing },
): HuntHop[] {
  const project = ctx.snapshot().projects.get(options.project_id)
  return project ? egressHops(ctx, { ...options, project }) : []
}

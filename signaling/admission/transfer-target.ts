import { isForeign } from '../../core/domain/calls/foreign.ts'
import { type CallRequest, hidesCaller, hopsLeft, readCallRequest } from '../../core/domain/calls/request.ts'
import { attestationOf, mayBeForwarded } from '../../core/domain/identity/index.ts'
import { DEFAULT_COUNTRY } from '../../core/domain/numbers/default-country.ts'
import { parseNumber } from '../../core/domain/numbers/parse.ts'
import { type Reason, sipRefusal } from '../../core/domain/reasons/index.ts'
import { iso } from '../../core/runtime/clock.ts'
import { newId } from '../../core/runtime/ids.ts'
import {
  admitCall,
  type CallRow,
  type Decided,
  type NewCall,
  NOTHING_YET,
} from '../../core/state/calls/running-calls.ts'
import { isPassing } from '../../core/state/index.ts'
import type { HuntHop } from '../b2bua/hunt.ts'
import { OutboundCall } from '../b2bua/outbound-call.ts'
import { deliveryHops, type Outgoing, ownTargets } from '../b2bua/routes.ts'
import type { SecondRoute } from '../b2bua/second-route.ts'
import type { TransferPlaced, TransferRequest } from '../b2bua/transfer-placing.ts'
import { ApplicationCall } from '../scripts/application-call.ts'
import { type ApplicationConfig, holdsNumber, type NumberConfig, type TrunkConfig } from '../trunks/snapshot.ts'
import { limitsOf, notAdmitted } from './admit-queued.ts'
import type { AdmissionContext } from './context.ts'
import { divertedBy } from './diverting.ts'
import { type Ask, DECIDES_WITHIN_MS } from './gate.ts'
import { hopsToWorld } from './lines.ts'
import { secondRoute } from './second-route.ts'

/**
 * Places the target of a transfer, with the routes and the admission of an INVITE from the transferor's trunk. The new
 * call belongs to the project of the called number, or to the transferor's project when it goes to the public network.
 * Two projects never share a call (docs/calls.md).
 */

type TransferAsk = Omit<Ask, 'call_sid'>

const RING_LIMIT_MS = 60_000

export async function placeTransferred(ctx: AdmissionContext, asked: TransferRequest): Promise<TransferPlaced> {
  const trunk = ctx.snapshot().trunks.get(asked.trunk_id)
  if (!trunk) return refused('trunk_disabled')
  if (hopsLeft(asked.transferor.call.row_now.request) <= 0) return refused('too_many_hops')
  const number = ctx.snapshot().numbers.get(readAs(trunk, asked.target.number))
  if (!number || number.status === 'available') return toWorld(ctx, asked, trunk)
  if (number.status === 'quarantined') return refused('number_quarantined')
  if (number.route_kind === 'voice_application') return toApplication(ctx, asked, trunk, number)
  return toTrunk(ctx, asked, trunk, number)
}

/** Returns a number in E.164, read as the transferor's peer writes it; one that cannot be read as it is. */
const readAs = (trunk: TrunkConfig | undefined, number: string): string =>
  parseNumber(number, trunk?.country ?? DEFAULT_COUNTRY)?.e164 ?? number

async function toWorld(ctx: AdmissionContext, asked: TransferRequest, trunk: TrunkConfig): Promise<TransferPlaced> {
  const { target } = asked
  const shown = presented(ctx, asked)
  const ask: TransferAsk = {
    part: 'outbound',
    way: 'transfer',
    project_id: trunk.project_id,
    service: { type: 'trunk', id: trunk.id },
    called: target.number,
    caller: shown.caller,
    forwarded_caller: shown.forwarded,
    diverting: shown.diversion,
    transport: null,
    offer: null,
    own_targets: ownTargets(ctx, trunk),
  }
  const owner = { project_id: trunk.project_id, trunk_id: trunk.id, number: null, application: null }
  return dial(ctx, asked, trunk, owner, [ask], (sid, outcome) => ({
    hops: hopsToWorld(ctx, {
      project_id: trunk.project_id,
      trunk,
      outgoing: outgoing(ctx, asked, sid, outcome, shown.diversion),
    }),
    second: null,
  }))
}

async function toTrunk(
  ctx: AdmissionContext,
  asked: TransferRequest,
  trunk: TrunkConfig,
  number: NumberConfig,
): Promise<TransferPlaced> {
  const snapshot = ctx.snapshot()
  const { route_kind, route_id, project_id } = number
  if (route_id === null || project_id === null || (route_kind !== 'trunk' && route_kind !== 'subtrunk'))
    return refused('number_unrouted')
  const to = snapshot.trunks.get(route_kind === 'trunk' ? route_id : (snapshot.trunk_of_subtrunk.get(route_id) ?? ''))
  if (!to) return refused('number_unrouted')
  const owner = { project_id, trunk_id: to.id, number, application: null }
  const asks = onNet(ctx, asked, trunk, number, { project_id, service: { type: route_kind, id: route_id } })
  const { diversion } = presented(ctx, asked)
  const inbound = asks.find(({ part }) => part === 'inbound')
  return dial(ctx, asked, trunk, owner, asks, (sid, outcome) => {
    const all = outgoing(ctx, asked, sid, outcome, diversion)
    // The PBX of another tenant gets none of the transferor's X- headers, by either route of its number.
    const going = isForeign(trunk, to) ? { ...all, passed: {} } : all
    const second = inbound ? secondRoute(ctx, number, { ...inbound, call_sid: sid }, going, false) : null
    return { hops: deliveryHops(ctx, to, going), second }
  })
}

/** Runs the application's document in a separate call, on a wire whose other end is joined with the leg that stays. */
async function toApplication(
  ctx: AdmissionContext,
  asked: TransferRequest,
  trunk: TrunkConfig,
  number: NumberConfig,
): Promise<TransferPlaced> {
  const { leg } = asked.transferee
  const application = number.route_id === null ? undefined : ctx.snapshot().applications.get(number.route_id)
  if (!application) return refused('number_unrouted')
  const { project_id, id } = application
  const trunk_id = project_id === trunk.project_id ? trunk.id : null
  const asks = onNet(ctx, asked, trunk, number, { project_id, service: { type: 'voice_application', id } })
  const admitted = await admit(ctx, asked, trunk, { project_id, trunk_id, number, application }, asks)
  if ('kind' in admitted) return admitted
  const { row, decided } = admitted
  const { session } = leg
  session.hold()
  const limits = limitsOf(decided, null)
  const { watcher } = asked
  const child = new ApplicationCall(ctx, { row, session, application, parameters: {}, watcher, limits })
  asked.created(child)
  void child.begin()
  return { kind: 'placed' }
}

/** Returns the admission requests of an on-net call: for the transferor's trunk first, then for the number's route. */
function onNet(
  ctx: AdmissionContext,
  asked: TransferRequest,
  trunk: TrunkConfig,
  { e164 }: NumberConfig,
  route: Pick<Ask, 'project_id' | 'service'>,
): TransferAsk[] {
  const shown = presented(ctx, asked)
  const common = {
    called: asked.target.number,
    caller: shown.caller,
    forwarded_caller: shown.forwarded,
    diverting: shown.diversion,
    transport: null,
    offer: null,
  }
  return [
    {
      ...common,
      part: 'on_net',
      way: null,
      project_id: trunk.project_id,
      service: { type: 'trunk', id: trunk.id },
      own_targets: ownTargets(ctx, trunk),
    },
    // In E.164: the number's route may be a trunk of another country.
    { ...common, ...route, called: e164, part: 'inbound', way: null, own_targets: null },
  ]
}

/** The project that owns the new call, and the resources that the call belongs to. */
interface Owner {
  readonly project_id: string
  readonly trunk_id: string | null
  /** Null: the call goes to the public network. */
  readonly number: NumberConfig | null
  readonly application: ApplicationConfig | null
}

async function admit(
  ctx: AdmissionContext,
  asked: TransferRequest,
  trunk: TrunkConfig,
  owner: Owner,
  asks: readonly TransferAsk[],
): Promise<TransferPlaced | { readonly row: CallRow; readonly decided: Decided }> {
  const call = rowOf(ctx, asked, owner)
  const { sid: call_sid } = call
  const { project_id, id } = trunk
  const callers = rowOf(ctx, asked, { project_id, trunk_id: id, number: null, application: null })
  const wanted = {
    call,
    callers: { ...callers, sid: call_sid },
    verstat: null,
    ...ctx.gate.stamped(asks.map(ask => ({ ...ask, call_sid }))),
  }
  const admitted = await admitCall(ctx.state.db, wanted, DECIDES_WITHIN_MS).catch((err: unknown) => {
    if (!isPassing(err)) throw err
    ctx.log.error({ err, call_id: call_sid }, 'the target of a transfer could not be admitted')
    return null
  })
  if (!admitted) return refused('state_unavailable')
  const { row, decided, queued } = admitted
  if (decided.admitted) return { row, decided }
  notAdmitted(ctx, decided.reason, queued)
  return refused(decided.reason)
}

async function dial(
  ctx: AdmissionContext,
  asked: TransferRequest,
  trunk: TrunkConfig,
  owner: Owner,
  asks: readonly TransferAsk[],
  routeOf: (sid: string, outcome: Decided) => { readonly hops: HuntHop[]; readonly second: SecondRoute | null },
): Promise<TransferPlaced> {
  const { leg } = asked.transferee
  const admitted = await admit(ctx, asked, trunk, owner, asks)
  if ('kind' in admitted) return admitted
  const { row, decided } = admitted
  leg.session.hold()
  const child = new OutboundCall(ctx, {
    row,
    session: leg.session,
    limits: limitsOf(decided, trunk.max_call_duration_seconds || null),
    watcher: asked.watcher,
  })
  asked.created(child)
  const { hops, second } = routeOf(row.sid, decided)
  child.begin(hops, { ring_ms: RING_LIMIT_MS, prefer: leg, second })
  return { kind: 'placed' }
}

interface Presented {
  readonly caller: string
  /** Whether the trunk forwards the caller of an inbound call (design section 4, "Caller identity when forwarding"). */
  readonly forwarded: boolean
  /** The caller withholds the number. */
  readonly restricted: boolean
  /** The diverting number, which the caller dialled first (RFC 5806). */
  readonly diversion: string | null
}

/** Returns the caller that the target sees: the caller of an inbound call, else the transferor's own number. */
function presented(ctx: AdmissionContext, { transferor, transferee, trunk_id }: TransferRequest): Presented {
  const snapshot = ctx.snapshot()
  const trunk = snapshot.trunks.get(trunk_id)
  const { from_number, to_number } = transferor.call.row_now
  const isOwn = (number: string): boolean => holdsNumber(snapshot, trunk?.project_id, readAs(trunk, number))
  // Admission wants a number of the transferor's trunk where that has any (docs/calls.md).
  const isOfTrunk = (number: string): boolean => {
    const { route_kind = null, route_id = null } = snapshot.numbers.get(readAs(trunk, number)) ?? {}
    const routed_to = route_kind === 'subtrunk' ? snapshot.trunk_of_subtrunk.get(route_id ?? '') : route_id
    return isOwn(number) && routed_to === trunk_id
  }
  const forwards = mayBeForwarded(transferor.call.row_now) && transferor.call === transferee.call && isOwn(to_number)
  const restricted = hidesCaller(transferor.call.row_now.request)
  if (forwards && !isOwn(from_number)) return { caller: from_number, forwarded: true, restricted, diversion: to_number }
  const both = [from_number, to_number]
  const own = both.find(isOfTrunk) ?? both.find(isOwn) ?? from_number
  const withheld = restricted && own === from_number
  return { caller: own, forwarded: false, restricted: withheld, diversion: isOwn(own) ? own : null }
}

function outgoing(
  ctx: AdmissionContext,
  asked: TransferRequest,
  sid: string,
  outcome: Decided,
  diversion: string | null,
): Outgoing {
  const { target, transferor } = asked
  const { caller, restricted } = presented(ctx, asked)
  const { request } = transferor.call.row_now
  return {
    call_sid: sid,
    called_e164: outcome.called?.e164 ?? target.number,
    caller_e164: outcome.caller_e164 ?? caller,
    restricted,
    caller_name: null,
    max_forwards: hopsLeft(request),
    diverters:
      diversion === null
        ? []
        : divertedBy(transferor.call, diversion, 'deflection', restricted && diversion === caller),
    passed: target.headers,
    attest: attestationOf(outcome.caller_ownership, readCallRequest(request).sip?.verstat ?? null),
  }
}

function rowOf(ctx: AdmissionContext, asked: TransferRequest, { project_id, trunk_id, number, application }: Owner) {
  const at = iso(ctx.clock.now())
  const parent = asked.transferor.call
  const { caller, restricted } = presented(ctx, asked)
  const request: CallRequest = {
    ...(application
      ? {
          status_callback: application.status_callback_url,
          status_callback_method: application.status_callback_method,
          status_callback_events: ['completed'],
        }
      : {}),
    ...(restricted ? { restricted: true as const } : {}),
    max_forwards: hopsLeft(parent.row_now.request),
  }
  return {
    sid: newId.call(),
    project_id,
    account_sid: ctx.snapshot().accounts.get(project_id)?.account_sid ?? null,
    parent_call_sid: parent.project_id === project_id ? parent.sid : null,
    origin: 'trunk' as const,
    direction: number === null ? ('outbound' as const) : ('inbound' as const),
    from_number: caller,
    to_number: readAs(ctx.snapshot().trunks.get(asked.trunk_id), asked.target.number),
    status: 'ringing' as const,
    trunk_id,
    carrier_id: null,
    number_id: number?.id ?? null,
    application_id: application?.id ?? null,
    sip_call_id: null,
    request: JSON.stringify(request),
    node_id: ctx.node_id,
    queued_at: at,
    ...NOTHING_YET,
  } satisfies NewCall
}

const refused = (reason: Reason): TransferPlaced => ({ kind: 'refused', sip_code: sipRefusal(reason).code, reason })

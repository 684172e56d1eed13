import { type Service, voiceService, type WayName } from '../../core/domain/admission/index.ts'
import { hidesCaller, readCallRequest } from '../../core/domain/calls/request.ts'
import { attestationOf, mayBeForwarded } from '../../core/domain/identity/index.ts'
import { DEFAULT_COUNTRY } from '../../core/domain/numbers/default-country.ts'
import { parseNumber } from '../../core/domain/numbers/parse.ts'
import { REASONS, type Reason, sipRefusal } from '../../core/domain/reasons/index.ts'
import { orderByPriority } from '../../core/domain/routing/index.ts'
import { userOrHost } from '../../core/domain/sip/address.ts'
import { transportOf } from '../../core/domain/sip/uri.ts'
import { takeAdmission } from '../../core/state/calls/leases.ts'
import { admitRow, type CallRow, type Decided, insertCall } from '../../core/state/calls/running-calls.ts'
import type { DialChild, SipUri } from '../../markup/interpreter/types.ts'
import type { Call } from '../b2bua/call.ts'
import type { CallContext } from '../b2bua/context.ts'
import type { HuntHop } from '../b2bua/hunt.ts'
import { OutboundCall } from '../b2bua/outbound-call.ts'
import { deliveryHops, egressHops, invitationHeaders, type Outgoing, openPolicy, ownTargets } from '../b2bua/routes.ts'
import { ApplicationCall } from '../scripts/application-call.ts'
import type { ChildAsked, NotPlaced } from '../scripts/child-placing.ts'
import { childRow } from '../scripts/child-row.ts'
import { goesRound } from '../scripts/circles.ts'
import type { ApplicationConfig, NumberConfig, TrunkConfig } from '../trunks/snapshot.ts'
import { clientHops } from './clients.ts'
import type { AdmissionContext } from './context.ts'
import { divertedBy } from './diverting.ts'
import type { Ask } from './gate.ts'

/** Places outbound calls: gathers the facts, asks for admission and starts the INVITEs. */

const CHILD_RING_LIMIT_MS = 600_000
const HOPS_OF_OUR_OWN = 70
/** The number of URIs that one Sip noun may try. */
const MAX_URIS = 10
const PLACED = ['udp', 'tcp', 'tls'] as const

/** Returns the trunk whose targets carry calls of this caller number (design section 4, "Egress"). */
export function trunkOfCaller(ctx: CallContext, caller: string): TrunkConfig | null {
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

/** Counts a refused call, and wakes the delivery of callbacks when the decision has queued some (`told`). */
export function notAdmitted(ctx: CallContext, reason: Reason, told: number): void {
  ctx.metrics.refusals.inc({ reason })
  if (told > 0) ctx.bus.ring('outbox')
}

/**
 * Admits a call that has a row. A refusal ends the call, except for the reason `waits_for`: then the call stays queued,
 * because the condition is temporary.
 */
export async function admitQueued(
  ctx: AdmissionContext,
  row: CallRow,
  asks: readonly Omit<Ask, 'call_sid'>[],
  waits_for: Reason | null = null,
): Promise<Decided> {
  const wanted = ctx.gate.stamped(asks.map(ask => ({ ...ask, call_sid: row.sid })))
  const { decided, told } = await admitRow(ctx.state.db, { ...wanted, waits_for })
  if (!decided.admitted && decided.reason !== waits_for) notAdmitted(ctx, decided.reason, told)
  return decided
}

export const limitsOf = (decided: Decided, own_seconds: number | null) => {
  const admitted = decided.admitted ? decided : null
  const given = admitted?.max_duration_seconds ?? null
  const own = own_seconds !== null && (given === null || own_seconds < given)
  return {
    max_duration_seconds: own ? own_seconds : given,
    max_duration_reason: own ? ('max_duration' as const) : (admitted?.max_duration_reason ?? null),
    paid_until_seconds: decided.paid_until_seconds,
    recording: decided.recording?.mode === 'all' && decided.recording.consented ? decided.recording : null,
  }
}

/** A call of a project to one of its own numbers. It stays on the platform. */
type OwnLine = { readonly service: Ask['service'] } & (
  | { readonly kind: 'trunk'; readonly trunk: TrunkConfig }
  | { readonly kind: 'application'; readonly number: NumberConfig; readonly application: ApplicationConfig }
)

/** Returns the line of a number that the project itself holds and routes; null for all other numbers. */
export function ownLine(ctx: CallContext, project_id: string, called: string): OwnLine | null {
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
  return trunk ? { kind: 'trunk', trunk, service } : null
}

/** Returns the admission requests of a call to a number: to the network, or for both sides of one that stays here. */
export const asksOf = (
  way: WayName,
  ask: Omit<Ask, 'call_sid' | 'part' | 'way'>,
  line: OwnLine | null,
): Omit<Ask, 'call_sid'>[] =>
  line
    ? [
        { ...ask, part: 'on_net', way: null },
        { ...ask, part: 'inbound', way: null, service: line.service, own_targets: null },
      ]
    : [{ ...ask, part: 'outbound', way }]

/** Returns the hops of an admitted call to a number: those of the project's own trunk, else to the public network. */
export const hopsOf = (
  ctx: CallContext,
  to: { readonly project_id: string; readonly trunk: TrunkConfig | null; readonly outgoing: Outgoing },
  line: Extract<OwnLine, { kind: 'trunk' }> | null,
): HuntHop[] => (line ? deliveryHops(ctx, line.trunk, to.outgoing) : hopsToWorld(ctx, to))

/** Returns the hops of an admitted call to the public network. */
export function hopsToWorld(
  ctx: CallContext,
  options: { project_id: string; trunk: TrunkConfig | null; outgoing: Outgoing },
): HuntHop[] {
  const project = ctx.snapshot().projects.get(options.project_id)
  return project ? egressHops(ctx, { ...options, project }) : []
}

/** Places a child of a script's Dial, with its own row, in its parent's media session. */
export async function placeChild(ctx: AdmissionContext, parent: Call, options: ChildAsked): Promise<NotPlaced | null> {
  const { command } = options
  if (ctx.draining()) return refusedBy('draining')
  switch (command.target.kind) {
    case 'number':
      return placeNumber(ctx, parent, options, command.target.number)
    case 'sip':
      return placeSip(ctx, parent, options, command.target)
    case 'client':
      return placeClient(ctx, parent, options, command.target)
    case 'application':
      return { refused: { sip_code: 480, number: null, detail: 'Application is not available on this platform' } }
  }
}

async function placeNumber(
  ctx: AdmissionContext,
  parent: Call,
  options: ChildAsked,
  number: string,
): Promise<NotPlaced | null> {
  const { command } = options
  const sent_on = command.caller_id_source === 'parent' && parent.row_now.direction === 'inbound'
  const forwarded_caller = sent_on && mayBeForwarded(parent.row_now)
  const trunk = trunkOfCaller(ctx, command.caller_id) ?? (sent_on ? trunkOfCaller(ctx, parent.row_now.to_number) : null)
  const line = ownLine(ctx, parent.project_id, number)
  const circle = line?.kind === 'application' ? goesRound(parent, line.number.e164) : null
  if (circle) return { refused: { ...circle, number: 13227 } }
  const to = line?.kind === 'application' ? line.number.e164 : number
  const inserted = await insertCall(ctx.state.db, childRow(parent, command, to, trunk?.id ?? null), ctx.clock.now())
  const ask = {
    project_id: parent.project_id,
    service: serviceOf(parent),
    called: number,
    caller: command.caller_id,
    forwarded_caller,
    transport: null,
    offer: null,
    own_targets: trunk ? ownTargets(ctx, trunk) : 0,
  }
  const outcome = await admitQueued(ctx, inserted, asksOf('dial_number', ask, line))
  if (!outcome.admitted || !outcome.called || outcome.caller_e164 === null)
    return outcome.admitted ? refusedBy('number_invalid') : refusedBy(outcome.reason, outcome.sentence)
  if (line?.kind === 'application') {
    const { application } = line
    beginApplication(ctx, parent, options, {
      row: inserted,
      application,
      parameters: {},
      limits: limitsOf(outcome, null),
    })
    return null
  }
  const outgoing: Outgoing = {
    call_sid: inserted.sid,
    called_e164: outcome.called.e164,
    caller_e164: outcome.caller_e164,
    restricted: sent_on && hidesCaller(parent.row_now.request),
    caller_name: null,
    max_forwards: HOPS_OF_OUR_OWN,
    diverters: sent_on ? divertedBy(parent, parent.row_now.to_number, parent.divertsBecause) : [],
    passed: {},
    attest: attestationOf(outcome.caller_ownership, readCallRequest(parent.row_now.request).sip?.verstat ?? null),
  }
  const hops = hopsOf(ctx, { project_id: parent.project_id, trunk, outgoing }, line)
  beginChild(ctx, parent, options, inserted, outcome, hops)
  return null
}

async function placeSip(
  ctx: AdmissionContext,
  parent: Call,
  options: ChildAsked,
  target: Extract<DialChild['target'], { kind: 'sip' }>,
): Promise<NotPlaced | null> {
  const { command } = options
  const uris = orderByPriority(target.uris, Math.random)
  const first = uris[0]
  if (!first) return { refused: { sip_code: 480, number: 13224, detail: 'no SIP URI' } }
  const row = childRow(parent, command, first.uri, null)
  const inserted = await insertCall(ctx.state.db, row, ctx.clock.now())
  const outcome = await admitQueued(ctx, inserted, [askUnnumbered(parent, command, 'dial_sip', userOrHost(first.uri))])
  if (!outcome.admitted) return refusedBy(outcome.reason, outcome.sentence)
  const outgoing = unnumbered(parent, inserted.sid, command)
  const hops = (await allowed(ctx, parent, command, uris.slice(0, MAX_URIS))).map(
    (uri): HuntHop => ({
      uri: uri.uri,
      target: uri.uri,
      target_id: null,
      carrier_id: null,
      transport: PLACED.find(transport => transport === transportOf(uri.uri)) ?? 'udp',
      policy: openPolicy(null),
      headers: { ...invitationHeaders(ctx, outgoing, 'customer'), ...Object.fromEntries(target.headers) },
      redirects: [],
      ...(uri.username !== null ? { auth: { username: uri.username, password: uri.password ?? '' } } : {}),
    }),
  )
  beginChild(ctx, parent, options, inserted, outcome, hops)
  return null
}

/** Returns the service that a script's call belongs to: its application, or else the automation of its project. */
const serviceOf = ({ project_id, row_now }: Call): Service => voiceService(project_id, row_now.application_id)

/** Builds the admission request of a leg without a called number: to a SIP URI, or to a client. */
const askUnnumbered = (
  parent: Call,
  { caller_id: caller }: Pick<DialChild, 'caller_id'>,
  way: 'dial_sip' | 'dial_client' | 'refer',
  called: string,
): Omit<Ask, 'call_sid'> => ({
  part: 'outbound',
  way,
  project_id: parent.project_id,
  service: serviceOf(parent),
  called,
  caller,
  transport: null,
  offer: null,
})

/** Decides whether a script may ask the peer of a leg to call a SIP URI. The peer makes the call: it takes no slot. */
export async function admitReferral(ctx: AdmissionContext, parent: Call, uri: string): Promise<NotPlaced | null> {
  const ask = askUnnumbered(parent, { caller_id: parent.row_now.to_number }, 'refer', userOrHost(uri))
  const outcome = await dryRun(ctx, parent, ask)
  return outcome.admitted ? null : refusedBy(outcome.reason, outcome.sentence)
}

const dryRun = (ctx: AdmissionContext, { sid }: Call, ask: Omit<Ask, 'call_sid'>) =>
  takeAdmission(
    ctx.state.db,
    { ...ask, call_sid: sid, node_id: ctx.node_id, now_ms: ctx.clock.now() },
    { dry_run: true },
  )

/** Removes the URIs whose number the policy denies. Admission covers only the first, so the others are checked here. */
async function allowed(
  ctx: AdmissionContext,
  parent: Call,
  command: DialChild,
  uris: readonly SipUri[],
): Promise<SipUri[]> {
  const [first, ...others] = uris
  const kept = first ? [first] : []
  for (const uri of others) {
    const outcome = await dryRun(ctx, parent, askUnnumbered(parent, command, 'dial_sip', userOrHost(uri.uri)))
    if (outcome.admitted || !OF_DESTINATION.includes(outcome.reason)) kept.push(uri)
  }
  return kept
}

const OF_DESTINATION: readonly Reason[] = ['destination_denied', 'DESTINATION_CONTAINED']

/** Places a child to a client. The leg uses no trunk and costs nothing, but takes a slot like any other. */
async function placeClient(
  ctx: AdmissionContext,
  parent: Call,
  options: ChildAsked,
  { identity, parameters }: Extract<DialChild['target'], { kind: 'client' }>,
): Promise<NotPlaced | null> {
  const { command } = options
  const row = childRow(parent, command, `client:${identity}`, null)
  const outgoing = unnumbered(parent, row.sid, command)
  const hops = clientHops(ctx, { project_id: parent.project_id, client: identity, outgoing, parameters })
  if (hops.length === 0)
    return { refused: { sip_code: 480, number: null, detail: `no client "${identity}" is registered` } }
  const inserted = await insertCall(ctx.state.db, row, ctx.clock.now())
  const outcome = await admitQueued(ctx, inserted, [askUnnumbered(parent, command, 'dial_client', '')])
  if (!outcome.admitted) return refusedBy(outcome.reason, outcome.sentence)
  beginChild(ctx, parent, options, inserted, outcome, hops)
  return null
}

/** Returns the caller of an INVITE to a SIP URI or client. The caller may be a name. */
function unnumbered(parent: Call, call_sid: string, { caller_id, caller_id_source }: DialChild): Outgoing {
  return {
    call_sid,
    called_e164: '',
    caller_e164: caller_id.replace(/^client:/i, '').replace(/[^A-Za-z0-9+\-_.]/g, '') || 'anonymous',
    restricted: caller_id_source === 'parent' && hidesCaller(parent.row_now.request),
    caller_name: null,
    max_forwards: HOPS_OF_OUR_OWN,
    diverters: [],
    passed: {},
  }
}

function beginChild(
  ctx: AdmissionContext,
  parent: Call,
  options: ChildAsked,
  row: CallRow,
  outcome: Decided,
  hops: readonly HuntHop[],
): void {
  parent.session.hold()
  const limits = limitsOf(outcome, null)
  const call = new OutboundCall(ctx, { row, session: parent.session, limits, watcher: options.watcher })
  options.created(call)
  call.begin(hops, { ring_ms: CHILD_RING_LIMIT_MS, prefer: options.prefer })
}

/** Begins the call of an application of the project, in its parent's media session. */
function beginApplication(
  ctx: AdmissionContext,
  { session }: Call,
  { created, watcher }: ChildAsked,
  parts: Pick<ConstructorParameters<typeof ApplicationCall>[1], 'row' | 'application' | 'parameters' | 'limits'>,
): void {
  session.hold()
  const call = new ApplicationCall(ctx, { ...parts, session, watcher })
  created(call)
  void call.begin()
}

/** Returns a refusal with the error number of the compatible API (voice-compat.md §11, Number). */
function refusedBy(reason: Reason, sentence?: string): NotPlaced {
  const { code } = sipRefusal(reason)
  const number = reason === 'number_invalid' ? 13224 : REASONS[reason].blame === 'limit' ? 13225 : 13227
  return { refused: { sip_code: code, number, detail: sentence ?? reason } }
}

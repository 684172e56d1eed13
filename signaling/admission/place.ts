import { type Service, voiceService } from '../../core/domain/admission/index.ts'
import { hopsLeft, readCallRequest } from '../../core/domain/calls/request.ts'
import { attestationOf, mayBeForwarded } from '../../core/domain/identity/index.ts'
import { REASONS, type Reason, sipRefusal } from '../../core/domain/reasons/index.ts'
import { orderByPriority } from '../../core/domain/routing/index.ts'
import { userOrHost } from '../../core/domain/sip/address.ts'
import { transportOf } from '../../core/domain/sip/uri.ts'
import { takeAdmission } from '../../core/state/calls/leases.ts'
import { type CallRow, type Decided, insertCall } from '../../core/state/calls/running-calls.ts'
import type { DialChild, DialledUri } from '../../markup/interpreter/types.ts'
import type { HuntHop } from '../b2bua/hunt.ts'
import { OutboundCall } from '../b2bua/outbound-call.ts'
import { invitationHeaders, type Outgoing, openPolicy, ownTargets } from '../b2bua/routes.ts'
import type { ScriptedCall } from '../b2bua/scripted-call.ts'
import type { SecondRoute } from '../b2bua/second-route.ts'
import { ApplicationCall } from '../scripts/application-call.ts'
import type { ChildRequest, NotPlaced } from '../scripts/child-placing.ts'
import { childRow, hidesItsCaller } from '../scripts/child-row.ts'
import { goesRound } from '../scripts/circles.ts'
import { admitQueued, asksOf, limitsOf } from './admit-queued.ts'
import { clientHops } from './clients.ts'
import type { AdmissionContext } from './context.ts'
import { divertedBy } from './diverting.ts'
import type { Ask } from './gate.ts'
import { hopsOf, ownLine, trunkOfCaller } from './lines.ts'
import { secondOf } from './second-route.ts'

/** Places the children of a script: gathers the facts, asks for admission and starts the INVITEs. */

const CHILD_RING_LIMIT_MS = 600_000
/** The number of URIs that one Sip noun may try. */
const MAX_URIS = 10
const PLACED = ['udp', 'tcp', 'tls'] as const

/** Places a child of a script's Dial, with its own row, in its parent's media session. */
export async function placeChild(
  ctx: AdmissionContext,
  parent: ScriptedCall,
  options: ChildRequest,
): Promise<NotPlaced | null> {
  const { target } = options.command
  if (hopsLeft(parent.row_now.request) <= 0) return refusedBy('too_many_hops')
  if (target.kind === 'application') return placeApplication(ctx, parent, options, target)
  if (ctx.draining()) return refusedBy('draining')
  switch (target.kind) {
    case 'number':
      return placeNumber(ctx, parent, options, target.number)
    case 'sip':
      return placeSip(ctx, parent, options, target)
    case 'client':
      return placeClient(ctx, parent, options, target)
  }
}

async function placeNumber(
  ctx: AdmissionContext,
  parent: ScriptedCall,
  options: ChildRequest,
  number: string,
): Promise<NotPlaced | null> {
  const { command } = options
  const sent_on = command.caller_id_source === 'parent' && parent.row_now.direction === 'inbound'
  const forwarded_caller = sent_on && mayBeForwarded(parent.row_now)
  const trunk = trunkOfCaller(ctx, command.caller_id) ?? (sent_on ? trunkOfCaller(ctx, parent.row_now.to_number) : null)
  const line = ownLine(ctx, parent.project_id, number)
  const circle = line?.kind === 'application' ? goesRound(ctx.calls, parent, line.number.e164) : null
  if (circle) return { refused: { ...circle, number: 13227 } }
  const to = line?.kind === 'application' ? line.number.e164 : number
  const inserted = await insertCall(
    ctx.state.db,
    childRow(ctx, parent, command, to, trunk?.id ?? null),
    ctx.clock.now(),
  )
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
    restricted: hidesItsCaller(parent, command),
    caller_name: null,
    max_forwards: hopsLeft(parent.row_now.request),
    diverters: sent_on ? divertedBy(parent, parent.row_now.to_number, parent.divertsBecause) : [],
    passed: {},
    attest: attestationOf(outcome.caller_ownership, readCallRequest(parent.row_now.request).sip?.verstat ?? null),
  }
  const hops = hopsOf(ctx, { project_id: parent.project_id, trunk, outgoing }, line)
  beginChild(ctx, parent, options, inserted, outcome, hops, secondOf(ctx, ask, outgoing, line))
  return null
}

async function placeSip(
  ctx: AdmissionContext,
  parent: ScriptedCall,
  options: ChildRequest,
  target: Extract<DialChild['target'], { kind: 'sip' }>,
): Promise<NotPlaced | null> {
  const { command } = options
  const uris = orderByPriority(target.uris, Math.random)
  const first = uris[0]
  if (!first) return { refused: { sip_code: 480, number: 13224, detail: 'no SIP URI' } }
  const row = childRow(ctx, parent, command, first.uri, null)
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
const serviceOf = ({ project_id, row_now }: ScriptedCall): Service => voiceService(project_id, row_now.application_id)

/** Builds the admission request of a leg without a called number: to a SIP URI, or to a client. */
const askUnnumbered = (
  parent: ScriptedCall,
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
export async function admitReferral(
  ctx: AdmissionContext,
  parent: ScriptedCall,
  uri: string,
): Promise<NotPlaced | null> {
  const ask = askUnnumbered(parent, { caller_id: parent.row_now.to_number }, 'refer', userOrHost(uri))
  const outcome = await dryRun(ctx, parent, ask)
  return outcome.admitted ? null : refusedBy(outcome.reason, outcome.sentence)
}

const dryRun = (ctx: AdmissionContext, { sid }: ScriptedCall, ask: Omit<Ask, 'call_sid'>) =>
  takeAdmission(
    ctx.state.db,
    { ...ask, call_sid: sid, node_id: ctx.node_id, now_ms: ctx.clock.now() },
    { dry_run: true },
  )

/** Removes the URIs whose number the policy denies. Admission covers only the first, so the others are checked here. */
async function allowed(
  ctx: AdmissionContext,
  parent: ScriptedCall,
  command: DialChild,
  uris: readonly DialledUri[],
): Promise<DialledUri[]> {
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
  parent: ScriptedCall,
  options: ChildRequest,
  { identity, parameters }: Extract<DialChild['target'], { kind: 'client' }>,
): Promise<NotPlaced | null> {
  const { command } = options
  const row = childRow(ctx, parent, command, `client:${identity}`, null)
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
function unnumbered(parent: ScriptedCall, call_sid: string, command: DialChild): Outgoing {
  return {
    call_sid,
    called_e164: '',
    caller_e164: command.caller_id.replace(/^client:/i, '').replace(/[^A-Za-z0-9+\-_.]/g, '') || 'anonymous',
    restricted: hidesItsCaller(parent, command),
    caller_name: null,
    max_forwards: hopsLeft(parent.row_now.request),
    diverters: [],
    passed: {},
  }
}

function beginChild(
  ctx: AdmissionContext,
  parent: ScriptedCall,
  options: ChildRequest,
  row: CallRow,
  outcome: Decided,
  hops: readonly HuntHop[],
  second: SecondRoute | null = null,
): void {
  parent.session.hold()
  const limits = limitsOf(outcome, null)
  const call = new OutboundCall(ctx, { row, session: parent.session, limits, watcher: options.watcher })
  options.created(call)
  call.begin(hops, { ring_ms: CHILD_RING_LIMIT_MS, prefer: options.prefer, second })
}

/** Begins the call of an application of the project, in its parent's media session. */
function beginApplication(
  ctx: AdmissionContext,
  { session }: ScriptedCall,
  { created, watcher }: ChildRequest,
  parts: Pick<ConstructorParameters<typeof ApplicationCall>[1], 'row' | 'application' | 'parameters' | 'limits'>,
): void {
  session.hold()
  const call = new ApplicationCall(ctx, { ...parts, session, watcher })
  created(call)
  void call.begin()
}

/** Places a voice application of the same project as a child call. The call is internal, so it needs no admission. */
async function placeApplication(
  ctx: AdmissionContext,
  parent: ScriptedCall,
  options: ChildRequest,
  { id, parameters }: Extract<DialChild['target'], { kind: 'application' }>,
): Promise<NotPlaced | null> {
  const application = ctx.snapshot().applications.get(id)
  if (application?.project_id !== parent.project_id)
    return { refused: { sip_code: 404, number: null, detail: `no voice application "${id}" of this project` } }
  const row = childRow(ctx, parent, options.command, `application:${id}`, null)
  const circle = goesRound(ctx.calls, parent, row.to_number)
  if (circle) return { refused: { ...circle, number: 13227 } }
  const inserted = await insertCall(ctx.state.db, row, ctx.clock.now())
  beginApplication(ctx, parent, options, { row: inserted, application, parameters })
  return null
}

/** Returns a refusal with the error number of the compatible API (voice-compat.md §11, Number). */
function refusedBy(reason: Reason, sentence?: string): NotPlaced {
  const { code } = sipRefusal(reason)
  const number = reason === 'number_invalid' ? 13224 : REASONS[reason].blame === 'limit' ? 13225 : 13227
  return { refused: { sip_code: code, number, detail: sentence ?? reason } }
}

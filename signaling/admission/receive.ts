import { voiceService } from '../../core/domain/admission/index.ts'
import { customHeaders } from '../../core/domain/calls/custom-headers.ts'
import { readSdp } from '../../core/domain/codecs/sdp.ts'
import { attestationOf } from '../../core/domain/identity/index.ts'
import { type Reason, type ReasonFacts, sipRefusal } from '../../core/domain/reasons/index.ts'
import { newId } from '../../core/runtime/ids.ts'
import { type AdmittedCall, type Decided, insertCall, type NewCall } from '../../core/state/calls/running-calls.ts'
import { browserPolicy } from '../b2bua/browser.ts'
import { InboundCall, type Plan } from '../b2bua/inbound-call.ts'
import type { LegPolicy } from '../b2bua/media.ts'
import { authOf, carrierPolicy, deliveryHops, type Outgoing, ownTargets, trunkPolicy } from '../b2bua/routes.ts'
import { intervalTooSmall } from '../b2bua/session-timer.ts'
import type { InboundInvite } from '../drachtio/types.ts'
import type { DigestAuthenticator } from '../trunks/digest.ts'
import { type Asked, callersOwn, callRow, type Destination, ownerOf } from './call-row.ts'
import type { AdmissionContext } from './context.ts'
import type { Ask } from './gate.ts'
import { endUnplaced } from './originate.ts'
import { credentialsFor, identify, type Peer } from './peer.ts'
import { hopsToWorld, limitsOf, notAdmitted, trunkOfCaller } from './place.ts'
import { readInvite, verstatOf } from './read-invite.ts'
import { refuse } from './refuse.ts'
import { replacedBy } from './replaced.ts'

/** Handles INVITEs from the network: identifies the peer, reads the request, admits it and starts the call. */

export async function receiveInvite(
  ctx: AdmissionContext,
  digest: DigestAuthenticator,
  invite: InboundInvite,
): Promise<void> {
  const peer = identify(ctx, digest, invite)
  if (!peer) return
  if (ctx.draining()) return refuse(ctx, invite, 'draining')
  if (peer.kind === 'carrier' && !peer.carrier.enabled)
    return refuse(ctx, invite, 'carrier_draining', { name: peer.carrier.name })
  if (!ctx.media.connected) return refuse(ctx, invite, 'media_unavailable')
  const asked = readInvite(peer, invite)
  if (asked.max_forwards <= 0) return refuse(ctx, invite, 'too_many_hops')
  if (comesBack(ctx, invite, asked)) {
    refuse(ctx, invite, 'loop_detected', { value: asked.called })
    return
  }
  const min_se = intervalTooSmall(invite)
  if (min_se !== null) {
    invite.refuse(422, { headers: { 'Min-SE': min_se } })
    return
  }
  const { refused } = invite.content()
  if (refused) return refuse(ctx, invite, 'body_unsupported', { value: refused.value }, refused.headers)
  const offered = offeredIn(invite)
  if (offered && 'fault' in offered) {
    ctx.metrics.refusals.inc({ reason: 'no_common_codec' })
    const { code, headers } = sipRefusal('no_common_codec', {}, `the SDP of the offer cannot be used: ${offered.fault}`)
    return invite.refuse(code, { headers })
  }
  if (asked.foreign_context !== null) return refuseForeignNumber(ctx, invite, asked, asked.foreign_context)
  const destination = invite.header('replaces') === null ? destinationOf(ctx, asked) : replacedBy(ctx, invite, peer)
  if ('code' in destination) return invite.refuse(destination.code)
  if ('refused' in destination) return refuse(ctx, invite, destination.refused, destination.facts)
  try {
    const verstat = await verstatOf(ctx, invite, asked)
    await admitAndBegin(ctx, invite, { ...asked, verstat }, offered, destination)
  } catch (err) {
    ctx.log.error({ err, sip_call_id: invite.call_id }, 'an INVITE could not be admitted')
    refuse(ctx, invite, 'state_unavailable', { value: err instanceof Error ? err.message : 'unknown' })
  }
}

/** Refuses a local number of a foreign plan. The caller's own project sees the call. */
async function refuseForeignNumber(
  ctx: AdmissionContext,
  invite: InboundInvite,
  asked: Asked,
  context: string,
): Promise<void> {
  const owner = callersOwn(asked.peer)
  const keep = async (call: NewCall): Promise<void> => {
    const row = await insertCall(ctx.state.db, call, ctx.clock.now())
    await endUnplaced(ctx, row, { cause: 'not_admitted', reason: 'number_incomplete', sip_code: 484 })
  }
  if (owner)
    await keep(callRow(ctx, newId.call(), invite, asked, owner)).catch(err =>
      ctx.log.error({ err, sip_call_id: invite.call_id }, 'a refused call could not be kept'),
    )
  refuse(ctx, invite, 'number_incomplete', { value: asked.called, limit: context })
}

/** Whether a target has returned our own call: it names one that is live here, with the same called number. */
function comesBack(ctx: AdmissionContext, invite: InboundInvite, asked: Asked): boolean {
  const sid = invite.header('x-strowger-callsid')
  const running = sid === null ? undefined : ctx.calls.get(sid)
  return running !== undefined && running.row_now.to_number === (asked.called_e164 ?? asked.called)
}

function destinationOf(ctx: AdmissionContext, asked: Asked): Destination | { refused: Reason; facts: ReasonFacts } {
  const snapshot = ctx.snapshot()
  const number = asked.called_e164 === null ? undefined : snapshot.numbers.get(asked.called_e164)
  if (!number || number.status === 'available') {
    const { peer } = asked
    if (peer.kind === 'trunk') return { kind: 'world', project_id: peer.trunk.project_id, trunk: peer.trunk }
    if (peer.kind === 'client')
      return { kind: 'world', project_id: peer.project_id, trunk: trunkOfCaller(ctx, peer.caller) }
    return { refused: 'number_unallocated', facts: { value: asked.called } }
  }
  if (number.status === 'quarantined') return { refused: 'number_quarantined', facts: { value: number.e164 } }
  if (number.route_kind === 'voice_application' && number.route_id !== null) {
    const application = snapshot.applications.get(number.route_id)
    if (application) return { kind: 'application', number, application }
  }
  if ((number.route_kind === 'trunk' || number.route_kind === 'subtrunk') && number.route_id !== null) {
    const trunk_id = number.route_kind === 'trunk' ? number.route_id : snapshot.trunk_of_subtrunk.get(number.route_id)
    const trunk = trunk_id ? snapshot.trunks.get(trunk_id) : undefined
    if (trunk) return { kind: 'delivery', number, trunk, service: { type: number.route_kind, id: number.route_id } }
  }
  return { refused: 'number_unrouted', facts: { value: number.e164 } }
}

/** The facts of an SDP offer that are needed before a leg answers it. */
interface Offered {
  /** The facts for admission. */
  readonly offer: NonNullable<Ask['offer']>
  /** The address family of its audio; null without audio. */
  readonly family: 'ipv4' | 'ipv6' | null
}

/**
 * Reads the SDP offer of an INVITE; null when the INVITE has none. `fault`: why none of its audio can be used. A host
 * name in c= is resolved only for an admitted call; until then the peer counts as where its SIP came from.
 */
function offeredIn(invite: InboundInvite): Offered | null | { readonly fault: string } {
  const { sdp } = invite.content()
  if (sdp === '') return null
  const reading = readSdp(sdp, () => invite.source.address)
  if ('refused' in reading) return { fault: reading.detail }
  const audio = reading.sdp.lines.filter(line => line.kind === 'audio' && line.port !== 0)
  const fault = reading.sdp.lines.find(line => line.kind === 'audio' && line.fault !== null)?.fault
  if (audio.length === 0 && fault) return { fault }
  const offer = {
    codecs: [...new Set(audio.flatMap(line => line.payloads.flatMap(payload => payload.codec?.name ?? [])))],
    sdes_srtp: audio.some(line => /SAVPF?$/i.test(line.protocol) && line.cryptos.length > 0),
  }
  return { offer, family: audio[0]?.family ?? null }
}

async function admitAndBegin(
  ctx: AdmissionContext,
  invite: InboundInvite,
  asked: Asked,
  offered: Offered | null,
  destination: Destination,
): Promise<void> {
  const sid = newId.call()
  const owner = ownerOf(asked.peer, destination)
  if (!owner) return refuse(ctx, invite, 'number_unallocated', { value: asked.called })
  const call = callRow(ctx, sid, invite, asked, owner)
  const callers_own = owner.foreign ? callersOwn(asked.peer) : null
  const callers = callers_own && callRow(ctx, sid, invite, asked, callers_own)
  const asks = requests(ctx, sid, owner.project_id, invite, asked, offered?.offer ?? null, destination)
  const { verstat } = asked
  const admitting = () => ctx.gate.admitCall(ctx.state.db, { call, callers, asks, verstat })
  const { row, decided, part, told: queued } = await ctx.gate.decide(admitting, late => undoLate(ctx, late))
  if (!decided.admitted) {
    const { code, headers } = sipRefusal(decided.reason, decided.facts, decided.sentence)
    ctx.log.info({ call_id: sid, trunk_id: row.trunk_id, reason: decided.reason, code }, 'call not admitted')
    notAdmitted(ctx, decided.reason, queued)
    const { Warning, ...others } = headers
    // The Warning reveals limits, usage and balance of the refusing side: neither carriers nor other tenants get it.
    const told = part !== 'inbound' || (asked.peer.kind !== 'carrier' && !owner.foreign)
    return invite.refuse(code, { headers: told ? { ...others, Warning } : others })
  }
  const session = await sessionFor(ctx, sid, row.project_id, destination)
  const own_limit = asked.peer.kind === 'trunk' ? asked.peer.trunk.max_call_duration_seconds : null
  if (!session) {
    await endUnplaced(ctx, row, { cause: 'media_unavailable' })
    return refuse(ctx, invite, 'media_unavailable')
  }
  const running = new InboundCall(ctx, {
    row,
    session,
    invite,
    limits: limitsOf(decided, own_limit || null),
    peer_trunk_id: asked.peer.kind === 'trunk' ? asked.peer.trunk.id : null,
    ...authOf(ctx, credentialsFor(ctx, asked.peer, invite.source.address)),
  })
  ctx.log.info(
    { call_id: sid, trunk_id: row.trunk_id, origin: row.origin, destination: destination.kind },
    'call admitted',
  )
  for (const detail of [...asked.notes, ...invite.content().notes]) running.event('warning', null, { detail })
  const policy = callerPolicy(asked.peer, invite.source.address, offered?.family ?? null)
  await running.begin(policy, planOf(ctx, sid, invite, asked, destination, decided, owner.foreign))
}

/** Opens the call's media, or shares that of the leg which the new caller is joined with. */
function sessionFor(ctx: AdmissionContext, sid: string, project_id: string, destination: Destination) {
  if (destination.kind !== 'replaced') return ctx.media.open(sid, project_id)
  const { session } = destination.replacement.stays.leg
  session.hold()
  return session
}

/** Ends a call that was admitted after its caller had been refused, and releases its resources. */
async function undoLate(ctx: AdmissionContext, { row, decided }: AdmittedCall): Promise<void> {
  if (!decided.admitted) return
  const end = { cause: 'not_admitted', reason: 'state_unavailable', sip_code: 503 } as const
  // If this fails, the sweep of unowned calls ends the call.
  await endUnplaced(ctx, row, end).catch(err => ctx.log.error({ err, call_id: row.sid }, 'a late admission stays'))
}

/** Returns the media policy of the caller's leg. Media may use another address family than SIP (RFC 6157). */
function callerPolicy(peer: Peer, address: string, family: Offered['family']): LegPolicy {
  if (peer.kind === 'client') return browserPolicy(address)
  const policy = peer.kind === 'trunk' ? trunkPolicy(peer.trunk, address) : carrierPolicy(peer.carrier, address)
  return family === null ? policy : { ...policy, family }
}

function planOf(
  ctx: AdmissionContext,
  sid: string,
  invite: InboundInvite,
  asked: Asked,
  destination: Destination,
  decided: Decided,
  foreign: boolean,
): Plan {
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

/** Returns an admission request for each side of the call: the caller's side first, then the number's route. */
function requests(
  ctx: AdmissionContext,
  call_sid: string,
  project_id: string,
  invite: InboundInvite,
  asked: Asked,
  offer: Ask['offer'],
  destination: Destination,
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

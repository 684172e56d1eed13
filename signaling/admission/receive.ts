import { newId } from '../../core/runtime/ids.ts'
import {
  type AdmittedCall,
  admitCall,
  type CallRow,
  type Decided,
  insertCall,
} from '../../core/state/calls/running-calls.ts'
import { browserPolicy } from '../b2bua/browser.ts'
import { InboundCall } from '../b2bua/inbound-call.ts'
import type { LegPolicy } from '../b2bua/media.ts'
import { authOf, carrierPolicy, trunkPolicy } from '../b2bua/routes.ts'
import { intervalTooSmall } from '../b2bua/session-timer.ts'
import type { InboundInvite } from '../drachtio/types.ts'
import type { DigestAuthenticator } from '../trunks/digest.ts'
import { limitsOf } from './admit-queued.ts'
import { asksOfInvite } from './asks-of-invite.ts'
import { type CallDestination, callersOwn, callRow, ownerOf, type PeerRequest } from './call-row.ts'
import type { AdmissionContext } from './context.ts'
import { destinationOf } from './destination.ts'
import { type Ask, DECIDES_WITHIN_MS } from './gate.ts'
import { type Offered, offeredIn } from './offer.ts'
import { type CallingPeer, credentialsFor, identify } from './peer.ts'
import { planOf } from './plan.ts'
import { type Reading, readInvite, verstatOf } from './read-invite.ts'
import { answerRefused, InviteRefused, refusedFor } from './refuse.ts'
import { replacedBy } from './replaced.ts'
import { endUnplaced } from './unplaced.ts'

/**
 * Handles INVITEs from the network in three steps: reads the request of a known peer, decides on the call, and begins
 * it. Each step returns what it found, or why there is no call.
 */
export async function receiveInvite(
  ctx: AdmissionContext,
  digest: DigestAuthenticator,
  invite: InboundInvite,
): Promise<void> {
  const peer = identify(ctx, digest, invite)
  const read = readRequest(ctx, invite, peer instanceof Promise ? await peer.catch(unclaimed) : peer)
  const outcome = read instanceof InviteRefused ? read : await callOf(ctx, invite, read)
  if (outcome instanceof InviteRefused) answerRefused(ctx, invite, outcome)
}

/** What the INVITE of a known peer asks for. */
interface Request {
  readonly asked: Reading
  readonly offered: Offered | null
  /** Null: a number of a foreign plan, which we can't call. */
  readonly destination: CallDestination | null
}

/** The state could not tell whether another machine has accepted the nonce. */
const unclaimed = (err: unknown): InviteRefused =>
  refusedFor('state_unavailable', { value: err instanceof Error ? err.message : 'unknown' })

function readRequest(
  ctx: AdmissionContext,
  invite: InboundInvite,
  peer: CallingPeer | InviteRefused,
): Request | InviteRefused {
  if (peer instanceof InviteRefused) return peer
  if (ctx.draining()) return refusedFor('draining')
  if (peer.kind === 'carrier' && !peer.carrier.enabled)
    return refusedFor('carrier_draining', { name: peer.carrier.name })
  if (!ctx.media.connected) return refusedFor('media_unavailable')
  const asked = readInvite(peer, invite)
  if (asked.max_forwards <= 0) return refusedFor('too_many_hops')
  if (comesBack(ctx, invite, asked)) return refusedFor('loop_detected', { value: asked.called })
  const min_se = intervalTooSmall(invite)
  if (min_se !== null) return new InviteRefused({ kind: 'sip', code: 422, headers: { 'Min-SE': min_se } })
  const { refused: body } = invite.content()
  if (body) return refusedFor('body_unsupported', { value: body.value }, { headers: body.headers })
  const offered = offeredIn(invite)
  if (offered instanceof InviteRefused) return offered
  if (asked.foreign_context !== null) return { asked, offered, destination: null }
  const replaces = invite.header('replaces') !== null
  const destination = replaces ? replacedBy(ctx, invite, peer) : destinationOf(ctx, asked)
  return destination instanceof InviteRefused ? destination : { asked, offered, destination }
}

/** Whether a target has returned our own call: it names one that is live here, with the same called number. */
function comesBack(ctx: AdmissionContext, invite: InboundInvite, asked: PeerRequest): boolean {
  const sid = invite.header('x-strowger-callsid')
  const running = sid === null ? undefined : ctx.calls.get(sid)
  return running !== undefined && running.row_now.to_number === (asked.called_e164 ?? asked.called)
}

/** Decides on a call and begins it. What fails unexpectedly is answered as the state's fault. */
async function callOf(
  ctx: AdmissionContext,
  invite: InboundInvite,
  { asked, offered, destination }: Request,
): Promise<InviteRefused | null> {
  if (!destination) return foreignNumber(ctx, invite, asked)
  try {
    const verstat = await verstatOf(ctx, invite, asked)
    const admitted = await admit(ctx, invite, { ...asked, verstat }, offered, destination)
    return admitted instanceof InviteRefused ? admitted : await begin(ctx, invite, admitted)
  } catch (err) {
    ctx.log.error({ err, sip_call_id: invite.call_id }, 'an INVITE could not be admitted')
    return refusedFor('state_unavailable', { value: err instanceof Error ? err.message : 'unknown' })
  }
}

/** Refuses a local number of a foreign plan. The caller's own project sees the call. */
async function foreignNumber(ctx: AdmissionContext, invite: InboundInvite, asked: Reading): Promise<InviteRefused> {
  const owner = callersOwn(asked.peer)
  try {
    if (owner) {
      const call = callRow(ctx, newId.call(), invite, asked, owner)
      const row = await insertCall(ctx.state.db, call, ctx.clock.now())
      await endUnplaced(ctx, row, { cause: 'not_admitted', reason: 'number_incomplete', sip_code: 484 })
    }
  } catch (err) {
    ctx.log.error({ err, sip_call_id: invite.call_id }, 'a refused call could not be kept')
  }
  return refusedFor('number_incomplete', { value: asked.called, limit: asked.foreign_context })
}

/** A call that has its row, its slots and its money. */
interface Admitted {
  readonly row: CallRow
  readonly decided: Decided
  readonly asked: PeerRequest
  readonly offered: Offered | null
  readonly destination: CallDestination
  /** What was asked of admission, by side. */
  readonly asks: readonly Ask[]
  /** Whether the caller belongs to another tenant. */
  readonly foreign: boolean
}

async function admit(
  ctx: AdmissionContext,
  invite: InboundInvite,
  asked: PeerRequest,
  offered: Offered | null,
  destination: CallDestination,
): Promise<Admitted | InviteRefused> {
  const sid = newId.call()
  const owner = ownerOf(asked.peer, destination)
  if (!owner) return refusedFor('number_unallocated', { value: asked.called })
  const call = callRow(ctx, sid, invite, asked, owner)
  const callers_own = owner.foreign ? callersOwn(asked.peer) : null
  const callers = callers_own && callRow(ctx, sid, invite, asked, callers_own)
  const asks = asksOfInvite(ctx, sid, owner.project_id, invite, asked, offered?.offer ?? null, destination)
  const { verstat } = asked
  const { row, decided, part, told } = await ctx.gate.decide(
    () => admitCall(ctx.state.db, { call, callers, verstat, ...ctx.gate.stamped(asks) }, DECIDES_WITHIN_MS),
    late => undoLate(ctx, late),
  )
  if (decided.admitted) return { row, decided, asked, offered, destination, asks, foreign: owner.foreign }
  if (told > 0) ctx.bus.ring('outbox')
  // Neither carriers nor other tenants learn limits, usage and balance of the side that refuses.
  const untold = part === 'inbound' && (asked.peer.kind === 'carrier' || owner.foreign)
  return refusedFor(decided.reason, decided.facts, { sentence: decided.sentence, untold, call: row })
}

/** Begins an admitted call. */
async function begin(ctx: AdmissionContext, invite: InboundInvite, admitted: Admitted): Promise<InviteRefused | null> {
  const { row, decided, asked, offered, destination, asks, foreign } = admitted
  const { sid, trunk_id, origin } = row
  const { peer } = asked
  const session = await sessionFor(ctx, sid, row.project_id, destination)
  if (!session) {
    await endUnplaced(ctx, row, { cause: 'media_unavailable' })
    return refusedFor('media_unavailable')
  }
  const running = new InboundCall(ctx, {
    row,
    session,
    invite,
    limits: limitsOf(decided, (peer.kind === 'trunk' && peer.trunk.max_call_duration_seconds) || null),
    peer_trunk_id: peer.kind === 'trunk' ? peer.trunk.id : null,
    ...authOf(ctx, credentialsFor(ctx, peer, invite.source.address)),
  })
  ctx.log.info({ call_id: sid, trunk_id, origin, destination: destination.kind }, 'call admitted')
  for (const detail of [...asked.notes, ...invite.content().notes]) running.event('warning', null, { detail })
  const policy = callerPolicy(peer, invite.source.address, offered?.family ?? null)
  await running.begin(policy, planOf(ctx, sid, invite, asked, destination, decided, foreign, asks))
  return null
}

/** Opens the call's media, or shares that of the leg which the new caller is joined with. */
function sessionFor(ctx: AdmissionContext, sid: string, project_id: string, destination: CallDestination) {
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
  await endUnplaced(ctx, row, end).catch(err =>
    ctx.log.error({ err, call_id: row.sid }, 'an admission that came too late could not be undone'),
  )
}

/** Returns the media policy of the caller's leg. Media may use another address family than SIP (RFC 6157). */
function callerPolicy(peer: CallingPeer, address: string, family: Offered['family']): LegPolicy {
  if (peer.kind === 'client') return browserPolicy(address)
  const policy = peer.kind === 'trunk' ? trunkPolicy(peer.trunk, address) : carrierPolicy(peer.carrier, address)
  return family === null ? policy : { ...policy, family }
}

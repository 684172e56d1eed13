import { newId } from '../../core/runtime/ids.ts'
import {
  type AdmittedCall,
  admitCall,
  type CallRow,
  type Decided,
  insertCall,
} from '../../core/state/calls/running-calls.ts'
import type { InboundInvite } from '../drachtio/types.ts'
import { asksOfInvite } from './asks-of-invite.ts'
import { type CallDestination, callersOwn, callRow, ownerOf, type PeerRequest } from './call-row.ts'
import type { AdmissionContext } from './context.ts'
import { type Ask, DECIDES_WITHIN_MS } from './gate.ts'
import type { Offered } from './offer.ts'
import { type Reading, verstatOf } from './read-invite.ts'
import type { InviteRequest } from './read-request.ts'
import { type InviteRefused, refusedFor } from './refuse.ts'
import { endUnplaced } from './unplaced.ts'

/** A call that has its row, its slots and its money. */
export interface AdmittedInvite {
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

/** Decides on the call of an INVITE, and stores it with the decision. @throws when the state cannot be written */
export async function decideInvite(
  ctx: AdmissionContext,
  invite: InboundInvite,
  { asked, offered, destination }: InviteRequest,
): Promise<AdmittedInvite | InviteRefused> {
  if (!destination) return foreignNumber(ctx, invite, asked)
  const verstat = await verstatOf(ctx, invite, asked)
  return admit(ctx, invite, { ...asked, verstat }, offered, destination)
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

async function admit(
  ctx: AdmissionContext,
  invite: InboundInvite,
  asked: PeerRequest,
  offered: Offered | null,
  destination: CallDestination,
): Promise<AdmittedInvite | InviteRefused> {
  const sid = newId.call()
  const owner = ownerOf(asked.peer, destination)
  if (!owner) return refusedFor('number_unallocated', { value: asked.called })
  const call = callRow(ctx, sid, invite, asked, owner)
  const callers_own = owner.foreign ? callersOwn(asked.peer) : null
  const callers = callers_own && callRow(ctx, sid, invite, asked, callers_own)
  const asks = asksOfInvite(ctx, sid, owner.project_id, invite, asked, offered?.offer ?? null, destination)
  const { verstat } = asked
  const { row, decided, part, queued } = await ctx.gate.decide(
    () => admitCall(ctx.state.db, { call, callers, verstat, ...ctx.gate.stamped(asks) }, DECIDES_WITHIN_MS),
    late => undoLate(ctx, late),
  )
  if (decided.admitted) return { row, decided, asked, offered, destination, asks, foreign: owner.foreign }
  if (queued > 0) ctx.bus.ring('outbox')
  // Neither carriers nor other tenants learn limits, usage and balance of the side that refuses.
  const untold = part === 'inbound' && (asked.peer.kind === 'carrier' || owner.foreign)
  return refusedFor(decided.reason, decided.facts, { sentence: decided.sentence, untold, call: row })
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

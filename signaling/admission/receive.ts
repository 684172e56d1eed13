import type { InboundInvite } from '../drachtio/types.ts'
import type { DigestAuthenticator } from '../trunks/digest.ts'
import { beginInvite } from './begin-invite.ts'
import type { AdmissionContext } from './context.ts'
import { decideInvite } from './decide-invite.ts'
import { identify } from './peer.ts'
import { readRequest } from './read-request.ts'
import { answerRefused, InviteRefused, refusedFor } from './refuse.ts'

/**
 * Handles an INVITE from the network: reads the request of a known peer, decides on the call, and begins it. Each step
 * returns what it found, or why there is no call. Only this function answers an INVITE that does not become a call.
 */
export async function receiveInvite(
  ctx: AdmissionContext,
  digest: DigestAuthenticator,
  invite: InboundInvite,
): Promise<void> {
  const refused = await takeSteps(ctx, digest, invite).catch((err: unknown) => {
    ctx.log.error({ err, sip_call_id: invite.call_id }, 'an INVITE could not be handled')
    return new InviteRefused({ kind: 'sip', code: 500 })
  })
  if (refused) answerRefused(ctx, invite, refused)
}

async function takeSteps(
  ctx: AdmissionContext,
  digest: DigestAuthenticator,
  invite: InboundInvite,
): Promise<InviteRefused | null> {
  const found = identify(ctx, digest, invite)
  // The state may have to tell whether another machine has accepted the nonce.
  const peer = found instanceof Promise ? await found.catch(stateFailed) : found
  if (peer instanceof InviteRefused) return peer
  const request = readRequest(ctx, invite, peer)
  if (request instanceof InviteRefused) return request
  try {
    const admitted = await decideInvite(ctx, invite, request)
    return admitted instanceof InviteRefused ? admitted : await beginInvite(ctx, invite, admitted)
  } catch (err) {
    ctx.log.error({ err, sip_call_id: invite.call_id }, 'an INVITE could not be admitted')
    return stateFailed(err)
  }
}

const stateFailed = (err: unknown): InviteRefused =>
  refusedFor('state_unavailable', { value: err instanceof Error ? err.message : 'unknown' })

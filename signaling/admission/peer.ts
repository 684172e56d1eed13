import { attribute, holdsAddress, projectOfClientDomain } from '../../core/domain/identity/index.ts'
import { hostOf, uriOf } from '../../core/domain/sip/address.ts'
import type { InboundInvite } from '../drachtio/types.ts'
import type { ClientOutcome, DigestAuthenticator, DigestOutcome } from '../trunks/digest.ts'
import {
  type CarrierConfig,
  holdsNumber,
  type SealedCredentials,
  type Target,
  type TrunkConfig,
} from '../trunks/snapshot.ts'
import type { AdmissionContext } from './context.ts'
import { InviteRefused, refusedFor } from './refuse.ts'

/** Identifies the sender of an INVITE. */

export type CallingPeer =
  | { readonly kind: 'trunk'; readonly trunk: TrunkConfig }
  | { readonly kind: 'carrier'; readonly carrier: CarrierConfig }
  /** A browser client. Its calls belong to the project, as those of automation do. */
  | { readonly kind: 'client'; readonly project_id: string; readonly client: string; readonly caller: string }

type Identified = CallingPeer | InviteRefused

/** Identifies the peer. Only the first use of a nonce that several machines accept has to wait. */
export function identify(
  ctx: AdmissionContext,
  digest: DigestAuthenticator,
  invite: InboundInvite,
): Identified | Promise<Identified> {
  const snapshot = ctx.snapshot()
  const { address } = invite.source
  // Check this before the sources: a browser may share its address with a trunk.
  const project_id = projectOfClientDomain(hostOf(invite.uri), ctx.config.domain)
  if (project_id !== null) return identifyClient(ctx, digest, invite, project_id)
  const found = attribute(snapshot.attribution, {
    address,
    hosts: [hostOf(invite.uri), hostOfTo(invite)],
    has_credentials: invite.header('authorization') !== null,
  })
  if (found.kind === 'ambiguous') return refusedFor('source_ambiguous', { value: address })
  if (found.kind === 'identified') {
    const trunk = found.owner.kind === 'trunk' ? snapshot.trunks.get(found.owner.id) : undefined
    if (trunk) return { kind: 'trunk', trunk }
    const carrier = found.owner.kind === 'carrier' ? snapshot.carriers.get(found.owner.id) : undefined
    if (carrier) return { kind: 'carrier', carrier }
  }
  const named = found.kind === 'challenge' ? found.named : null
  const outcome = digest.check(invite)
  if (outcome instanceof Promise) return outcome.then(checked => trunkOf(ctx, invite, named, checked))
  return trunkOf(ctx, invite, named, outcome)
}

/** Returns the trunk whose password the caller has proved. `named`: the only one that its address may prove. */
function trunkOf(
  ctx: AdmissionContext,
  invite: InboundInvite,
  named: { readonly id: string } | null,
  outcome: DigestOutcome,
): Identified {
  const { address } = invite.source
  if (outcome.kind === 'authenticated') {
    const known = ctx.snapshot().trunks.get(outcome.trunk_id)
    const trunk = named === null || named.id === known?.id ? known : undefined
    // A strict trunk may authenticate only from its own addresses (design section 4).
    if (trunk && (trunk.source_validation !== 'strict' || holdsAddress(trunk.source_index, address))) {
      greet(invite)
      return { kind: 'trunk', trunk }
    }
    return refusedFor('source_not_allowed', { value: address })
  }
  return new InviteRefused(outcome.kind === 'challenge' ? outcome : { kind: 'stranger' })
}

/**
 * Returns what answers a caller's challenges in its own dialog: the carrier's credentials, or those of the trunk's
 * target at that address. Another host of the trunk does not get to see a digest of them.
 */
export function credentialsFor(ctx: AdmissionContext, peer: CallingPeer, address: string): SealedCredentials | null {
  if (peer.kind === 'carrier') return peer.carrier.credentials
  if (peer.kind === 'client') return null
  const isAt = ({ id, uri }: Target): boolean => hostOf(uri) === address || ctx.health.address(id) === address
  return peer.trunk.targets.find(target => target.credentials !== null && isAt(target))?.credentials ?? null
}

function identifyClient(
  ctx: AdmissionContext,
  digest: DigestAuthenticator,
  invite: InboundInvite,
  project_id: string,
): Identified | Promise<Identified> {
  const outcome = digest.checkClient(invite, { project_id, auth_token: ctx.authToken(project_id) })
  if (outcome instanceof Promise) return outcome.then(checked => clientOf(ctx, invite, project_id, checked))
  return clientOf(ctx, invite, project_id, outcome)
}

function clientOf(
  ctx: AdmissionContext,
  invite: InboundInvite,
  project_id: string,
  outcome: ClientOutcome,
): Identified {
  if (outcome.kind === 'challenge') return new InviteRefused(outcome)
  if (outcome.kind === 'refused') return new InviteRefused({ kind: 'stranger' })
  greet(invite)
  const { client, caller, allowed } = outcome.token
  if (!allowed.includes('out'))
    return refusedFor('direction_not_allowed', {
      name: `the token of client "${client}"`,
      value: 'outbound',
      limit: 'inbound',
    })
  const owned = caller === null ? firstNumber(ctx, project_id) : caller
  // A holder of the auth token can put any caller into a client token. The project must own the number.
  if (owned === null || !holdsNumber(ctx.snapshot(), project_id, owned))
    return refusedFor('caller_not_owned', { value: owned ?? 'anonymous', limit: 'not a number of the project' })
  return { kind: 'client', project_id, client, caller: owned }
}

/** Sends a 100 after authentication. Until then the edge keeps no state for the INVITE and sends no 100 itself. */
function greet(invite: InboundInvite): void {
  void invite.progress(100)
}

/** Returns the project's lowest number, which a client presents when its token names no caller. */
function firstNumber(ctx: AdmissionContext, project_id: string): string | null {
  let first: string | null = null
  for (const number of ctx.snapshot().numbers.values())
    if (number.project_id === project_id && number.status === 'held' && (first === null || number.e164 < first))
      first = number.e164
  return first
}

const hostOfTo = (invite: InboundInvite): string => hostOf(uriOf(invite.header('to')))

import { applicationHeaders } from '../../core/domain/calls/custom-headers.ts'
import { isForeign } from '../../core/domain/calls/foreign.ts'
import type { CallRequest } from '../../core/domain/calls/request.ts'
import { sameTenant, type Tenant, type Verstat } from '../../core/domain/identity/index.ts'
import { hostOf } from '../../core/domain/sip/address.ts'
import { PIDF_TYPE } from '../../core/domain/sip/body.ts'
import type { Diverter } from '../../core/domain/sip/diversion.ts'
import { iso } from '../../core/runtime/clock.ts'
import { type NewCall, NOTHING_YET } from '../../core/state/calls/running-calls.ts'
import type { CallContext } from '../b2bua/context.ts'
import type { Replacement } from '../b2bua/replacement.ts'
import type { InboundInvite } from '../drachtio/types.ts'
import type { ApplicationConfig, NumberConfig, TrunkConfig } from '../trunks/snapshot.ts'
import type { Ask } from './gate.ts'
import type { CallingPeer } from './peer.ts'

/** Decides which project owns the call of an INVITE, and builds the call's row. */

/** A location is stored with the call and sent to its application. Those that devices send are below 3 KiB. */
const MAX_LOCATION_LENGTH = 8192

/** The facts of a peer's INVITE. */
export interface PeerRequest {
  readonly peer: CallingPeer
  /** User part of the request-URI, decoded. */
  readonly called: string
  readonly called_e164: string | null
  readonly caller: string
  /** The caller as the peer wrote it. The trunk's country decides how a national number is read. */
  readonly caller_given: string
  readonly caller_name: string | null
  readonly restricted: boolean
  readonly max_forwards: number
  /** Who diverted the call to us, the last one first. */
  readonly diverters: readonly Diverter[]
  /** The verification result of a carrier's signature; null when we do not verify. */
  readonly verstat: Verstat | null
  /** What was read otherwise than written, and what is not sent on: sentences for the call's events. */
  readonly notes: readonly string[]
}

/**
 * Where the call goes: to the application or trunk of one of our numbers, to the public network (`world`), or into a
 * call of the peer's own tenant, in place of one of its legs (`replaced`); `called` is then the number that stays.
 */
export type CallDestination =
  | { readonly kind: 'application'; readonly number: NumberConfig; readonly application: ApplicationConfig }
  | {
      readonly kind: 'delivery'
      readonly number: NumberConfig
      readonly trunk: TrunkConfig
      readonly service: Ask['service']
    }
  | { readonly kind: 'world'; readonly project_id: string; readonly trunk: TrunkConfig | null }
  | {
      readonly kind: 'replaced'
      readonly project_id: string
      readonly trunk: TrunkConfig
      readonly called: string
      readonly replacement: Replacement
    }

/** The project that owns a call, and the resources that the call belongs to. */
interface Owner {
  readonly project_id: string
  readonly direction: 'inbound' | 'outbound'
  readonly trunk_id: string | null
  readonly number_id: string | null
  readonly application: ApplicationConfig | null
  /** Whether the caller belongs to another tenant. */
  readonly foreign: boolean
}

/** Returns the owner of a call: the project that pays for it, or whose number is called. Null for an unowned number. */
export function ownerOf(peer: CallingPeer, destination: CallDestination): Owner | null {
  const caller = tenantOf(peer)
  const { kind } = destination
  const callers_trunk = peer.kind === 'trunk' ? peer.trunk.id : null
  if (kind === 'world' || kind === 'replaced') {
    const { project_id, trunk } = destination
    const trunk_id = callers_trunk ?? trunk?.id ?? null
    return { project_id, direction: 'outbound', trunk_id, number_id: null, application: null, foreign: false }
  }
  const { project_id, id: number_id } = destination.number
  if (project_id === null) return null
  const called = { project_id, subaccount_id: kind === 'delivery' ? destination.trunk.subaccount_id : null }
  // API keys of a subaccount can read the calls of its trunks, so the caller's trunk must be of the same tenant.
  const own_trunk = caller && sameTenant(caller, called) ? callers_trunk : null
  return {
    project_id,
    direction: 'inbound',
    trunk_id: kind === 'delivery' ? destination.trunk.id : own_trunk,
    number_id,
    application: kind === 'application' ? destination.application : null,
    foreign: isForeign(caller, called),
  }
}

/** Returns the caller's project as owner, for a call that the caller's own side refuses; null for a carrier. */
export function callersOwn(peer: CallingPeer): Owner | null {
  const caller = tenantOf(peer)
  const trunk_id = peer.kind === 'trunk' ? peer.trunk.id : null
  const { project_id } = caller ?? { project_id: null }
  if (project_id === null) return null
  return { project_id, direction: 'outbound', trunk_id, number_id: null, application: null, foreign: false }
}

/** Returns the tenant of a peer; null for a carrier, which belongs to no tenant. */
function tenantOf(peer: CallingPeer): Tenant | null {
  if (peer.kind === 'trunk') return peer.trunk
  return peer.kind === 'client' ? { project_id: peer.project_id, subaccount_id: null } : null
}

/** Returns the caller's location by value (RFC 6442 §4.1), as received. */
function locationIn(invite: InboundInvite): { pidf_lo?: string } {
  const found = invite.content().parts.find(({ type }) => type === PIDF_TYPE)
  return found && found.content.length <= MAX_LOCATION_LENGTH ? { pidf_lo: found.content } : {}
}

function requestOf(invite: InboundInvite, asked: PeerRequest, { application, foreign }: Owner): CallRequest {
  const sip = {
    domain: hostOf(invite.uri),
    username: asked.called,
    call_id: invite.call_id,
    source_ip: invite.source.address,
    headers: applicationHeaders(invite.headers),
    ...locationIn(invite),
    ...(asked.verstat ? { verstat: asked.verstat } : {}),
  }
  return {
    ...(application
      ? {
          status_callback: application.status_callback_url,
          status_callback_method: application.status_callback_method,
          status_callback_events: ['completed'],
        }
      : {}),
    ...(foreign ? {} : { sip }),
    ...(asked.restricted ? { restricted: true as const } : {}),
    max_forwards: asked.max_forwards,
    forwarded_from: asked.diverters.at(-1)?.number ?? null,
    ...(asked.diverters.length > 0 ? { diverters: asked.diverters } : {}),
    ...(asked.caller_name === null || asked.restricted ? {} : { caller_name: asked.caller_name }),
  }
}

export function callRow(
  ctx: CallContext,
  sid: string,
  invite: InboundInvite,
  asked: PeerRequest,
  owner: Owner,
): NewCall {
  const { peer } = asked
  const { project_id, direction, trunk_id, number_id, application, foreign } = owner
  const at = iso(ctx.clock.now())
  return {
    // Keep this spread first: V8 clones a leading spread at once, but copies a later one property by property.
    ...NOTHING_YET,
    sid,
    project_id,
    direction,
    trunk_id,
    number_id,
    account_sid: ctx.snapshot().accounts.get(project_id)?.account_sid ?? null,
    parent_call_sid: null,
    origin: peer.kind,
    from_number: peer.kind === 'client' && application && !foreign ? `client:${peer.client}` : asked.caller,
    to_number: asked.called_e164 ?? asked.called,
    status: 'ringing',
    carrier_id: peer.kind === 'carrier' ? peer.carrier.id : null,
    application_id: application?.id ?? null,
    sip_call_id: invite.call_id,
    source_ip: foreign ? null : invite.source.address,
    foreign_caller: foreign ? 1 : null,
    request: JSON.stringify(requestOf(invite, asked, owner)),
    node_id: ctx.node_id,
    queued_at: at,
    initiated_at: at,
  }
}

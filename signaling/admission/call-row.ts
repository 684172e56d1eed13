import { customHeaders } from '../../core/domain/calls/custom-headers.ts'
import { isForeign } from '../../core/domain/calls/foreign.ts'
import type { CallRequest } from '../../core/domain/calls/request.ts'
import { sameTenant, type Tenant, type Verstat } from '../../core/domain/identity/index.ts'
import { iso } from '../../core/runtime/clock.ts'
import { type NewCall, NOTHING_YET } from '../../core/state/calls/running-calls.ts'
import type { CallContext } from '../b2bua/context.ts'
import type { InboundInvite } from '../drachtio/types.ts'
import { hostOf } from '../drachtio/uri.ts'
import type { ApplicationConfig, NumberConfig, TrunkConfig } from '../trunks/snapshot.ts'
import type { Ask } from './gate.ts'
import type { Peer } from './peer.ts'

/** Whose call an INVITE becomes, and what is kept of it. */

/** What a peer's INVITE asks for. */
export interface Asked {
  readonly peer: Peer
  /** User part of the request-URI, decoded. */
  readonly called: string
  readonly called_e164: string | null
  readonly caller: string
  /** As the peer wrote it: the trunk's country decides what a national number is. */
  readonly caller_given: string
  readonly caller_name: string | null
  readonly restricted: boolean
  readonly max_forwards: number
  readonly diversion: string | null
  /** Of a carrier's signature of the caller; null when none is looked for. */
  readonly verstat: Verstat | null
}

/** Where the call goes: our number's application or trunk, or the world. */
export type Destination =
  | { readonly kind: 'application'; readonly number: NumberConfig; readonly application: ApplicationConfig }
  | {
      readonly kind: 'delivery'
      readonly number: NumberConfig
      readonly trunk: TrunkConfig
      readonly service: Ask['service']
    }
  | { readonly kind: 'world'; readonly project_id: string; readonly trunk: TrunkConfig | null }

/** Whose a call is, and what of it. */
interface Owner {
  readonly project_id: string
  readonly direction: 'inbound' | 'outbound'
  readonly trunk_id: string | null
  readonly number_id: string | null
  readonly application: ApplicationConfig | null
  /** Whether another tenant calls. */
  readonly foreign: boolean
}

/** Who pays for the call, or is called. */
export function ownerOf(peer: Peer, destination: Destination): Owner | null {
  const caller = tenantOf(peer)
  const { kind } = destination
  const callers_trunk = peer.kind === 'trunk' ? peer.trunk.id : null
  if (kind === 'world') {
    const { project_id, trunk } = destination
    const trunk_id = callers_trunk ?? trunk?.id ?? null
    return { project_id, direction: 'outbound', trunk_id, number_id: null, application: null, foreign: false }
  }
  const { project_id, id: number_id } = destination.number
  if (project_id === null) return null
  const called = { project_id, subaccount_id: kind === 'delivery' ? destination.trunk.subaccount_id : null }
  // The keys of a subaccount read the calls of its trunks.
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

/** The caller's project, of a call that its own side refused. */
export function callersOwn(peer: Peer): Owner | null {
  const caller = tenantOf(peer)
  const trunk_id = peer.kind === 'trunk' ? peer.trunk.id : null
  const { project_id } = caller ?? { project_id: null }
  if (project_id === null) return null
  return { project_id, direction: 'outbound', trunk_id, number_id: null, application: null, foreign: false }
}

/** Null for carriers: they are nobody's. */
function tenantOf(peer: Peer): Tenant | null {
  if (peer.kind === 'trunk') return peer.trunk
  return peer.kind === 'client' ? { project_id: peer.project_id, subaccount_id: null } : null
}

function requestOf(invite: InboundInvite, asked: Asked, { application, foreign }: Owner): CallRequest {
  const sip = {
    domain: hostOf(invite.uri),
    username: asked.called,
    call_id: invite.call_id,
    source_ip: invite.source.address,
    headers: customHeaders(invite.headers),
    ...(asked.restricted ? { restricted: true as const } : {}),
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
    forwarded_from: asked.diversion,
  }
}

export function callRow(ctx: CallContext, sid: string, invite: InboundInvite, asked: Asked, owner: Owner): NewCall {
  const { peer } = asked
  const { project_id, direction, trunk_id, number_id, application, foreign } = owner
  const at = iso(ctx.clock.now())
  return {
    // First: V8 copies it as a whole there, and property by property behind others.
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
    foreign_caller: foreign ? 1 : null,
    request: JSON.stringify(requestOf(invite, asked, owner)),
    node_id: ctx.node_id,
    queued_at: at,
    initiated_at: at,
  }
}

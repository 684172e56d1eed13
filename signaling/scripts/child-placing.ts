import type { DialChild } from '../../markup/interpreter/types.ts'
import type { Leg } from '../b2bua/leg.ts'
import type { OutboundCall } from '../b2bua/outbound-call.ts'
import type { OutboundWatcher } from '../b2bua/outbound-watcher.ts'
import type { ScriptedCall } from '../b2bua/scripted-call.ts'
import type { ApplicationCall } from './application-call.ts'

/** The interface by which scripts have calls placed and referrals admitted; `admission/` implements it. */

export interface NotPlaced {
  readonly refused: { readonly sip_code: number | null; readonly number: number | null; readonly detail: string }
}

export interface ChildRequest {
  readonly command: DialChild
  /** The leg whose codecs the child's offer puts first. */
  readonly prefer: Leg
  readonly created: (call: OutboundCall | ApplicationCall) => void
  readonly watcher: OutboundWatcher
}

export interface ChildPlacing {
  /** Places a child with its own row, in its parent's media session. Returns null, or why it was not placed. */
  place(parent: ScriptedCall, asked: ChildRequest): Promise<NotPlaced | null>
  /** Returns null when the peer of a leg may be asked to call this SIP URI, or why it may not. */
  refer(parent: ScriptedCall, uri: string): Promise<NotPlaced | null>
}

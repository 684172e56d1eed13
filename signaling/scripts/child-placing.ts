import type { DialChild } from '../../markup/interpreter/types.ts'
import type { Call } from '../b2bua/call.ts'
import type { Leg } from '../b2bua/leg.ts'
import type { OutboundCall, OutboundWatcher } from '../b2bua/outbound-call.ts'

/** What a Dial asks of whoever places its children; `admission/` implements it. */

export interface NotPlaced {
  readonly refused: { readonly sip_code: number | null; readonly number: number | null; readonly detail: string }
}

export interface ChildAsked {
  readonly command: DialChild
  /** The leg whose codecs the child's offer puts first. */
  readonly prefer: Leg
  readonly created: (call: OutboundCall) => void
  readonly watcher: OutboundWatcher
}

export interface ChildPlacing {
  /** A row of its own, in its parent's media session. */
  place(parent: Call, asked: ChildAsked): Promise<NotPlaced | null>
}

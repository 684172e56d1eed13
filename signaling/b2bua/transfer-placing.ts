import type { Reason } from '../../core/domain/reasons/index.ts'
import type { Call, Party } from './call.ts'
import type { OutboundWatcher } from './outbound-call.ts'
import type { ReferTarget } from './refer-to.ts'

/** What a transfer asks of whoever places its target; `admission/` implements it. */

export interface TransferAsked {
  readonly target: ReferTarget
  readonly transferor: Party
  readonly transferee: Party
  /** The transferor's trunk, which pays. */
  readonly trunk_id: string
  readonly watcher: OutboundWatcher
  readonly created: (child: Call) => void
}

export type TransferPlaced =
  | { readonly kind: 'placed' }
  | { readonly kind: 'refused'; readonly sip_code: number; readonly reason: Reason }

export interface TransferPlacing {
  place(asked: TransferAsked): Promise<TransferPlaced>
}

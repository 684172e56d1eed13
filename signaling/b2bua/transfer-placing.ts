import type { Reason } from '../../core/domain/reasons/index.ts'
import type { Call, Party } from './call.ts'
import type { OutboundWatcher } from './outbound-watcher.ts'
import type { ReferTarget } from './refer-to.ts'

/** The interface by which a transfer has its target called; `admission/` implements it. */

export interface TransferRequest {
  readonly target: ReferTarget
  readonly transferor: Party
  readonly transferee: Party
  /** The transferor's trunk, which pays for the new call. */
  readonly trunk_id: string
  readonly watcher: OutboundWatcher
  readonly created: (child: Call) => void
}

export type TransferPlaced =
  | { readonly kind: 'placed' }
  | { readonly kind: 'refused'; readonly sip_code: number; readonly reason: Reason }

export interface TransferPlacing {
  place(asked: TransferRequest): Promise<TransferPlaced>
}

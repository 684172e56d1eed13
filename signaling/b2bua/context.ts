import type { Prepaid } from './call-time.ts'
import type { CallRegistry } from './registry.ts'
import type { PolicyRecorder, Scripts } from './script-host.ts'
import type { NodeServices } from './services.ts'
import type { TransferPlacing } from './transfer-placing.ts'

/**
 * The services that every call of a node uses. The layers above implement some of them: they run scripts, record, place
 * the target of a transfer and reserve more money. This layer owns those interfaces, and `node.ts` wires them
 * (docs/architecture.md).
 */
export interface CallContext extends NodeServices {
  readonly calls: CallRegistry
  readonly scripts: Scripts
  readonly recording: PolicyRecorder
  readonly transfers: TransferPlacing
  readonly prepaid: Prepaid
}

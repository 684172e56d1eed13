import type { Bus } from '../../core/runtime/bus.ts'
import type { Clock } from '../../core/runtime/clock.ts'
import type { Config } from '../../core/runtime/config.ts'
import type { Log } from '../../core/runtime/log.ts'
import type { State } from '../../core/state/index.ts'
import type { SipStack } from '../drachtio/types.ts'
import type { TargetHealth } from '../trunks/health.ts'
import type { Registrar } from '../trunks/registrar.ts'
import type { Snapshot } from '../trunks/snapshot.ts'
import type { Stir } from '../trunks/stir.ts'
import type { WaysOut } from '../trunks/ways-out.ts'
import type { MediaHub } from './media.ts'
import type { CallMetrics } from './metrics.ts'
import type { CallRegistry } from './registry.ts'
import type { PolicyRecorder, Scripts } from './script-host.ts'
import type { TransferPlacing } from './transfer-placing.ts'

/** Reserves money for more time of a call that is paid for as it runs. */
interface Prepaid {
  extend(call: {
    readonly call_sid: string
    readonly elapsed_seconds: number
  }): Promise<{ readonly paid_until_seconds: number | null; readonly exhausted: boolean }>
}

/**
 * The services that every call of a node uses. The layers above implement some of them: they run scripts, record, place
 * the target of a transfer and reserve more money. This layer owns those interfaces, and `node.ts` wires them (0634).
 */
export interface CallContext {
  readonly node_id: string
  readonly machine_id: string
  readonly config: Config
  readonly clock: Clock
  readonly log: Log
  readonly bus: Bus
  readonly state: State
  readonly sip: SipStack
  readonly media: MediaHub
  readonly metrics: CallMetrics
  readonly calls: CallRegistry
  readonly health: TargetHealth
  readonly registrar: Registrar
  /** Resolves the addresses of our requests and checks that we may send there. */
  readonly ways: WaysOut
  /** Signs and verifies callers. */
  readonly stir: Stir
  readonly scripts: Scripts
  readonly recording: PolicyRecorder
  readonly transfers: TransferPlacing
  readonly prepaid: Prepaid
  snapshot(): Snapshot
  /** Whether the node refuses new calls; the live ones continue. */
  draining(): boolean
}

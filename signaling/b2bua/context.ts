import type { Bus } from '../../core/runtime/bus.ts'
import type { Clock } from '../../core/runtime/clock.ts'
import type { Config } from '../../core/runtime/config.ts'
import type { Log } from '../../core/runtime/log.ts'
import type { VoiceRequester } from '../../core/runtime/voice-request.ts'
import type { State } from '../../core/state/index.ts'
import type { AdmissionGate } from '../admission/gate.ts'
import type { SipStack } from '../drachtio/types.ts'
import type { NodeMetrics } from '../metrics.ts'
import type { Queues } from '../scripts/queues.ts'
import type { Rooms } from '../scripts/rooms.ts'
import type { TargetHealth } from '../trunks/health.ts'
import type { Registrar } from '../trunks/registrar.ts'
import type { Snapshot } from '../trunks/snapshot.ts'
import type { Stir } from '../trunks/stir.ts'
import type { WaysOut } from '../trunks/ways-out.ts'
import type { MediaHub } from './media.ts'
import type { CallRegistry } from './registry.ts'

/** What every call of a node works with. */
export interface Context {
  readonly node_id: string
  readonly config: Config
  readonly clock: Clock
  readonly log: Log
  readonly bus: Bus
  readonly state: State
  readonly sip: SipStack
  readonly media: MediaHub
  readonly voice: VoiceRequester
  readonly gate: AdmissionGate
  readonly metrics: NodeMetrics
  readonly calls: CallRegistry
  readonly health: TargetHealth
  readonly registrar: Registrar
  /** Resolves and judges whatever address a request of ours goes to. */
  readonly ways: WaysOut
  /** Signs and verifies callers. */
  readonly stir: Stir
  readonly rooms: Rooms
  readonly queues: Queues
  snapshot(): Snapshot
  /** New calls are refused; those that run go on. */
  draining(): boolean
  /** The account's token in force now; null when the project has no active account. */
  authToken(project_id: string): string | null
}

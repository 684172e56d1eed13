import type { Bus } from '../../core/runtime/bus.ts'
import type { Clock } from '../../core/runtime/clock.ts'
import type { Config } from '../../core/runtime/config.ts'
import type { Log } from '../../core/runtime/log.ts'
import type { State } from '../../core/state/index.ts'
import type { SipStack } from '../drachtio/types.ts'
import type { TargetHealth } from '../trunks/health.ts'
import type { PeerAddresses } from '../trunks/peer-addresses.ts'
import type { Registrar } from '../trunks/registrar.ts'
import type { Shares } from '../trunks/shares.ts'
import type { Snapshot, TrunkConfig } from '../trunks/snapshot.ts'
import type { Stir } from '../trunks/stir.ts'
import type { MediaHub } from './media.ts'
import type { CallMetrics } from './metrics.ts'
import type { UnwrittenEnds } from './unwritten-ends.ts'

/** What one leg uses of its node. */
export interface LegServices {
  readonly clock: Clock
  readonly sip: Pick<SipStack, 'invite'>
  readonly peer_addresses: Pick<PeerAddresses, 'mediaAddress'>
  readonly metrics: Pick<CallMetrics, 'refusals'>
  snapshot(): { readonly trunks: ReadonlyMap<string, LegTrunk> }
}

/** What a leg asks of a trunk: whose it is, and from where its peer may act. */
type LegTrunk = Pick<TrunkConfig, 'project_id' | 'subaccount_id' | 'auth_mode'> & {
  readonly targets: readonly { readonly uri: string }[]
}

/** The services of a node that know no calls. Legs, routes and hunts need nothing else. */
export interface NodeServices {
  readonly node_id: string
  readonly machine_id: string
  readonly config: Config
  readonly clock: Clock
  readonly log: Log
  readonly bus: Bus
  readonly state: State
  /** Ends of calls that the state could not take yet. */
  readonly ends: UnwrittenEnds
  readonly sip: SipStack
  readonly media: MediaHub
  readonly metrics: CallMetrics
  readonly health: TargetHealth
  readonly registrar: Registrar
  /** Which of several targets by weight is next. */
  readonly shares: Shares
  /** Resolves the addresses of our requests and checks that we may send there. */
  readonly peer_addresses: PeerAddresses
  /** Signs and verifies callers. */
  readonly stir: Stir
  snapshot(): Snapshot
  /** Whether the node refuses new calls; the live ones continue. */
  draining(): boolean
}

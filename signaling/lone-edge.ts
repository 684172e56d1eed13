import type { Clock } from '../core/runtime/clock.ts'
import type { Log } from '../core/runtime/log.ts'
import type { Machine } from '../core/runtime/machine.ts'
import type { State } from '../core/state/index.ts'
import { HEARTBEAT_MS, LOST_AFTER_MS, tellLink } from '../core/state/nodes/nodes.ts'
import type { EdgeServer } from './serve-edge.ts'

/**
 * Announces the edge of a machine without signaling, as long as it runs: signaling of other machines looks for it. An
 * edge that starts again keeps its row without heartbeats. Otherwise the edges of other machines would close their
 * links to it when it is back already, and drop what belongs to its calls until they hear of it again. `stop` takes the
 * announcement back.
 */
export function announceEdge(
  edge: Pick<EdgeServer, 'connected'>,
  { state, machine, clock, log }: { state: State; machine: Machine; clock: Clock; log: Log },
): { stop(): Promise<void> } {
  const row = { id: `${machine.machine_id}-edge`, kind: 'edge', ...machine, pid: process.pid } as const
  let writing: Promise<void> | null = null
  let connected_ms = clock.monotonic_ms()
  const tell = (up: boolean): Promise<void> =>
    tellLink(state.db, row, up, clock.now()).catch(err =>
      log.error({ err }, 'whether the edge is connected was not saved'),
    )
  const beat = clock.every(HEARTBEAT_MS, () => {
    const now_ms = clock.monotonic_ms()
    if (edge.connected) connected_ms = now_ms
    else if (now_ms - connected_ms < LOST_AFTER_MS) return
    writing ??= tell(edge.connected).finally(() => {
      writing = null
    })
  })
  return {
    async stop() {
      beat.cancel()
      await writing
      await tell(false)
    },
  }
}

import type { Clock, Timer } from '../../core/runtime/clock.ts'
import type { AdmissionRequest } from '../../core/state/calls/leases.ts'

/** A request for admission, to which the gate adds the node and the time. */
export type Ask = Omit<AdmissionRequest, 'node_id' | 'now_ms'>

/** An admission has timed out, or was not started because an earlier one is overdue. */
export class StateStalled extends Error {
  override readonly name = 'StateStalled'
  constructor(waited_ms: number) {
    super(`an admission has waited for ${Math.round(waited_ms)} ms`)
  }
}

/** Bounds an admission, so that a caller gets a 503 within 2 s while the state stalls. Its peer can then fail over. */
export const DECIDES_WITHIN_MS = 1500

/** Bounds the admissions of a node, and says in whose name and when they are asked. */
export interface AdmissionGate {
  /**
   * Runs the transaction of an admission. Throws StateStalled when it takes too long, and immediately while an earlier
   * one is overdue. `undo` receives the result of a transaction that completes after the timeout.
   */
  decide<T>(transaction: () => Promise<T>, undo: (late: T) => Promise<void>): Promise<T>
  /** Whether an admission is overdue: further ones are refused at once. */
  readonly stalls: boolean
  /** Adds the node and the time to requests. */
  stamped(asks: readonly Ask[]): { readonly requests: readonly AdmissionRequest[]; readonly now_ms: number }
}

export function createAdmissionGate(node_id: string, clock: Clock): AdmissionGate {
  /** The start times of the running transactions, oldest first. */
  const running = new Set<{ readonly since_ms: number }>()
  /** How long the oldest one has waited, when that is too long. */
  const overdueMs = (now_ms: number): number | null => {
    const [oldest] = running
    return oldest && now_ms - oldest.since_ms > DECIDES_WITHIN_MS ? now_ms - oldest.since_ms : null
  }
  return {
    get stalls() {
      return overdueMs(clock.monotonic_ms()) !== null
    },
    async decide(transaction, undo) {
      const now_ms = clock.monotonic_ms()
      const overdue_ms = overdueMs(now_ms)
      if (overdue_ms !== null) throw new StateStalled(overdue_ms)
      const mine = { since_ms: now_ms }
      running.add(mine)
      const decided = transaction().finally(() => running.delete(mine))
      const stalled = Symbol()
      let timer: Timer | undefined
      const deadline = new Promise<typeof stalled>(resolve => {
        timer = clock.after(DECIDES_WITHIN_MS, () => resolve(stalled))
      })
      const first = await Promise.race([decided, deadline]).finally(() => timer?.cancel())
      if (first !== stalled) return first
      // A transaction that fails later leaves nothing to undo; its caller has been refused already.
      decided.then(undo, () => undefined)
      throw new StateStalled(DECIDES_WITHIN_MS)
    },
    stamped(asks) {
      const now_ms = clock.now()
      return { requests: asks.map(ask => ({ ...ask, node_id, now_ms })), now_ms }
    },
  }
}

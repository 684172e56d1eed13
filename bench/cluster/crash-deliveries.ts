import { callbackAttempted, takeDueCallbacks } from '../../core/state/delivery/outbox-delivery.ts'
import { isPassing, type State } from '../../core/state/index.ts'

// Callbacks of the histories with crashes: who delivers them, and in which order they arrived.

export const AGAIN_MS = 50
/** Longer than a living process may be kept from its work here. Those of a killed one are freed by its successor. */
const LEASE_MS = 60_000
const AT_ONCE = 20

export const rest = (): Promise<void> => new Promise(resolve => setTimeout(resolve, AGAIN_MS))

/** Repeats what the state could not take for a while, as calls do. */
export async function insistently<T>(work: () => Promise<T>): Promise<T> {
  for (;;)
    try {
      return await work()
    } catch (error) {
      if (!isPassing(error)) throw error
      await rest()
    }
}

/**
 * Delivers callbacks that are due, as a control process does, but to `told`: which one of which call, and when, on the
 * clock that all processes of the machine share. Returns how many there were.
 */
export async function deliver(state: State, by: string, told: (id: string) => void): Promise<number> {
  const taking = { by, now_ms: Date.now(), lease_ms: LEASE_MS, limit: AT_ONCE, but_not: [], under_way: [] }
  const due = await insistently(() => takeDueCallbacks(state.db, taking))
  for (const callback of due) {
    const { SequenceNumber } = JSON.parse(callback.parameters)
    told(JSON.stringify([callback.ordering_key, Number(SequenceNumber), String(process.hrtime.bigint())]))
    const attempted = { attempts: 1, status: 200, error: null, next: 'delivered' } as const
    await insistently(() => callbackAttempted(state.db, callback, attempted))
  }
  return due.length
}

/** Names the keys whose callbacks did not arrive in their order. The latest may have come more than once. */
export function outOfOrder(told: readonly string[]): string[] {
  const deliveries = told.map(id => JSON.parse(id) as readonly [key: string, sequence: number, at: string])
  deliveries.sort(([, , one], [, , other]) => (BigInt(one) < BigInt(other) ? -1 : 1))
  const latest = new Map<string, number>()
  const wrong = new Set<string>()
  for (const [key, sequence] of deliveries) {
    const before = latest.get(key) ?? -1
    if (sequence !== before && sequence !== before + 1) wrong.add(key)
    latest.set(key, sequence)
  }
  return [...wrong]
}

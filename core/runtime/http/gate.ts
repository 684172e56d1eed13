import { HttpError } from './failure.ts'

/** Limits concurrent exchanges, in total and per origin: a slow origin delays only its own callers. */
export interface Gate {
  /**
   * Waits for a slot and resolves with the function that returns it. Rejects when `signal` aborts the wait, or at once
   * when the total is reached.
   */
  enter(origin: string, signal: AbortSignal): Promise<() => void>
  in_flight(): number
  waiting(): number
}

interface Lane {
  running: number
  readonly queue: Set<() => void>
}

export function createGate(max_total: number, max_per_origin: number): Gate {
  const lanes = new Map<string, Lane>()
  let total = 0
  let waiting = 0

  const leave = (origin: string, lane: Lane): void => {
    const [next] = lane.queue
    if (next === undefined) lane.running--
    else next()
    if (lane.running === 0) lanes.delete(origin)
  }

  const turn = (lane: Lane, signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      const settle = (finish: () => void) => (): void => {
        lane.queue.delete(go)
        waiting--
        signal.removeEventListener('abort', stop)
        finish()
      }
      const go = settle(resolve)
      const stop = settle(() => reject(signal.reason))
      lane.queue.add(go)
      waiting++
      signal.addEventListener('abort', stop)
    })

  return {
    async enter(origin, signal) {
      if (signal.aborted) throw signal.reason
      if (total >= max_total) throw new HttpError('network', `more than ${max_total} requests are under way`)
      const lane = lanes.get(origin) ?? { running: 0, queue: new Set() }
      lanes.set(origin, lane)
      total++
      try {
        if (lane.running < max_per_origin) lane.running++
        else await turn(lane, signal)
      } catch (reason) {
        total--
        throw reason
      }
      let left = false
      return () => {
        if (left) return
        left = true
        total--
        leave(origin, lane)
      }
    },
    in_flight: () => total - waiting,
    waiting: () => waiting,
  }
}

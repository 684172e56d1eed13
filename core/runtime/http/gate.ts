import { ProjectPlaces } from '../project-places.ts'
import { HttpError } from './failure.ts'

/**
 * Limits concurrent exchanges, in total and of each project to an origin: a slow origin delays only its own callers,
 * and no project takes the places of another one there. Of the total a project has a share, whether its exchanges run
 * or wait.
 */
export interface Gate {
  /**
   * Waits for a slot and resolves with the function that returns it. Rejects when `signal` aborts the wait, or at once
   * when the total or the share of the project is reached.
   */
  enter(origin: string, signal: AbortSignal, project_id?: string): Promise<() => void>
  in_flight(): number
  waiting(): number
}

interface Lane {
  running: number
  readonly queue: Set<() => void>
}

export function createGate(max_total: number, max_per_origin: number): Gate {
  const lanes = new Map<string, Lane>()
  const places = new ProjectPlaces(max_total)
  let total = 0
  let waiting = 0

  const leave = (name: string, lane: Lane): void => {
    const [next] = lane.queue
    if (next === undefined) lane.running--
    else next()
    if (lane.running === 0) lanes.delete(name)
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
    async enter(origin, signal, project_id) {
      if (signal.aborted) throw signal.reason
      if (total >= max_total) throw new HttpError('network', `more than ${max_total} requests are under way`)
      if (project_id !== undefined && !places.take(project_id))
        throw new HttpError('network', 'the project has its share of the requests that may be under way')
      const end = (): void => {
        total--
        if (project_id !== undefined) places.give(project_id)
      }
      const name = `${project_id ?? ''} ${origin}`
      const lane = lanes.get(name) ?? { running: 0, queue: new Set() }
      lanes.set(name, lane)
      total++
      try {
        if (lane.running < max_per_origin) lane.running++
        else await turn(lane, signal)
      } catch (reason) {
        end()
        throw reason
      }
      let left = false
      return () => {
        if (left) return
        left = true
        end()
        leave(name, lane)
      }
    },
    in_flight: () => total - waiting,
    waiting: () => waiting,
  }
}

import type { Breathe } from '../../core/domain/rating/index.ts'
import { breathe } from '../../core/runtime/breathe.ts'
import { wayOf } from '../../core/runtime/give-way.ts'
import { Refused, refuse } from './reply.ts'

/** Computations that wait or run, of one caller and together. Each waits with its request's body in memory. */
const MOST = { of_one: 2, together: 8 } as const
/** Others have the cores, when they need them, for so many times as long as a computation takes. */
const WAY_TIMES = 3

/**
 * The long computations of requests: those that breathe. One of them goes on at a time, so that other requests wait
 * for one slice at most, however many lists are sent at once.
 */
export interface Computations {
  /** Runs `work`, whose first breath waits for its turn. @throws Refused when too many wait */
  run<T>(caller_id: string, work: (breathe: Breathe) => Promise<T>): Promise<T>
}

export function createComputations(): Computations {
  /** The one that goes on, and those behind it. */
  const line: { readonly caller_id: string; begin(): void }[] = []

  const turn = (caller_id: string): Promise<() => void> => {
    const own = line.filter(one => one.caller_id === caller_id).length
    if (own >= MOST.of_one || line.length >= MOST.together)
      throw new Refused(
        refuse('rate_limited', { value: `${own} long computations of this caller wait or run, ${line.length} in all` }),
      )
    return new Promise(resolve => {
      const leave = (): void => {
        line.shift()
        line[0]?.begin()
      }
      line.push({ caller_id, begin: () => resolve(leave) })
      if (line.length === 1) line[0]?.begin()
    })
  }

  return {
    async run(caller_id, work) {
      const taken: (() => void)[] = []
      const giveWay = wayOf(WAY_TIMES)
      let begun_ms = performance.now()
      try {
        return await work(async () => {
          const took_ms = performance.now() - begun_ms
          if (taken.length === 0) taken.push(await turn(caller_id))
          await breathe()
          await giveWay(took_ms)
          begun_ms = performance.now()
        })
      } finally {
        for (const leave of taken) leave()
      }
    },
  }
}

import type { Query } from '../query.ts'
import type { LevelLimits } from './levels.ts'
import { type ExtendInput, type Extension, extend, type Release, type ReleaseInput, release } from './settle.ts'
import { levelUsage, type SlotUsage, takeSlots, type UseTimes } from './slots.ts'
import { countHour, holdMoney, pruneHours } from './spend.ts'
import type { Taken } from './tally.ts'

/**
 * Slots, calls per second and money at each level of a call. Every statement that counts them is behind this port
 * (decision 0641). Takes are conditional: when the facts behind an admission have changed, they throw FactsChanged and
 * the procedure runs again.
 */
interface Ceilings {
  /** Reads the usage of each level's ceilings. */
  usage(query: Query, limits: readonly LevelLimits[], times: UseTimes): SlotUsage
  /** Takes a slot at each level and reserves the price of the first increment. */
  take(query: Query, taken: Taken): void
  /** Reserves money for the next increments of a running call, as far as caps and balance allow. */
  extend(query: Query, input: ExtendInput): Extension
  /** Releases the slots of a call and settles its money. Idempotent. */
  release(query: Query, input: ReleaseInput): Release
  /** Deletes spend of past hours. Returns the number of rows. */
  prune(query: Query): number
}

/** Implements the port with counters in rows of the state. */
export const ceilings: Ceilings = {
  usage: levelUsage,
  take(query, taken) {
    const { usage, second, money } = taken
    if (query.tally?.take(taken)) {
      if (money) countHour(query, money)
      return
    }
    takeSlots(query, usage, second)
    if (money) holdMoney(query, money)
  },
  extend,
  release,
  prune: pruneHours,
}

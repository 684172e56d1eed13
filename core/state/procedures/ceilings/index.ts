import type { Query } from '../admission/steps.ts'
import type { LevelLimits } from './levels.ts'
import { type ExtendInput, type Extension, extend, type Release, type ReleaseInput, release } from './settle.ts'
import { takeSlots, type Usage, type UseTimes, usage } from './slots.ts'
import { holdMoney, pruneHours, type SpendChange } from './spend.ts'
import type { Second } from './window.ts'

/**
 * Slots, calls per second and money, at each level of a call: every statement of a procedure that counts them is behind
 * this port (decision 0641). What takes is conditional: when the facts that a call was admitted by have changed, it
 * throws FactsChanged, and the procedure is run again.
 */
interface Ceilings {
  /** What is used of each level's ceilings. */
  usage(query: Query, limits: readonly LevelLimits[], times: UseTimes): Usage
  /** Takes a slot at each level, and holds the money of the first increment. */
  take(query: Query, taken: Taken): void
  /** Holds money for the next increments of a running call, as far as caps and balance allow. */
  extend(query: Query, input: ExtendInput): Extension
  /** Gives the slots of a call back and settles its money; safe to repeat. */
  release(query: Query, input: ReleaseInput): Release
  /** Forgets money of hours that are over. Returns how many rows went. */
  prune(query: Query): number
}

interface Taken {
  readonly usage: Usage
  readonly second: Second
  /** Null when the call holds no money. */
  readonly money: SpendChange | null
}

/** The counters as rows of the state. */
export const ceilings: Ceilings = {
  usage,
  take(query, { usage, second, money }) {
    takeSlots(query, usage, second)
    if (money) holdMoney(query, money)
  },
  extend,
  release,
  prune: pruneHours,
}

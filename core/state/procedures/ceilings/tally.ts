import type { Row, Value } from '../query.ts'
import type { SlotUsage } from './slots.ts'
import type { Caps, SpendChange } from './spend.ts'
import type { Second } from './window.ts'

/** A slot at each level of a call, and the money of its first increment. */
export interface Taken {
  readonly usage: SlotUsage
  readonly second: Second
  /** Null when the call reserves no money. */
  readonly money: SpendChange | null
}

export interface CountedCharge {
  readonly account: string
  readonly project_id: string
  readonly call_sid: string
  readonly held_minor: number
  readonly charge_minor: number
  readonly at: string
}

/**
 * Counts for several procedures in memory, and tells the database once: of a store where a statement for each call
 * costs more than the call (decision 1054). Only one writer at a time may count. Each method does what the statements
 * of this folder do.
 */
export interface Tally {
  /** Runs a read whose rows may lack what was counted. `uses` and `payer` add it. */
  readonly read: <R extends object = Row>(sql: string, ...parameters: readonly Value[]) => R[]
  /** Returns uses of levels on a day as they are now. */
  readonly uses: (rows: readonly Row[], day: string) => readonly Row[]
  /** Returns the row of an account as it is now. */
  readonly payer: (row: Row) => Row
  /** Takes slots and money. Returns false, and does nothing, when the rows of a level are not known. */
  readonly take: (taken: Taken) => boolean
  /** Returns a slot at each level. */
  readonly countOff: (held: readonly (readonly [id: string, level: string])[]) => void
  readonly addToDay: (caps: Caps, day: string, minor: number) => void
  readonly charge: (charge: CountedCharge) => void
}

/** A number of a row: what it was, null without a row, undefined when it is not known; now it is `numberNow`. */
export interface Counter {
  readonly was: number | null | undefined
  readonly add: number
  readonly least: number
}

/** A row of `level_use`. */
export interface LevelUse {
  readonly live: Counter
  readonly was_takes: string
  /** Undefined: they are what they were. */
  readonly takes?: string
}

/** A row of `spend_day`. */
export interface DaySpend {
  readonly spent: Counter
}

/** A row of `billing_account`. */
export interface Payer {
  readonly balance: Counter
  readonly held: Counter
  readonly prepaid: boolean
  readonly credit: number
}

export interface LedgerRow {
  readonly account: string
  readonly project_id: string
  readonly call_sid: string
  readonly charge_minor: number
  readonly at: string
  /** What the turn had added to the balance by then. */
  readonly added: number
}

/** Rows by their keys. */
export interface Layer {
  readonly uses: Map<string, LevelUse>
  readonly days: Map<string, DaySpend>
  readonly accounts: Map<string, Payer>
  readonly ledger: LedgerRow[]
  changed: boolean
}

export const layer = (): Layer => ({
  uses: new Map(),
  days: new Map(),
  accounts: new Map(),
  ledger: [],
  changed: false,
})

const UNCHANGED: Counter = { was: undefined, add: 0, least: -Infinity }
export const NO_USE: LevelUse = { live: UNCHANGED, was_takes: '' }
export const NO_DAY: DaySpend = { spent: UNCHANGED }
export const NO_ACCOUNT: Payer = { balance: UNCHANGED, held: UNCHANGED, prepaid: false, credit: 0 }

export const numberNow = ({ was, add, least }: Counter): number => Math.max(least, (was ?? 0) + add)
export const takesOf = ({ takes, was_takes }: LevelUse): string => takes ?? was_takes

/** Notes what a row had before this turn. */
export const based = (counter: Counter, was: number | null): Counter =>
  counter.was === undefined ? { ...counter, was } : counter

export const plus = ({ was, add, least }: Counter, more: number): Counter => ({
  was,
  add: add + more,
  least: least + more,
})

/** Adds, and stays at 0 or above. */
export const clamped = ({ was, add, least }: Counter, more: number): Counter => ({
  was,
  add: add + more,
  least: Math.max(0, least + more),
})

// The parts of a key have no line breaks.
export const keyOf = (...parts: readonly string[]): string => parts.join('\n')
export const partsOf = (key: string): string[] => key.split('\n')

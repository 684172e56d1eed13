import { newId } from '../../runtime/ids.ts'
import type { Tally } from '../procedures/ceilings/tally.ts'
import { FactsChanged, type Query, type Row, type Value } from '../procedures/query.ts'
import { PROCEDURES, type ProcedureName } from '../procedures/table.ts'
import { type Read, type ReadRows, sameValues } from './known-reads.ts'
import type { Reply } from './link.ts'
import { READ_NOW } from './turns.ts'
import { storable, withNumbers } from './values.ts'

/** A write of which a procedure wants no rows. */
export interface Write extends Read {
  /** What has changed when it changes fewer rows than `least`; null: their number does not matter. */
  readonly facts: string | null
  readonly least: number
}

/** What answers a procedure without waiting. */
interface AtHand {
  /**
   * Returns the rows of a read that was made ahead; undefined for others. `tallied`: they may lack what the tally
   * holds.
   */
  known(read: Read, tallied: boolean): readonly Row[] | undefined
  /** Takes a write, which is sent later and in order. */
  write(write: Write): void
  readonly tally: Omit<Tally, 'read'>
}

export interface AskedStatement extends Read {
  /** The procedure wants the number of changed rows alone. */
  readonly counts: boolean
}

interface Answered extends Read {
  readonly rows: readonly Row[]
  readonly changes: number
}

/** Interrupts a procedure at a statement that has no answer yet. */
class Unanswered extends Error {
  override readonly name = 'Unanswered'
  readonly asked: AskedStatement
  constructor(asked: AskedStatement) {
    super('a statement has no answer yet')
    this.asked = asked
  }
}

/** Runs a procedure in a transaction that others use, too: it waits for each statement. */
export async function runProcedure(
  name: ProcedureName,
  input: unknown,
  run: (sql: string, values: readonly Value[]) => Promise<Reply>,
): Promise<unknown> {
  const running = new ProcedureRun(name, input, { now_ms: null, at_hand: null })
  for (;;) {
    const { asked, value } = running.attempt()
    if (!asked) return value
    const { rows, changes } = await run(withNumbers(asked.sql), asked.values)
    running.answer(asked, rows as readonly Row[], changes)
  }
}

/**
 * Runs a procedure, which waits for nothing, over a connection, for which one waits. At a statement without an answer
 * the procedure is interrupted; with the answer it runs again from its beginning, where the earlier answers lead it to
 * the next statement (decision 1054).
 */
export class ProcedureRun {
  /** Reads so far, in order. */
  readonly reads: ReadRows[] = []
  readonly #name: ProcedureName
  readonly #input: unknown
  readonly #at_hand: AtHand | null
  readonly #answers: Answered[] = []
  readonly #ids: string[] = []
  /** What the tally has answered. It counts once, however often the procedure runs. */
  readonly #told: unknown[] = []
  #now_ms: number | null

  constructor(
    name: ProcedureName,
    input: unknown,
    { now_ms, at_hand }: { readonly now_ms: number | null; readonly at_hand: AtHand | null },
  ) {
    if (!Object.hasOwn(PROCEDURES, name)) throw new Error(`there is no procedure ${name}`)
    this.#name = name
    // A procedure that changed its input would find another one at its next run.
    this.#input = frozen(storable(input))
    this.#now_ms = now_ms
    this.#at_hand = at_hand
  }

  /** Runs the procedure to its end, or to a statement that has no answer. Throws what the procedure throws. */
  attempt():
    | { readonly asked: AskedStatement; readonly value?: never }
    | { readonly asked: null; readonly value: unknown } {
    try {
      return { asked: null, value: PROCEDURES[this.#name](this.#fromBeginning(), this.#input as never) }
    } catch (error) {
      if (!(error instanceof Unanswered)) throw error
      return { asked: error.asked }
    }
  }

  answer({ sql, values }: Read, rows: readonly Row[], changes: number): void {
    if (sql === READ_NOW) this.#now_ms = Number(rows[0]?.['now_ms'])
    else {
      this.#answers.push({ sql, values, rows: frozen(rows), changes })
      if (!WRITES.test(sql)) this.reads.push({ sql, values, rows })
    }
  }

  /** Returns the statements' runner for one more run. */
  #fromBeginning(): Query {
    let [statements, ids] = [0, 0]
    const answered = (sql: string, values: readonly Value[]): Answered | undefined => {
      const known = this.#answers[statements++]
      if (known && (known.sql !== sql || !sameValues(known.values, values)))
        throw new Error(`${this.#name} did not repeat its statement ${statements}`)
      return known
    }
    const ask = (sql: string, values: readonly Value[], counts: boolean): Answered => {
      const known = answered(sql, values)
      if (!known) throw new Unanswered({ sql, values, counts })
      return known
    }
    const write = (sql: string, values: readonly Value[], facts: string | null, least: number): boolean => {
      if (!this.#at_hand) return false
      if (answered(sql, values)) return true
      this.#at_hand.write({ sql, values, facts, least })
      this.answer({ sql, values }, [], 0)
      return true
    }
    const read = <R extends object>(sql: string, values: readonly Value[], tallied: boolean): R[] => {
      const ahead = this.#answers.length === statements ? this.#at_hand?.known({ sql, values }, tallied) : undefined
      if (ahead) this.answer({ sql, values }, ahead, 0)
      return [...(ask(sql, values, false).rows as readonly R[])]
    }
    // The author of a statement asserts the type of its rows.
    const rows = <R extends object>(sql: string, ...values: readonly Value[]): R[] =>
      RETURNS_NOTHING.test(sql) && write(sql, values, null, 0) ? [] : read<R>(sql, values, false)
    return Object.assign(rows, {
      tally: this.#tally((sql, ...values) => read(sql, values, true)),
      changes: (sql: string, ...values: readonly Value[]) => ask(sql, values, true).changes,
      must: (facts: string, least: number, sql: string, ...values: readonly Value[]) => {
        if (!write(sql, values, facts, least) && ask(sql, values, true).changes < least) throw new FactsChanged(facts)
      },
      position: (table: string) => Number(rows<Row>(positionOf(table))[0]?.['position']),
      now_ms: () => {
        if (this.#now_ms === null) throw new Unanswered({ sql: READ_NOW, values: [], counts: false })
        return this.#now_ms
      },
      uuid: () => {
        const at = ids++
        const id = this.#ids[at] ?? newId.uuid()
        this.#ids[at] = id
        return id
      },
    })
  }

  /** Returns the tally for one more run: what it has answered before, it answers again. */
  #tally(read: Tally['read']): Tally | null {
    const tally = this.#at_hand?.tally
    if (!tally) return null
    let calls = 0
    const once =
      <Given extends readonly unknown[], T>(work: (...given: Given) => T) =>
      (...given: Given): T => {
        const at = calls++
        if (at === this.#told.length) this.#told.push(work(...given))
        return this.#told[at] as T
      }
    return {
      read,
      uses: once((rows, day) => tally.uses(rows, day)),
      payer: once(row => tally.payer(row)),
      take: once(taken => tally.take(taken)),
      countOff: once(held => tally.countOff(held)),
      addToDay: once((caps, day, minor) => tally.addToDay(caps, day, minor)),
      charge: once(charge => tally.charge(charge)),
    }
  }
}

/** Only code names tables. */
const positionOf = (table: string): string =>
  `select nextval(pg_get_serial_sequence('${table}', 'position')) as position`

export const WRITES = /^\s*(?:insert|update|delete)\b/i
/** A write without `returning`. Who wants to know how many rows it changed asks by `changes`. */
const RETURNS_NOTHING = /^\s*(?:insert|update|delete)\b(?!.*\breturning\b)/is

/** Freezes plain data in depth. */
function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const part of Object.values(value)) frozen(part)
  return Object.freeze(value)
}

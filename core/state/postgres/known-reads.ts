import { boundedMap } from '../../domain/bounded-map.ts'
import { TALLIED } from '../procedures/ceilings/tally-writes.ts'
import { type Row, tablesOf, type Value } from '../procedures/query.ts'

/** A read of a procedure. */
export interface Read {
  readonly sql: string
  readonly values: readonly Value[]
}

export interface ReadRows extends Read {
  readonly rows: readonly Row[]
}

/** Tables whose rows are of one call: who reads by a call's sid is not concerned by writes for other calls. */
const OF_A_CALL: ReadonlySet<string> = new Set([
  ...['call', 'lease', 'reservation', 'cdr', 'call_attempt', 'call_command', 'leg_figures', 'outbox'],
])

const MOST_TEXTS = 2000
const tables_of_texts = boundedMap<string, ReadonlySet<string>>(MOST_TEXTS)

/** Returns the tables of a statement, which procedures ask for again and again. */
export function tablesNamed(sql: string): ReadonlySet<string> {
  const known = tables_of_texts.get(sql)
  if (known) return known
  const made = tablesOf(sql)
  tables_of_texts.set(sql, made)
  return made
}

/** Reports whether a statement names rows that a tally counts. */
export function namesTallied(sql: string): boolean {
  for (const table of tablesNamed(sql)) if (TALLIED.has(table)) return true
  return false
}

/** What procedures have written in a turn: tables, and the calls whose rows they were; null: rows of any call. */
export class Written {
  readonly #tables = new Map<string, Set<string | null>>()

  add(sql: string, of_call: string | null): void {
    for (const table of tablesNamed(sql)) {
      const calls = this.#tables.get(table)
      if (calls) calls.add(of_call)
      else this.#tables.set(table, new Set([of_call]))
    }
  }

  /** Reports whether a statement may read other rows now. `of_call`: it reads rows of that call by its sid. */
  concerns(sql: string, of_call: string | null): boolean {
    for (const table of tablesNamed(sql)) {
      const calls = this.#tables.get(table)
      if (!calls) continue
      const apart = of_call !== null && OF_A_CALL.has(table) && !calls.has(of_call) && !calls.has(null)
      if (!apart) return true
    }
    return false
  }
}

/** Reads whose rows are known and still true. */
export class KnownReads {
  readonly #reads = new Map<string, ReadRows[]>()

  add(read: ReadRows): void {
    const known = this.#reads.get(read.sql)
    if (known) known.push(read)
    else this.#reads.set(read.sql, [read])
  }

  /** Returns the rows of a read; undefined when they are not known. */
  find({ sql, values }: Read): readonly Row[] | undefined {
    return this.#reads.get(sql)?.find(known => sameValues(known.values, values))?.rows
  }

  /** Forgets all reads for which `stale` holds, and returns them. */
  forget(stale: (read: Read) => boolean): Read[] {
    const forgotten: Read[] = []
    for (const [sql, reads] of this.#reads) {
      const kept = reads.filter(read => !stale(read))
      if (kept.length === reads.length) continue
      forgotten.push(...reads.filter(read => !kept.includes(read)))
      if (kept.length === 0) this.#reads.delete(sql)
      else this.#reads.set(sql, kept)
    }
    return forgotten
  }
}

/** The reads of all procedures of a turn, which hold until somebody writes to their tables. */
export class TurnReads {
  readonly #reads = new Map<string, { readonly read: ReadRows; readonly made: number }[]>()
  /** The last write to each table. */
  readonly #writes = new Map<string, number>()
  #order = 0

  add(read: ReadRows): void {
    const one = { read, made: this.#order }
    const known = this.#reads.get(read.sql)
    if (known) known.push(one)
    else this.#reads.set(read.sql, [one])
  }

  wrote(sql: string): void {
    this.#order++
    for (const table of tablesNamed(sql)) this.#writes.set(table, this.#order)
  }

  /** Returns the rows of a read; undefined when they are not known any more. */
  find({ sql, values }: Read): readonly Row[] | undefined {
    const known = this.#reads.get(sql)
    if (!known) return undefined
    let written = 0
    for (const table of tablesNamed(sql)) written = Math.max(written, this.#writes.get(table) ?? 0)
    return known.findLast(({ read, made }) => made >= written && sameValues(read.values, values))?.read.rows
  }
}

/**
 * Numbers that were drawn from sequences, each for one use. Those who ask first get the least, whoever's reads drew it:
 * positions follow the order in which the procedures of a turn run.
 */
export class Drawn {
  readonly #rows = new Map<string, (readonly Row[])[]>()

  /** Keeps the rows of a read of no table. Returns false for other reads. */
  keep({ sql, rows }: ReadRows): boolean {
    if (tablesNamed(sql).size > 0) return false
    const drawn = this.#rows.get(sql)
    if (drawn) drawn.push(rows)
    else this.#rows.set(sql, [rows])
    return true
  }

  next({ sql }: Read): readonly Row[] | undefined {
    return this.#rows.get(sql)?.shift()
  }
}

export const sameValues = (ours: readonly Value[], theirs: readonly Value[]): boolean =>
  ours.length === theirs.length && ours.every((value, at) => Object.is(value, theirs[at]))

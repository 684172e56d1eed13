import type { Clock } from '../../runtime/clock.ts'
import type { Reader, Step } from '../port.ts'
import { tablesOf } from '../procedures/query.ts'
import type { ProcedureName } from '../procedures/table.ts'
import { isLocked, stateErrorOf } from './errors.ts'
import { type LogLength, openLogIndex } from './log-index.ts'
import { MOST_TOGETHER, plainSql, WorkCounts } from './protocol.ts'
import { createReader, type LocalReader } from './reader.ts'
import { procedureRunner } from './run-procedure.ts'
import { CHECKPOINT_PAGES, type Connection, type Outcome, openConnection } from './steps.ts'

/** The longest time that a procedure may block the calling thread (design section 8). */
const SLOW_MS = 20
/**
 * After a slower procedure, the state's thread runs procedures for this many times its duration. Slow procedures thus
 * block the calling thread for at most a hundredth of its time.
 */
const RESTS = 100

/**
 * After concurrent procedures, those of this many milliseconds go to the state's thread, where they share commits. With
 * 100 ms this mode hardly ended at 50 to 100 calls a second, and a call cost 2 to 10 % more CPU.
 */
const CROWDED_MS = 10

interface Settings {
  readonly file: string
  readonly clock: Pick<Clock, 'monotonic_ms'>
  /** Whether reads keep their rows. A process that only runs procedures here keeps none, and notes no tables. */
  readonly keeps_rows: boolean
}

/** A short transaction that waits to run. */
interface Brief {
  readonly work: () => Promise<unknown>
  readonly resolve: (done: { readonly value: unknown } | null) => void
  readonly reject: (error: unknown) => void
}

/**
 * A connection on the calling thread: two messages and two thread wake-ups cost as much as a procedure, and more than a
 * read of a few rows. It never waits for a lock or the disk; what would have to wait goes to the state's thread. It
 * runs reads and short transactions, of which concurrent ones share a commit, or single procedures (decision 0002).
 */
export class LocalConnection {
  readonly counts = new WorkCounts()
  readonly #connection: Connection
  readonly log: () => LogLength
  readonly #clock: Settings['clock']
  readonly #waiting: Brief[] = []
  /** A transaction is open, or begins at the end of this turn of the event loop. */
  #busy = false
  #open = false
  readonly #reader: LocalReader | null
  /** Tables that the running short transaction has written. */
  readonly #wrote = new Set<string>()
  /** Tables that earlier short transactions have written in the open transaction. */
  readonly #wrote_before = new Set<string>()
  readonly #tables = new Map<string, ReadonlySet<string>>()
  #rests_until_ms = Number.NEGATIVE_INFINITY
  /** Procedures that have run. The first run compiles the statements, so its duration does not count. */
  readonly #compiled = new Set<string>()

  constructor({ file, clock, keeps_rows }: Settings) {
    const settings = { file, busy_timeout_ms: 0, reads_only: false }
    const wrote = (sql: string): void => this.#note(sql)
    this.#connection = openConnection(settings, { procedures: procedureRunner, counts: this.counts, wrote })
    this.#reader = keeps_rows ? createReader(this.#connection.database) : null
    // SQLite loads the schema with the first statement that names a table. Do that here, not during the first call.
    this.#connection.database.prepare('select id from configuration')
    // Checkpoints wait for the disk: the state's thread runs them.
    this.#connection.database.pragma('wal_autocheckpoint = 0')
    this.log = openLogIndex(file)
    this.#clock = clock
  }

  /** For reads outside a transaction; null while one is open, because its writes may yet be rolled back. */
  get reader(): Reader | null {
    return this.#open ? null : this.#reader
  }

  /** For reads within the running short transaction; null once it has written something. */
  get reader_within(): Reader | null {
    return this.#wrote.size === 0 ? this.#reader : null
  }

  /**
   * Runs a procedure in its own transaction. Returns null when it did not begin: the state's thread must run it. That
   * is while another process or thread writes, when a checkpoint or a restart of the log is due, and after a slow
   * procedure. @throws StateError
   */
  procedure(name: ProcedureName, input: unknown): { readonly result: unknown } | null {
    const begun_ms = this.#clock.monotonic_ms()
    if (this.#open || begun_ms < this.#rests_until_ms || this.#needsDisk()) return null
    try {
      return { result: this.#connection.procedure(name, input) ?? null }
    } catch (error) {
      // Only BEGIN can find the lock taken: once begun, the transaction holds it.
      if (isLocked(error)) return null
      throw stateErrorOf(error)
    } finally {
      const took_ms = this.#clock.monotonic_ms() - begun_ms
      if (took_ms > SLOW_MS && this.#compiled.has(name)) this.#rests_until_ms = begun_ms + RESTS * took_ms
      this.#compiled.add(name)
      this.#reader?.written(this.#wrote)
      this.#wrote.clear()
    }
  }

  /** Notes that procedures ran concurrently: more are likely to follow soon. */
  crowded(): void {
    this.#rests_until_ms = Math.max(this.#rests_until_ms, this.#clock.monotonic_ms() + CROWDED_MS)
  }

  /** A commit on the state's thread checkpoints a long log. The first commit after that syncs and restarts the log. */
  #needsDisk(): boolean {
    const { written, written_back } = this.log()
    return written >= CHECKPOINT_PAGES || written === written_back
  }

  /** Runs a statement in the open transaction. @throws StateError */
  run({ sql, parameters }: Step): Outcome {
    return this.#guarded(connection => connection.run({ sql: plainSql(sql), parameters }))
  }

  /**
   * Runs `work` atomically and resolves once it is committed. Resolves to null, with nothing begun, when another
   * connection holds the write lock.
   */
  attempt<T>(work: () => Promise<T>): Promise<{ readonly value: T } | null> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ work, resolve: resolve as Brief['resolve'], reject })
      this.#next()
    })
  }

  close(): void {
    this.#guarded(connection => connection.close())
  }

  /** Begins at the end of this turn of the event loop, so that all work that arrives in it shares the commit. */
  #next(): void {
    if (this.#busy || this.#waiting.length === 0) return
    this.#busy = true
    setImmediate(async () => {
      await this.#together(this.#waiting.splice(0, MOST_TOGETHER))
      this.#busy = false
      this.#next()
    })
  }

  async #together(briefs: readonly Brief[]): Promise<void> {
    try {
      if (!this.#begin()) {
        for (const { resolve } of briefs) resolve(null)
        return
      }
      for (const tell of await this.#within(briefs)) tell()
    } catch (error) {
      for (const { reject } of briefs) reject(error)
    }
  }

  #begin(): boolean {
    try {
      this.#guarded(connection => connection.begin())
    } catch (error) {
      if (isLocked(error)) return false
      throw error
    }
    this.#open = true
    this.#reader?.begun()
    return true
  }

  /** Runs all and commits. Returns the callbacks that settle each; throws when nothing was committed. */
  async #within(briefs: readonly Brief[]): Promise<(() => void)[]> {
    try {
      const outcomes: (() => void)[] = []
      for (const brief of briefs) outcomes.push(await this.#alone(brief))
      this.#guarded(connection => connection.commit())
      return outcomes
    } catch (error) {
      this.#guarded(connection => connection.rollback())
      // Later transactions may have cached rows that earlier ones wrote.
      this.#reader?.written(this.#wrote_before)
      throw error
    } finally {
      this.#open = false
      this.#wrote_before.clear()
    }
  }

  /** Runs one in a savepoint, so that a failure rolls back only its own writes. */
  async #alone({ work, resolve, reject }: Brief): Promise<() => void> {
    this.#guarded(connection => connection.savepoint())
    try {
      const value = await work()
      this.#guarded(connection => connection.keep())
      this.#reader?.written(this.#wrote)
      for (const table of this.#wrote) this.#wrote_before.add(table)
      return () => resolve({ value })
    } catch (error) {
      // On a full disk SQLite may roll back the whole transaction, not only the savepoint.
      if (!this.#connection.in_transaction) throw error
      this.#guarded(connection => connection.undo())
      return () => reject(error)
    } finally {
      this.#wrote.clear()
    }
  }

  #note(sql: string): void {
    if (!this.#reader) return
    let tables = this.#tables.get(sql)
    if (!tables) {
      tables = tablesOf(sql)
      this.#tables.set(sql, tables)
    }
    for (const table of tables) this.#wrote.add(table)
  }

  /** Converts SQLite's errors to StateError. */
  #guarded<T>(work: (connection: Connection) => T): T {
    try {
      return work(this.#connection)
    } catch (error) {
      throw (error as { readonly code?: string }).code === undefined ? error : stateErrorOf(error)
    }
  }
}

import type { Clock } from '../../runtime/clock.ts'
import type { ProcedureName } from '../procedures/table.ts'
import { isLocked, stateErrorOf } from './errors.ts'
import { type LogLength, openLogIndex } from './log-index.ts'
import { WorkCounts } from './protocol.ts'
import { CHECKPOINT_PAGES, type Connection, openConnection } from './steps.ts'

/** The asking thread may stand still for so long (design section 8). */
const SLOW_MS = 20
/**
 * After a procedure that took longer, those that follow are left to the thread that may wait, for so many times as
 * long: the asking thread is held up for a hundredth of its time at most.
 */
const RESTS = 100

/**
 * After procedures met, those of so many milliseconds share commits of the state's thread. With 100 ms that mode fed
 * itself: at 50 to 100 calls a second it hardly ended, and a call cost 2 to 10 % more CPU.
 */
const CROWDED_MS = 10

interface Settings {
  readonly file: string
  readonly clock: Pick<Clock, 'monotonic_ms'>
}

/**
 * A connection on the thread that asks, for procedures that are asked for alone (decision 0510): two messages and the
 * wake-ups of two threads cost as much as the procedure. It waits for nobody, and for no disk: while another process or
 * thread writes, when the log is to be written back or begun anew, and for a while after something has held it up, it
 * leaves procedures to the state's thread.
 */
export class InlineConnection {
  readonly counts = new WorkCounts()
  readonly #connection: Connection
  readonly #log: () => LogLength
  readonly #clock: Settings['clock']
  #rests_until_ms = Number.NEGATIVE_INFINITY
  /** Names of those that have run: the first of each compiles its statements, and tells nothing of the next. */
  readonly #compiled = new Set<string>()

  constructor({ file, clock }: Settings) {
    this.#connection = openConnection({ file, busy_timeout_ms: 0, reads_only: false }, this.counts)
    // SQLite reads the schema with the first statement that names a table: not in the first call.
    this.#connection.database.prepare('select id from configuration')
    this.#connection.database.pragma('wal_autocheckpoint = 0')
    this.#log = openLogIndex(file)
    this.#clock = clock
  }

  /**
   * Runs a procedure in a transaction of its own; null: nothing was begun, and the state's thread is to run it.
   * @throws StateError
   */
  procedure(name: ProcedureName, input: unknown): { readonly result: unknown } | null {
    const begun_ms = this.#clock.monotonic_ms()
    if (begun_ms < this.#rests_until_ms || this.#needsDisk()) return null
    try {
      return { result: this.#connection.procedure(name, input) ?? null }
    } catch (error) {
      // A transaction that has begun holds the lock already: only its beginning can find it taken.
      if (isLocked(error)) return null
      throw stateErrorOf(error)
    } finally {
      const took_ms = this.#clock.monotonic_ms() - begun_ms
      if (took_ms > SLOW_MS && this.#compiled.has(name)) this.#rests_until_ms = begun_ms + RESTS * took_ms
      this.#compiled.add(name)
    }
  }

  /** Procedures have met: those that follow soon are not alone either. */
  crowded(): void {
    this.#rests_until_ms = Math.max(this.#rests_until_ms, this.#clock.monotonic_ms() + CROWDED_MS)
  }

  /** A long log is written back by a commit of the thread; the first one after that syncs it, and begins it anew. */
  #needsDisk(): boolean {
    const { written, written_back } = this.#log()
    return written >= CHECKPOINT_PAGES || written === written_back
  }

  close(): void {
    this.#connection.close()
  }
}

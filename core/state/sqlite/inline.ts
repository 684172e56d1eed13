import type { Clock } from '../../runtime/clock.ts'
import type { ProcedureName } from '../procedures/table.ts'
import { isLocked, stateErrorOf } from './errors.ts'
import { type LogLength, openLogIndex } from './log-index.ts'
import { WorkCounts } from './protocol.ts'
import { CHECKPOINT_PAGES, type Connection, openConnection } from './steps.ts'

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
}

/**
 * A connection on the calling thread that runs single procedures (decision 0510): two messages and two thread wake-ups
 * cost as much as the procedure. It never waits for a lock or the disk. It leaves procedures to the state's thread
 * while another process or thread writes, when a checkpoint or a restart of the log is due, and after a slow procedure.
 */
export class InlineConnection {
  readonly counts = new WorkCounts()
  readonly #connection: Connection
  readonly #log: () => LogLength
  readonly #clock: Settings['clock']
  #rests_until_ms = Number.NEGATIVE_INFINITY
  /** Procedures that have run. The first run compiles the statements, so its duration does not count. */
  readonly #compiled = new Set<string>()

  constructor({ file, clock }: Settings) {
    this.#connection = openConnection({ file, busy_timeout_ms: 0, reads_only: false }, this.counts)
    // SQLite loads the schema with the first statement that names a table. Do that here, not during the first call.
    this.#connection.database.prepare('select id from configuration')
    this.#connection.database.pragma('wal_autocheckpoint = 0')
    this.#log = openLogIndex(file)
    this.#clock = clock
  }

  /**
   * Runs a procedure in its own transaction. Returns null when it did not begin: the state's thread must run it.
   * @throws StateError
   */
  procedure(name: ProcedureName, input: unknown): { readonly result: unknown } | null {
    const begun_ms = this.#clock.monotonic_ms()
    if (begun_ms < this.#rests_until_ms || this.#needsDisk()) return null
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
    }
  }

  /** Notes that procedures ran concurrently: more are likely to follow soon. */
  crowded(): void {
    this.#rests_until_ms = Math.max(this.#rests_until_ms, this.#clock.monotonic_ms() + CROWDED_MS)
  }

  /** A commit on the state's thread checkpoints a long log. The first commit after that syncs and restarts the log. */
  #needsDisk(): boolean {
    const { written, written_back } = this.#log()
    return written >= CHECKPOINT_PAGES || written === written_back
  }

  close(): void {
    this.#connection.close()
  }
}

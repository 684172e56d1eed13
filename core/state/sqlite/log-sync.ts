import { closeSync, fdatasync, openSync } from 'node:fs'
import { promisify } from 'node:util'
import { type Clock, systemClock, type Timer } from '../../runtime/clock.ts'
import { closedError, type StateError } from '../port.ts'
import { stateError } from './errors.ts'

/** Syncs the file of a descriptor to disk. */
export type SyncFile = (descriptor: number) => Promise<void>

/** A commit whose sync is not awaited reaches the disk within this time. */
const SOON_MS = 100

interface Waiting {
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

/**
 * Syncs the write-ahead log after commits of this process (decision 0591). SQLite's `synchronous = FULL` syncs in each
 * commit and blocks the committing thread. Here connections commit with NORMAL, and one sync serves all waiting commits
 * of all connections.
 */
export class LogSync {
  readonly #file: string
  #descriptor: number | null = null
  readonly #sync: SyncFile
  readonly #clock: Pick<Clock, 'after'>
  #waiting: Waiting[] = []
  #under_way = false
  #soon: Timer | null = null
  /** Kept for good: after a failed write, a later sync can succeed although the data never reached the disk. */
  #failure: StateError | null = null
  #closed = false

  /** `file` is the database's path. */
  constructor(file: string, sync: SyncFile = promisify(fdatasync), clock: Pick<Clock, 'after'> = systemClock) {
    this.#file = `${file}-wal`
    this.#sync = sync
    this.#clock = clock
  }

  /** Resolves once everything committed before this call is on disk. @throws StateError */
  synced(): Promise<void> {
    if (this.#closed) return Promise.reject(closedError())
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject })
      this.#next()
    })
  }

  /** Schedules a sync for a commit that is not awaited. */
  soon(): void {
    // The failure is kept: the next caller of synced() gets it.
    this.#soon ??= this.#clock.after(SOON_MS, () => this.synced().catch(() => undefined))
  }

  /** Settles all waiting calls and closes the file. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#soon?.cancel()
    // Earlier calls of synced() have reported any failure.
    const last = this.synced().catch(() => undefined)
    this.#closed = true
    await last
    if (this.#descriptor !== null) closeSync(this.#descriptor)
  }

  #next(): void {
    if (this.#under_way || this.#waiting.length === 0) return
    this.#under_way = true
    // All commits of this turn of the event loop share the sync.
    setImmediate(() => this.#syncFor(this.#waiting.splice(0)))
  }

  async #syncFor(waiting: readonly Waiting[]): Promise<void> {
    this.#soon?.cancel()
    this.#soon = null
    try {
      this.#descriptor ??= this.#open()
      if (!this.#failure && this.#descriptor !== null) await this.#sync(this.#descriptor)
    } catch (error) {
      this.#failure = stateError(`the disk did not take a write: ${(error as Error).message}`, 'SQLITE_IOERR_FSYNC')
    }
    this.#under_way = false
    for (const { resolve, reject } of waiting)
      if (this.#failure) reject(this.#failure)
      else resolve()
    this.#next()
  }

  /** Null when there is no log: the last connection checkpointed it and synced the database before removing it. */
  #open(): number | null {
    try {
      return openSync(this.#file, 'r')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
      throw error
    }
  }
}

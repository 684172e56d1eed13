import { closeSync, fdatasync, openSync } from 'node:fs'
import { promisify } from 'node:util'
import { type Clock, systemClock, type Timer } from '../../runtime/clock.ts'
import type { StateError } from '../port.ts'
import { closedError, stateError } from './errors.ts'

/** Puts what was written to the file of this descriptor on the disk. */
export type SyncFile = (descriptor: number) => Promise<void>

/** A commit that nobody waits for reaches the disk within this time. */
const SOON_MS = 100

interface Waiting {
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

/**
 * Syncs the write-ahead log after commits of this process (decision 0591). SQLite's `synchronous = FULL` syncs in each
 * commit and holds up the thread that commits. Here the connections commit with NORMAL, and one sync serves every
 * commit that waits for it, whichever connection made it.
 */
export class LogSync {
  readonly #file: string
  #descriptor: number | null = null
  readonly #sync: SyncFile
  readonly #clock: Pick<Clock, 'after'>
  #waiting: Waiting[] = []
  #under_way = false
  #soon: Timer | null = null
  /** The kernel forgets a failed write: a later sync that succeeds says nothing about it. */
  #failure: StateError | null = null
  #closed = false

  /** `file`: the database's. */
  constructor(file: string, sync: SyncFile = promisify(fdatasync), clock: Pick<Clock, 'after'> = systemClock) {
    this.#file = `${file}-wal`
    this.#sync = sync
    this.#clock = clock
  }

  /** Resolves when everything that was committed before this call is on the disk. @throws StateError */
  synced(): Promise<void> {
    if (this.#closed) return Promise.reject(closedError())
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject })
      this.#next()
    })
  }

  /** Something was committed that nobody waits for. */
  soon(): void {
    // Whoever waits for the disk hears of a failure.
    this.#soon ??= this.#clock.after(SOON_MS, () => this.synced().catch(() => undefined))
  }

  /** Answers everybody who waits, and lets go of the file. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#soon?.cancel()
    // A failure has been told to those who wait before this.
    const last = this.synced().catch(() => undefined)
    this.#closed = true
    await last
    if (this.#descriptor !== null) closeSync(this.#descriptor)
  }

  #next(): void {
    if (this.#under_way || this.#waiting.length === 0) return
    this.#under_way = true
    // Everything that was committed in this turn of the event loop shares the sync.
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

  /** Null: the last connection has written the log back and synced the database before it removed the log. */
  #open(): number | null {
    try {
      return openSync(this.#file, 'r')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
      throw error
    }
  }
}

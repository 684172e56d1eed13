import type { Clock } from '../../runtime/clock.ts'
import { isLong, type LogLength } from './log-index.ts'

/** How often the log is looked at. A thousand calls a second write 4,000 pages in that time. */
const LOOKS_EVERY_MS = 100

interface Keeping {
  readonly log: () => LogLength
  /** Writes back what no reader needs. It waits for nobody: what is written meanwhile is left to the next one. */
  readonly checkpoint: () => Promise<unknown>
  /** Tells threads that read for long to wait (`Maintenance.reads_wait`). */
  readonly reads_wait: Int32Array
  readonly clock: Pick<Clock, 'every'>
}

/**
 * Writes a long log back to the database from this process. In a database of ten million calls that is thousands of
 * pages all over the disk, and the commit of a call would wait for them. Returns what stops it.
 */
export function keepLogShort({ log, checkpoint, reads_wait, clock }: Keeping): () => Promise<void> {
  let under_way: Promise<unknown> | null = null
  const tellReads = (wait: boolean): void => {
    if (Atomics.exchange(reads_wait, 0, wait ? 1 : 0) === 1 && !wait) Atomics.notify(reads_wait, 0)
  }
  const timer = clock.every(LOOKS_EVERY_MS, () => {
    if (under_way !== null) return
    const long = isLong(log())
    tellReads(long)
    if (!long) return
    // Every commit notices a disk that fails.
    under_way = checkpoint()
      .catch(() => undefined)
      .finally(() => {
        under_way = null
        tellReads(isLong(log()))
      })
  })
  return async () => {
    timer.cancel()
    await under_way
    tellReads(false)
  }
}

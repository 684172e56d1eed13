import { Session } from 'node:inspector'
import { performance } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import type { Clock, Timer } from './clock.ts'

/** The period in which work is measured. */
const PERIOD_MS = 10_000
/** A period in which the event loop worked for less than this ends a burst. */
const QUIET_MS = 300
/** A heap with no more free space than this is not collected. */
const SPARE_BYTES = 3 * 1024 * 1024
/** A resting process leaves garbage, too. When its heap has grown by this, it is collected without a burst. */
const GROWN_BYTES = 3 * 1024 * 1024
/** A heap that uses more than this is not collected, because the pause would disturb calls. */
const MOST_BYTES = 64 * 1024 * 1024

/** What V8 and the event loop tell of this thread, and its garbage collection. */
interface Engine {
  /** For how long the event loop has worked so far. */
  worked_ms(): number
  /** Bytes of the heap. */
  heap(): { readonly used: number; readonly total: number }
  collect(): void
}

/**
 * Collects the heap of this thread once after its start, after each burst of work, and when it has grown since. V8
 * collects only when a program allocates, so a resting process would keep the memory of a burst for hours.
 */
export function giveBackMemory(
  clock: Pick<Clock, 'every'>,
  { worked_ms, heap, collect }: Engine = engineOfThread(),
): Timer {
  let before = worked_ms()
  // The start is the first burst.
  let burst = true
  /** Bytes of the heap at the first quiet look after a burst or a collection. */
  let left: number | null = null
  return clock.every(PERIOD_MS, () => {
    const now = worked_ms()
    const quiet = now - before < QUIET_MS
    before = now
    if (!quiet) {
      burst = true
      return
    }
    const { used, total } = heap()
    left ??= used
    const grown = used > left + GROWN_BYTES
    if (!burst && !grown) return
    if (used < MOST_BYTES && (grown || total - used > SPARE_BYTES)) collect()
    burst = false
    left = null
  })
}

function engineOfThread(): Engine {
  return {
    worked_ms: () => performance.eventLoopUtilization().active,
    heap() {
      const { used_heap_size: used, total_heap_size: total } = getHeapStatistics()
      return { used, total }
    },
    collect() {
      const session = new Session()
      session.connect()
      // Unlike `gc()`, this shrinks the young generation, and forgets code that has not run for long. It begins later.
      // A session that ends within its own answer stops the thread for good.
      session.post('HeapProfiler.collectGarbage', () => setImmediate(() => session.disconnect()))
    },
  }
}

import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Clock, Timer } from '../../core/runtime/clock.ts'

/** The period in which messages are counted. */
const PERIOD_MS = 10_000
/** A period with fewer messages than this ends a burst. */
const QUIET = 500
/** A heap with no more free space than this is not collected. */
const SPARE_BYTES = 8 * 1024 * 1024
/** A heap that uses more than this is not collected, because the pause would disturb calls. */
const MOST_BYTES = 64 * 1024 * 1024

/**
 * Collects the heap once after each burst of messages. V8 collects only when a program allocates, so an idle process
 * would keep the memory of a burst for hours. `received` returns the number of messages so far.
 */
export function giveBackMemory(clock: Clock, received: () => number): Timer {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  let before = received()
  let burst = false
  return clock.every(PERIOD_MS, () => {
    const now = received()
    const quiet = now - before < QUIET
    before = now
    if (!quiet) {
      burst = true
      return
    }
    if (!burst) return
    burst = false
    const { total_heap_size, used_heap_size } = getHeapStatistics()
    if (used_heap_size < MOST_BYTES && total_heap_size - used_heap_size > SPARE_BYTES) collect()
  })
}

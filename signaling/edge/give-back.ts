import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Clock, Timer } from '../../core/runtime/clock.ts'

/** How often it is looked whether a burst is over. */
const PERIOD_MS = 10_000
/** So many messages in a period are no burst. */
const QUIET = 500
/** What is worth giving back. */
const SPARE_BYTES = 8 * 1024 * 1024
/** A collection of more than this would be felt by calls. */
const MOST_BYTES = 64 * 1024 * 1024

/**
 * V8 collects when a program allocates. After a burst an idle process keeps what the burst took, for hours: here the
 * heap is collected once when a burst is over. `received` counts messages.
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

import { LOOKS_EVERY_MS } from '../../core/runtime/give-way.ts'

/** A read of a long work that others must not feel. */
interface Read {
  readonly rows: number
  /** It ended because it had enough rows. Any other one has looked for them. */
  readonly full: boolean
  readonly took_ms: number
}

interface Surroundings {
  /** Reports whether others have worked since the last question. Mostly those are the processes of calls. */
  readonly disturbed: () => boolean
  readonly wait: (ms: number) => Promise<unknown>
  readonly now_ms: () => number
}

/** The time that others are owed may add up to so much. Then it is given, whether others work or not. */
const MOST_OWED_MS = 100
/** So much is given ahead while others work. */
const MOST_AHEAD_MS = 100
/**
 * Paces reads: together they yield so many rows a second, if the machine can. The rest of the time belongs to others,
 * and they get it while they work. Returns what waits after each read.
 */
export function createPace(rows_a_second: number, { disturbed, wait, now_ms }: Surroundings) {
  let owed_ms = 0
  return async ({ rows, full, took_ms }: Read): Promise<void> => {
    const due_ms = full ? (rows / rows_a_second) * 1000 : 2 * took_ms
    // What a slow machine loses is not made up for.
    owed_ms = Math.max(owed_ms + due_ms - took_ms, -2 * MOST_AHEAD_MS)
    while (owed_ms > (disturbed() ? -MOST_AHEAD_MS : MOST_OWED_MS)) {
      const begun_ms = now_ms()
      await wait(LOOKS_EVERY_MS)
      owed_ms -= now_ms() - begun_ms
    }
  }
}

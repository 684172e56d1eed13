import { setTimeout } from 'node:timers/promises'
import { coresAreTaken } from './back-seat.ts'

/** How long others have the cores before it looks again. The set-up of a call takes several times as long. */
export const LOOKS_EVERY_MS = 2
/** Others have ended when so many looks in a row find a free core: a call that is set up waits for the disk between. */
const FREE_LOOKS = 2
/** The time that work owes to others adds up to so much. */
const MOST_OWED_MS = 100

/** Lets others of the machine work: waits while no core is free for them, but no longer than `most_ms`. */
export async function giveWay(most_ms: number): Promise<void> {
  const end_ms = performance.now() + most_ms
  let free = coresAreTaken() ? 0 : FREE_LOOKS
  while (free < FREE_LOOKS && performance.now() < end_ms) {
    await setTimeout(LOOKS_EVERY_MS)
    free = coresAreTaken() ? 0 : free + 1
  }
}

/**
 * Returns what long work waits for between its slices. Others have the cores while they use them, together for up to
 * `times` as long as the slices took.
 */
export function wayOf(times: number): (slice_ms: number) => Promise<void> {
  let owed_ms = 0
  return async slice_ms => {
    owed_ms = Math.min(owed_ms + times * slice_ms, MOST_OWED_MS)
    const begun_ms = performance.now()
    await giveWay(owed_ms)
    owed_ms = Math.max(0, owed_ms - (performance.now() - begun_ms))
  }
}

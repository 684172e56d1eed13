import { setTimeout } from 'node:timers/promises'
import { coresAreTaken } from './back-seat.ts'

/** How long others have the cores before it looks again. The set-up of a call takes several times as long. */
export const LOOKS_EVERY_MS = 2

/** Lets others of the machine work: waits while no core is free for them, but no longer than `most_ms`. */
export async function giveWay(most_ms: number): Promise<void> {
  const end_ms = performance.now() + most_ms
  while (performance.now() < end_ms && coresAreTaken()) await setTimeout(LOOKS_EVERY_MS)
}

import type { Socket } from 'node:dgram'
import type { Clock, Timer } from './clock.ts'
import type { Word } from './lifecycle.ts'

/** A process that has no work for so long sleeps: the supervisor ends it, and starts it at the next datagram. */
const AWAKE_MS = 5 * 60_000
const LOOK_MS = 30_000

/** Returns the socket whose datagrams woke this process, from its supervisor; null when nobody holds one for it. */
export function doorOfSupervisor(): Promise<Socket | null> {
  if (!process.connected) return Promise.resolve(null)
  return new Promise(resolve => {
    let door: Socket | null = null
    process.on('message', (word: Word, handle: unknown) => {
      if (word.door) {
        door = handle as Socket
        resolve(door)
      }
      for (const { bytes, ...from } of word.datagrams ?? []) {
        const datagram = Buffer.from(bytes, 'base64')
        door?.emit('message', datagram, { ...from, size: datagram.length })
      }
    })
    process.send?.({ asks_for_door: true } satisfies Word)
  })
}

/** Calls `sleep` when no work has been seen for a while, and again while that lasts. */
export function sleepWithoutWork(
  clock: Pick<Clock, 'every' | 'monotonic_ms'>,
  { works, sleep }: { readonly works: () => boolean; readonly sleep: () => void },
): Timer {
  let worked_ms = clock.monotonic_ms()
  return clock.every(LOOK_MS, () => {
    const now_ms = clock.monotonic_ms()
    if (works()) worked_ms = now_ms
    else if (now_ms - worked_ms >= AWAKE_MS) sleep()
  })
}

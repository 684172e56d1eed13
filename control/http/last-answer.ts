import type { Duplex } from 'node:stream'
import type { Clock } from '../../core/runtime/clock.ts'

const CLOSE_WITHIN_MS = 5000

/**
 * Sends the last bytes to a socket that no time limit of HTTP applies to any more, and closes it. A peer that does not
 * close its side in time is cut; to close at once could take the answer from one that still sends.
 */
export function sendLast(socket: Duplex, text: string, clock: Clock): void {
  const cut = clock.after(CLOSE_WITHIN_MS, () => socket.destroy())
  socket.once('close', () => cut.cancel())
  // Unread bytes would hide that the peer closes.
  socket.resume()
  socket.end(text)
}

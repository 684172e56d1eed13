import type { Direction, MediaLine } from './sdp.ts'

/** Who sends (RFC 3264 §5.1), and the two ways to put somebody on hold. */

/**
 * What the peer asks for; 0.0.0.0 is the hold of RFC 2543 and means that nothing may be sent to it. A browser writes
 * 0.0.0.0 too, for it does not know its address yet.
 */
export function askedDirection(line: MediaLine): Direction {
  if (!line.held_by_address || line.dtls) return line.direction
  return sends(line.direction) ? 'sendonly' : 'inactive'
}

/** Whether whoever asks for this direction puts the other side on hold: it does not want to hear it. */
export const isHold = (asked: Direction): boolean => !receives(asked)

/** The same direction as the other side sees it. */
export const reverse = (direction: Direction): Direction => directionOf(receives(direction), sends(direction))

/** What both allow. */
export const both = (a: Direction, b: Direction): Direction =>
  directionOf(sends(a) && sends(b), receives(a) && receives(b))

const sends = (direction: Direction): boolean => direction === 'sendrecv' || direction === 'sendonly'
const receives = (direction: Direction): boolean => direction === 'sendrecv' || direction === 'recvonly'
const directionOf = (send: boolean, receive: boolean): Direction =>
  send ? (receive ? 'sendrecv' : 'sendonly') : receive ? 'recvonly' : 'inactive'

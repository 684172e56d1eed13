import type { Direction, MediaLine } from './sdp.ts'

/** Directions of media (RFC 3264 §5.1), and the two forms of hold. */

/**
 * Returns the direction that the peer requests. The address 0.0.0.0 is the hold of RFC 2543: nothing may be sent to it.
 * A browser also writes 0.0.0.0, because it does not know its address yet.
 */
export function askedDirection(line: MediaLine): Direction {
  if (!line.held_by_address || line.dtls) return line.direction
  return sends(line.direction) ? 'sendonly' : 'inactive'
}

/** Reports whether a requested direction puts the other side on hold, because its audio is not wanted. */
export const isHold = (asked: Direction): boolean => !receives(asked)

/** Returns the direction from the other side's view. */
export const reverse = (direction: Direction): Direction => directionOf(receives(direction), sends(direction))

/** Returns the direction that both allow. */
export const both = (a: Direction, b: Direction): Direction =>
  directionOf(sends(a) && sends(b), receives(a) && receives(b))

const sends = (direction: Direction): boolean => direction === 'sendrecv' || direction === 'sendonly'
const receives = (direction: Direction): boolean => direction === 'sendrecv' || direction === 'recvonly'
const directionOf = (send: boolean, receive: boolean): Direction =>
  send ? (receive ? 'sendrecv' : 'sendonly') : receive ? 'recvonly' : 'inactive'

import { randomBytes } from 'node:crypto'

// Identifiers of the SIP layer. Random bytes are drawn in blocks because a call needs about a dozen identifiers.

const ALPHABET = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_', 'latin1')
const HEX = Buffer.from('0123456789abcdef', 'latin1')
const DASH = 45

/** The identifier that is being made. To append characters to a string takes ten times as long. */
const made = Buffer.alloc(36)

let pool = randomBytes(4096)
let used = 0

function byte(): number {
  if (used >= pool.length) {
    pool = randomBytes(4096)
    used = 0
  }
  return pool[used++] ?? 0
}

function token(length: number): string {
  for (let i = 0; i < length; i++) made[i] = ALPHABET[byte() & 63] ?? 0
  return made.toString('latin1', 0, length)
}

const COOKIE = 'z9hG4bK'
/** Length of a mark. */
export const MARK = 4

/**
 * Returns a Via branch with the magic cookie of RFC 3261 §8.1.1.7, the mark of the edge that makes it, and 84 random
 * bits.
 */
export function newBranch(mark = ''): string {
  return `${COOKIE}${mark}${token(14)}`
}

/** Returns the mark in a branch; other edges' branches may have anything there. */
export const markInBranch = (branch: string): string => branch.slice(COOKIE.length, COOKIE.length + MARK)

/** Returns a From or To tag: the mark of the edge that makes it and 78 random bits (RFC 3261 §19.3 requires 32). */
export function newTag(mark = ''): string {
  return `${mark}${token(13)}`
}

/** Returns a Call-ID without a host part, so that it reveals no address. */
export function newCallId(): string {
  return newUuid()
}

/** Returns a version 4 UUID. */
export function newUuid(): string {
  let at = 0
  for (let i = 0; i < 16; i++) {
    let b = byte()
    if (i === 6) b = (b & 0x0f) | 0x40
    if (i === 8) b = (b & 0x3f) | 0x80
    made[at++] = HEX[b >> 4] ?? 0
    made[at++] = HEX[b & 15] ?? 0
    if (i === 3 || i === 5 || i === 7 || i === 9) made[at++] = DASH
  }
  return made.toString('latin1')
}

/** Returns a first CSeq or RSeq number: random, positive and small enough to increment (RFC 3261 §8.1.1.5). */
export function newSequence(): number {
  return (((byte() & 0x0f) << 24) | (byte() << 16) | (byte() << 8) | byte()) + 1
}

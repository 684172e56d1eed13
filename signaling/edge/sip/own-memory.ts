/**
 * Copies a part of a message, which is a byte string. V8 keeps a whole message in memory for as long as something has a
 * part of it, and a peer may send 64 kB for each of its calls.
 */
export const inOwnMemory = (part: string): string => Buffer.from(part, 'latin1').toString('latin1')

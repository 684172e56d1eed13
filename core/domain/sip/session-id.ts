/** Stands for a side whose UUID is not known (RFC 7989 §5). */
const NULL_UUID = '0'.repeat(32)

/**
 * Reads the UUID of the sender in Session-ID (RFC 7989 §5), in lower case; null for the null UUID and for a value that
 * begins with none. Other parameters are ignored, and an older `Session-ID` (RFC 7329) has no `remote` at all.
 */
export function readSessionId(value: string | null): string | null {
  const uuid = /^\s*([0-9a-f]{32})\s*(?:;|$)/i.exec(value ?? '')?.[1]?.toLowerCase() ?? NULL_UUID
  return uuid === NULL_UUID ? null : uuid
}

/**
 * Returns the headers of a message to `receiver` that say who speaks with whom (RFC 7989 §7): the UUID of the other
 * side first. None while neither is known.
 */
export const sessionIdHeaders = (other: string | null, receiver: string | null): Record<string, string> =>
  other === null && receiver === null ? {} : { 'Session-ID': `${other ?? NULL_UUID};remote=${receiver ?? NULL_UUID}` }

const MAX_HEADERS = 32
const MAX_CHARACTERS = 4096

type Headers = Readonly<Record<string, string>>

/** Headers of standards that pass like X- headers: user-to-user information (RFC 7433), the session's id (RFC 7989). */
const PASSED: ReadonlyMap<string, string> = new Map([
  ['user-to-user', 'User-to-User'],
  ['session-id', 'Session-ID'],
])

/** Headers that a script sees besides: who diverted the call (RFC 5806), and where the caller is (RFC 6442). */
const TOLD: ReadonlyMap<string, string> = new Map([
  ...PASSED,
  ['diversion', 'Diversion'],
  ['geolocation', 'Geolocation'],
])

/** Returns the headers that pass from one side of a call to the other: X- headers and User-to-User. */
export const customHeaders = (headers: Headers): Record<string, string> => chosen(headers, PASSED)

const SESSION_ID = /^[0-9a-f]{32}(;remote=[0-9a-f]{32})?$/i

/**
 * Returns the session's id in the answer of one side, for the answer to the other (RFC 7989 §6): only to a peer that
 * sent one, so that it expects it.
 */
export function answeredSession(answered: string | null, asked: string | null): Record<string, string> {
  const id = answered?.replace(/\s/g, '') ?? ''
  return asked !== null && SESSION_ID.test(id) ? { 'Session-ID': id } : {}
}

/** Returns the headers of an INVITE that a script may see (voice-compat.md §12.1). */
export const toldHeaders = (headers: Headers): Record<string, string> => chosen(headers, TOLD)

function chosen(headers: Headers, named: ReadonlyMap<string, string>): Record<string, string> {
  const kept: Record<string, string> = {}
  let count = 0
  let characters = 0
  for (const [name, value] of Object.entries(headers)) {
    const spelt = /^x-(?!strowger)/i.test(name) ? name : named.get(name.toLowerCase())
    if (spelt === undefined) continue
    characters += name.length + value.length
    if (++count > MAX_HEADERS || characters > MAX_CHARACTERS) break
    kept[spelt] = value
  }
  return kept
}

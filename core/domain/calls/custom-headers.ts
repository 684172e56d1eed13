const MAX_HEADERS = 32
const MAX_CHARACTERS = 4096

type Headers = Readonly<Record<string, string>>

/** The header of a standard that passes like X- headers: user-to-user information (RFC 7433). */
const PASSED: ReadonlyMap<string, string> = new Map([['user-to-user', 'User-to-User']])

/**
 * Headers that a script sees besides: the session's id (RFC 7989), who diverted the call (RFC 5806), and where the
 * caller is (RFC 6442).
 */
const SCRIPT_HEADERS: ReadonlyMap<string, string> = new Map([
  ...PASSED,
  ['session-id', 'Session-ID'],
  ['diversion', 'Diversion'],
  ['geolocation', 'Geolocation'],
])

/** Returns the headers that pass from one side of a call to the other: X- headers and User-to-User. */
export const customHeaders = (headers: Headers): Record<string, string> => chosen(headers, PASSED)

/** Returns the headers of an INVITE that a script may see (voice-compat.md §12.1). */
export const applicationHeaders = (headers: Headers): Record<string, string> => chosen(headers, SCRIPT_HEADERS)

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

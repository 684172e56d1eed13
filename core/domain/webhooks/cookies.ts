/** Cookies of one call. They go back to the origin that set them and are gone with the call. */
export interface CookieJar {
  /** Value of the Cookie header for a URL, or null when there is nothing to send. */
  header(url: string, now_ms: number): string | null
  /** Keeps the Set-Cookie values of an answer from `url`. */
  store(url: string, set_cookie: readonly string[], now_ms: number): void
}

interface Cookie {
  readonly name: string
  readonly value: string
  readonly path: string
  /** Null lasts as long as the call. */
  readonly expires_ms: number | null
}

const MAX_ORIGINS = 20
const MAX_PER_ORIGIN = 50
const MAX_COOKIE_CHARACTERS = 4096

/**
 * RFC 6265, narrower: every cookie is host-only and bound to its origin, so Domain and Secure need no rule of their
 * own.
 */
export function createCookieJar(): CookieJar {
  const origins = new Map<string, Map<string, Cookie>>()
  return {
    header(text, now_ms) {
      const url = new URL(text)
      const cookies = [...(origins.get(url.origin)?.values() ?? [])]
        .filter(cookie => (cookie.expires_ms ?? now_ms + 1) > now_ms && pathMatches(url.pathname, cookie.path))
        .sort((a, b) => b.path.length - a.path.length)
      return cookies.length === 0 ? null : cookies.map(({ name, value }) => `${name}=${value}`).join('; ')
    },
    store(text, set_cookie, now_ms) {
      const url = new URL(text)
      for (const line of set_cookie.slice(0, MAX_PER_ORIGIN)) {
        const cookie = parseSetCookie(line, url.pathname, now_ms)
        if (cookie === null) continue
        const kept = origins.get(url.origin) ?? new Map<string, Cookie>()
        const key = `${cookie.name};${cookie.path}`
        // Set again means newest: the oldest is the one that makes room.
        kept.delete(key)
        if (cookie.expires_ms === null || cookie.expires_ms > now_ms) kept.set(key, cookie)
        dropOldest(kept, MAX_PER_ORIGIN)
        origins.delete(url.origin)
        if (kept.size > 0) origins.set(url.origin, kept)
        dropOldest(origins, MAX_ORIGINS)
      }
    },
  }
}

/** RFC 6265 §5.2; null when the line sets nothing. */
function parseSetCookie(line: string, request_path: string, now_ms: number): Cookie | null {
  if (line.length > MAX_COOKIE_CHARACTERS || !/^[\x20-\x7e\t]*$/.test(line)) return null
  const [pair = '', ...attributes] = line.split(';')
  const at = pair.indexOf('=')
  const name = pair.slice(0, at).trim()
  if (at < 0 || name === '') return null
  let path = defaultPath(request_path)
  let expires_ms: number | null = null
  let max_age_seen = false
  for (const attribute of attributes) {
    const [key = '', ...rest] = attribute.split('=')
    const value = rest.join('=').trim()
    const word = key.trim().toLowerCase()
    if (word === 'path' && value.startsWith('/')) path = value
    if (word === 'max-age' && /^-?\d{1,12}$/.test(value)) {
      expires_ms = now_ms + Number(value) * 1000
      max_age_seen = true
    }
    // Max-Age wins over Expires (§5.3 step 3).
    if (word === 'expires' && !max_age_seen && !Number.isNaN(Date.parse(value))) expires_ms = Date.parse(value)
  }
  return { name, value: pair.slice(at + 1).trim(), path, expires_ms }
}

/** RFC 6265 §5.1.4. */
const defaultPath = (request_path: string): string => request_path.slice(0, request_path.lastIndexOf('/')) || '/'
const pathMatches = (request: string, cookie: string): boolean =>
  request === cookie || (request.startsWith(cookie) && (cookie.endsWith('/') || request[cookie.length] === '/'))

function dropOldest(map: Map<string, unknown>, most: number): void {
  for (const key of map.keys()) {
    if (map.size <= most) return
    map.delete(key)
  }
}

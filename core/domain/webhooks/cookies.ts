import { Cookie, defaultPath, pathMatch } from 'tough-cookie'

/** The cookies of one call. They are sent only to the origin that set them, and are dropped with the call. */
export interface CookieJar {
  /** Returns the Cookie header for a URL; null for none. */
  header(url: string, now_ms: number): string | null
  /** Stores the Set-Cookie values of a response from `url`. */
  store(url: string, set_cookie: readonly string[], now_ms: number): void
}

interface Kept {
  readonly name: string
  readonly value: string
  readonly path: string
  /** Infinity for the lifetime of the call. */
  readonly expires_ms: number
}

const MAX_ORIGINS = 20
const MAX_PER_ORIGIN = 50
const MAX_COOKIE_CHARACTERS = 4096

/**
 * Implements a restricted RFC 6265: each cookie is host-only and bound to its origin, so that Domain and Secure need no
 * rule. Therefore it uses tough-cookie's parser, but not its jar.
 */
export function createCookieJar(): CookieJar {
  const origins = new Map<string, Map<string, Kept>>()
  return {
    header(text, now_ms) {
      const url = new URL(text)
      const cookies = [...(origins.get(url.origin)?.values() ?? [])]
        .filter(({ expires_ms, path }) => expires_ms > now_ms && pathMatch(url.pathname, path))
        .sort((a, b) => b.path.length - a.path.length)
      return cookies.length === 0 ? null : cookies.map(({ name, value }) => `${name}=${value}`).join('; ')
    },
    store(text, set_cookie, now_ms) {
      const url = new URL(text)
      for (const line of set_cookie.slice(0, MAX_PER_ORIGIN)) {
        const cookie = readSetCookie(line, url.pathname, now_ms)
        if (cookie === null) continue
        const kept = origins.get(url.origin) ?? new Map<string, Kept>()
        const key = `${cookie.name};${cookie.path}`
        // A cookie set again becomes the newest. The oldest is evicted first.
        kept.delete(key)
        if (cookie.expires_ms > now_ms) kept.set(key, cookie)
        dropOldest(kept, MAX_PER_ORIGIN)
        origins.delete(url.origin)
        if (kept.size > 0) origins.set(url.origin, kept)
        dropOldest(origins, MAX_ORIGINS)
      }
    },
  }
}

/** Parses a Set-Cookie line (RFC 6265 §5.2); null when it sets nothing. */
function readSetCookie(line: string, request_path: string, now_ms: number): Kept | null {
  if (line.length > MAX_COOKIE_CHARACTERS || !/^[\x20-\x7e\t]*$/.test(line)) return null
  const cookie = Cookie.parse(line)
  if (!cookie) return null
  const { key: name, value, path } = cookie
  const expires_ms = cookie.expiryTime(new Date(now_ms)) ?? Number.POSITIVE_INFINITY
  return { name, value, path: path ?? defaultPath(request_path), expires_ms }
}

function dropOldest(map: Map<string, unknown>, most: number): void {
  for (const key of map.keys()) {
    if (map.size <= most) return
    map.delete(key)
  }
}

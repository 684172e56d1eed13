/** A recording that a URL of this platform names. */
interface MediaAddress {
  readonly recording_sid: string
  /** The account in the path; null where the path has none (`/v1`). */
  readonly account_sid: string | null
}

const PATHS = [
  /^\/2010-04-01\/Accounts\/(?<account>AC[0-9a-f]{32})\/Recordings\/(?<recording>RE[0-9a-f]{32})(?:\.(?:wav|mp3))?$/,
  /^\/v1\/recordings\/(?<recording>RE[0-9a-f]{32})\.(?:wav|mp3)$/,
]

/**
 * Returns the recording whose audio is at `url`; null when it is not an address of the platform at `base_url`. Scheme,
 * user info, query and fragment do not matter: they change neither the recording nor whose it is.
 */
export function mediaAddress(url: string, base_url: string): MediaAddress | null {
  if (!URL.canParse(url) || !URL.canParse(base_url)) return null
  const [given, base] = [new URL(url), new URL(base_url)]
  if (!/^https?:$/.test(given.protocol) || given.host !== base.host) return null
  const path = unescaped(given.pathname)
  const prefix = base.pathname.replace(/\/+$/, '')
  if (path === null || !path.startsWith(`${prefix}/`)) return null
  for (const pattern of PATHS) {
    const { recording, account = null } = pattern.exec(path.slice(prefix.length))?.groups ?? {}
    if (recording !== undefined) return { recording_sid: recording, account_sid: account }
  }
  return null
}

function unescaped(path: string): string | null {
  try {
    return decodeURIComponent(path).replace(/\/{2,}/g, '/')
  } catch {
    // A path with malformed percent-encoding names nothing of ours.
    return null
  }
}

/** The caller in a Remote-Party-ID, a predecessor of P-Asserted-Identity and Privacy that is still in use. */
interface RemoteParty {
  /** The name-addr. */
  readonly address: string
  /** The number must not be shown: `privacy=full` or `privacy=uri`. */
  readonly restricted: boolean
}

/**
 * Returns the first value for the calling party; null when there is none. A missing `party` means the calling party.
 */
export function readRemoteParty(header: string | null): RemoteParty | null {
  for (const [, address = '', parameters = ''] of (header ?? '').slice(0, 2048).matchAll(VALUE)) {
    if (/;\s*party\s*=\s*"?called\b/i.test(parameters)) continue
    return { address, restricted: /;\s*privacy\s*=\s*"?(?:full|uri)\b/i.test(parameters) }
  }
  return null
}

/** Matches a URI in angle brackets with an optional display name, then its parameters. */
const VALUE = /((?:"(?:[^"\\]|\\.)*"|[^<",])*<[^<>]*>)([^,]*)/g

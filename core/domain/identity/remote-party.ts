/** What a Remote-Party-ID says of the caller: P-Asserted-Identity and Privacy in one, older and still in use. */
interface RemoteParty {
  /** The name-addr. */
  readonly address: string
  /** `privacy=full` or `uri`: the number must not be shown. */
  readonly restricted: boolean
}

/** The first value about the calling party (`party` is that when it is not said); null when there is none. */
export function readRemoteParty(header: string | null): RemoteParty | null {
  for (const [, address = '', parameters = ''] of (header ?? '').slice(0, 2048).matchAll(VALUE)) {
    if (/;\s*party\s*=\s*"?called\b/i.test(parameters)) continue
    return { address, restricted: /;\s*privacy\s*=\s*"?(?:full|uri)\b/i.test(parameters) }
  }
  return null
}

/** A URI in angle brackets, whatever name stands before it, and its parameters. */
const VALUE = /((?:"(?:[^"\\]|\\.)*"|[^<",])*<[^<>]*>)([^,]*)/g

import ipaddr from 'ipaddr.js'

/** What is known of a request: the address of its socket, and its headers with lower-case names. */
export interface RequestFacts {
  readonly peer: string
  readonly encrypted: boolean
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
}

/** Who sent a request, and how, as far as we believe it. */
export interface RequestClient {
  /** The client's address. Behind a proxy that is not trusted it is the proxy's; '' when the socket has none. */
  readonly address: string
  /** A proxy passed the request on, or somebody claims so. Such a request is never local, whatever its address. */
  readonly forwarded: boolean
  /** `address` is that of a client, not of a proxy that is not trusted. */
  readonly proved: boolean
  /** The client used TLS up to us, or up to the first trusted proxy. */
  readonly secure: boolean
  /** The host and port that the client asked for; undefined when it named none. */
  readonly host: string | undefined
}

/** Headers by which proxies tell that they passed a request on. */
const SIGNS = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip', 'via']

/**
 * Determines the client of a request. Only a trusted proxy's `X-Forwarded-For`, `-Proto` and `-Host` count. Each proxy
 * appends the address from which it got the request, so the list is read from its end: the first address that is no
 * trusted proxy is the client's, and what stands before it is what the client claims. `Forwarded` (RFC 7239) gives no
 * address, because nginx and Caddy pass on whatever a client writes there.
 */
export function clientOf(facts: RequestFacts, trusts: (address: string) => boolean): RequestClient {
  const { peer, encrypted, headers } = facts
  const forwarded = SIGNS.some(name => headers[name] !== undefined)
  const host = last(headers['host'])
  if (!forwarded || !trusts(peer)) return { address: peer, forwarded, proved: !forwarded, secure: encrypted, host }
  const hops = listOf(headers['x-forwarded-for']).map(addressIn).reverse()
  const at = hops.findIndex(hop => hop === null || !trusts(hop))
  // All hops are trusted proxies: the farthest is the client. A text that is no address hides whoever sent it.
  const address = at < 0 ? hops.at(-1) : hops[at]
  return {
    address: address ?? peer,
    forwarded,
    proved: typeof address === 'string',
    secure: last(headers['x-forwarded-proto'])?.toLowerCase() === 'https',
    host: last(headers['x-forwarded-host']) ?? host,
  }
}

const listOf = (header: string | readonly string[] | undefined): string[] =>
  [header ?? []]
    .flat()
    .flatMap(line => line.split(','))
    .map(item => item.trim())
    .filter(item => item !== '')

/** Returns the last item of a list: what the proxy next to us wrote. */
const last = (header: string | readonly string[] | undefined): string | undefined => listOf(header).at(-1)

/** Returns the address of an item, which may have a port: such as `[2001:db8::1]:80`. Null for other texts. */
function addressIn(item: string): string | null {
  const [, v6, v4] = /^(?:\[([^\]]+)\](?::\d{1,5})?|([\d.]+):\d{1,5})$/.exec(item) ?? []
  const text = v6 ?? v4 ?? item
  if (!ipaddr.IPv6.isValid(text) && !ipaddr.IPv4.isValidFourPartDecimal(text)) return null
  return ipaddr.process(text).toString()
}

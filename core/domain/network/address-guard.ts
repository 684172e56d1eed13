import ipaddr from 'ipaddr.js'

/** Decides which addresses outbound HTTP may connect to. */
export interface AddressGuard {
  /** Returns null for an allowed address, else the kind of its range, for the error's detail. */
  refusal(address: string): string | null
}

/** A public address that answers only inside its cloud: Azure's host agent. */
const METADATA = ['168.63.129.16']
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3')
const LOOPBACK = ['127.0.0.0/8', '::1/128']

/** `allow` has CIDRs, addresses, or the word `loopback`. Throws for any other entry. */
export function createAddressGuard(allow: readonly string[]): AddressGuard {
  const allowed = addressMatcher(allow)
  return {
    refusal(text) {
      if (!ipaddr.isValid(text)) return 'not an address'
      // `process` unwraps an IPv4-mapped IPv6 address, so ::ffff:127.0.0.1 is checked as 127.0.0.1.
      const address = ipaddr.process(text)
      if (allowed(text)) return null
      if (METADATA.includes(address.toString())) return 'metadata'
      const range = address.range()
      if (range !== 'unicast') return range
      // Only 2000::/3 is routed on the internet (RFC 4291 §2.4). The rest is unassigned or a disguised IPv4 address.
      if (address instanceof ipaddr.IPv6 && !address.match(GLOBAL_UNICAST)) return 'unassigned'
      return null
    },
  }
}

/** Returns a function that reports whether an address is in one of `ranges`, whose form is that of `allow` above. */
export function addressMatcher(ranges: readonly string[]): (address: string) => boolean {
  const parsed = ranges.flatMap(entry => (entry === 'loopback' ? LOOPBACK : [entry])).map(parseRange)
  return text => {
    if (!ipaddr.isValid(text)) return false
    const address = ipaddr.process(text)
    return parsed.some(range => address.kind() === range[0].kind() && address.match(range))
  }
}

function parseRange(entry: string): [ipaddr.IPv4 | ipaddr.IPv6, number] {
  if (ipaddr.isValidCIDR(entry)) return ipaddr.parseCIDR(entry)
  if (!ipaddr.isValid(entry)) throw new Error(`${entry} is neither a CIDR nor an address nor the word loopback`)
  const address = ipaddr.process(entry)
  return [address, address.kind() === 'ipv4' ? 32 : 128]
}

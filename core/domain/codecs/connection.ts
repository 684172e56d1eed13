import ipaddr from 'ipaddr.js'
import { lineName, type Notes, type SdpLine } from './sdp-text.ts'

/** Where a peer wants its media, from the c= lines of its SDP (RFC 8866 §5.7). */
export interface ConnectionData {
  /** Null for an address that cannot be sent to: 0.0.0.0, the hold of RFC 2543, or one that nobody could place. */
  readonly address: string | null
  readonly family: 'ipv4' | 'ipv6'
  readonly held: boolean
  /** What is wrong, with the line; null when the peer can be placed. */
  readonly fault: string | null
}

/** Returns the address for a host name in c=, or for a missing c= line (`null`); null when there is none. */
export type Locate = (host: string | null) => string | null

/** Reads the last c= line that is of use: those of the m= section come before those of the session. */
export function readConnection(
  own: readonly SdpLine[],
  session: readonly SdpLine[],
  locate: Locate,
  notes: Notes,
): ConnectionData {
  const lines = own.length > 0 ? own : session
  if (lines.length > 1) notes.add(lines.at(-1) ?? null, 'is one of several c= lines of its level; it counts')
  let fault: string | null = null
  for (const line of lines.toReversed()) {
    const read = readHost(line, notes)
    if (read === null) fault ??= `${lineName(line)}: names no address`
    else if ('address' in read) return placed(read.address)
    else {
      const address = located(locate(read.host), notes, line)
      if (address) return address
      fault ??= `${lineName(line)}: the host name has no address that we may send to`
    }
  }
  if (lines.length > 0) return { address: null, family: 'ipv4', held: false, fault }
  return (
    located(locate(null), notes, null) ?? { address: null, family: 'ipv4', held: false, fault: 'there is no c= line' }
  )
}

function placed(address: string): ConnectionData {
  const held = address === '0.0.0.0' || address === '::'
  return { address: held ? null : address, family: address.includes(':') ? 'ipv6' : 'ipv4', held, fault: null }
}

function located(found: string | null, notes: Notes, line: SdpLine | null): ConnectionData | null {
  const address = found === null ? null : readAddress(found)
  if (address === null) return null
  notes.add(line, `${line === null ? 'there is no c= line; the' : 'the'} media address is taken to be ${address}`)
  return placed(address)
}

const HOST_NAME =
  /^(?=.{1,253}$)(?=.*[a-z])[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*\.?$/i

/** Reads `IN IP4 192.0.2.1/127`. The last word is the host, whatever stands before it. */
function readHost(line: SdpLine, notes: Notes): { readonly address: string } | { readonly host: string } | null {
  const words = line.value.split(' ')
  const [written = ''] = (words.at(-1) ?? '').split('/')
  const address = readAddress(written)
  const tag = address?.includes(':') ? 'IP6' : 'IP4'
  if (words.length !== 3 || words[0] !== 'IN' || !/^IP[46]$/.test(words[1] ?? '') || (address && words[1] !== tag))
    notes.add(line, `is read as IN ${tag} ${written}`)
  if (address !== null) return { address }
  if (/^IP[46]$/i.test(written)) return null
  return HOST_NAME.test(written) ? { host: written } : null
}

/**
 * Returns an address literal in its shortest form; null for anything else. Accepts brackets and a zone around IPv6,
 * zeros before the decimals of IPv4, and IPv4 mapped into IPv6.
 */
function readAddress(text: string): string | null {
  const bare = /[[%]/.test(text) ? text.replace(/^\[(.*)\]$/, '$1').replace(/%.*$/, '') : text
  if (/^(\d{1,3}\.){3}\d{1,3}$/.test(bare)) {
    const parts = bare.split('.').map(Number)
    return parts.every(part => part <= 255) ? parts.join('.') : null
  }
  if (!ipaddr.IPv6.isValid(bare)) return null
  const address = ipaddr.IPv6.parse(bare)
  return address.isIPv4MappedAddress() ? address.toIPv4Address().toString() : address.toString()
}

/** An IP address as 32-bit words: one for IPv4, four for IPv6. An IPv4-mapped IPv6 address is stored as IPv4. */
interface Address {
  readonly words: readonly number[]
}

/** Formats a host for a URI or Via: puts IPv6 addresses in brackets. */
export const uriHost = (host: string): string => (host.includes(':') && !host.startsWith('[') ? `[${host}]` : host)

const V4 = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/

export function parseAddress(text: string): Address | null {
  const v4 = parseV4(text)
  if (v4 !== null) return { words: [v4] }
  return text.includes(':') && text.length <= 64 ? parseV6(text) : null
}

/** The key by which limits count clients: an IPv4 address, or the /64 of an IPv6 address. One machine may use a /64. */
export function hostGroup(text: string): string {
  const words = text.includes(':') ? parseAddress(text)?.words : undefined
  if (!words) return text
  const [first = 0] = words
  return words.length === 1 ? [24, 16, 8, 0].map(bits => (first >>> bits) & 255).join('.') : words.slice(0, 2).join(':')
}

export interface Network extends Address {
  readonly prefix_length: number
}

/** Parses `address` or `address/length` and ignores host bits. Returns null for anything else. */
export function parseNetwork(cidr: string): Network | null {
  const slash = cidr.indexOf('/')
  const host = slash < 0 ? cidr : cidr.slice(0, slash)
  const address = parseAddress(host)
  if (!address) return null
  const mapped = address.words.length === 1 && host.includes(':')
  const bits = address.words.length * 32
  if (slash < 0) return { ...address, prefix_length: bits }
  if (!/^\d{1,3}$/.test(cidr.slice(slash + 1))) return null
  const length = Number(cidr.slice(slash + 1)) - (mapped ? 96 : 0)
  return length >= 0 && length <= bits ? { ...address, prefix_length: length } : null
}

const BITS = 32

/** Returns a key that sorts in address order; null when the text is not an address. */
export function addressKey(text: string): string | null {
  const address = parseAddress(text)
  return address && keyOf(address.words)
}

/** Returns the keys of the first and last address of a range. */
export function keysOfRange(cidr: string): { readonly first: string; readonly last: string } | null {
  const network = parseNetwork(cidr)
  if (!network) return null
  const hosts = hostBits(network.words.length, network.prefix_length)
  return {
    first: keyOf(firstWords(network, network.prefix_length)),
    last: keyOf(network.words.map((word, at) => (word | (hosts[at] ?? 0)) >>> 0)),
  }
}

/**
 * Returns the canonical key of a range: it sorts among address keys and does not depend on how the range was written.
 * Null when the text is not a CIDR.
 */
export function rangeKey(cidr: string): string | null {
  const network = parseNetwork(cidr)
  return network && keyOfPrefix(network, network.prefix_length)
}

/** The range keys that overlap a range: subranges sort between `first` and `last`; `around` lists its supernets. */
interface OverlapKeys {
  readonly first: string
  readonly last: string
  readonly around: readonly string[]
}

export function overlapKeys(cidr: string): OverlapKeys | null {
  const network = parseNetwork(cidr)
  const ends = keysOfRange(cidr)
  if (!network || !ends) return null
  const around = Array.from({ length: network.prefix_length }, (_, length) => keyOfPrefix(network, length))
  return { first: ends.first, last: `${ends.last}${AFTER_LENGTHS}`, around }
}

/** Sorts after every `/` and prefix length. */
const AFTER_LENGTHS = '~'

const keyOfPrefix = (address: Address, length: number): string =>
  `${keyOf(firstWords(address, length))}/${String(length).padStart(3, '0')}`

/** Returns a mask of the host bits of each word for a prefix length. */
const hostBits = (words: number, length: number): number[] =>
  Array.from({ length: words }, (_, at) => {
    const bits = Math.min(BITS, Math.max(0, length - at * BITS))
    return bits === BITS ? 0 : 0xffffffff >>> bits
  })

const firstWords = ({ words }: Address, length: number): number[] => {
  const hosts = hostBits(words.length, length)
  return words.map((word, at) => (word & ~(hosts[at] ?? 0)) >>> 0)
}

const keyOf = (words: readonly number[]): string =>
  (words.length === 1 ? '4:' : '6:') + words.map(word => word.toString(16).padStart(8, '0')).join('')

function parseV4(text: string): number | null {
  const match = V4.exec(text)
  if (!match) return null
  let word = 0
  for (let index = 1; index <= 4; index++) {
    const octet = Number(match[index])
    if (octet > 255) return null
    word = (word << 8) | octet
  }
  return word >>> 0
}

function parseV6(text: string): Address | null {
  const zone = text.indexOf('%')
  const bare = zone < 0 ? text : text.slice(0, zone)
  const halves = bare.split('::')
  if (halves.length > 2) return null
  const head = groups(halves[0] ?? '')
  const tail = halves.length === 2 ? groups(halves[1] ?? '') : []
  if (!head || !tail) return null
  const missing = 8 - head.length - tail.length
  if (halves.length === 2 ? missing < 1 : missing !== 0) return null
  const all = [...head, ...Array<number>(missing).fill(0), ...tail]
  const words = [0, 2, 4, 6].map(at => (((all[at] ?? 0) << 16) | (all[at + 1] ?? 0)) >>> 0)
  if (words[0] === 0 && words[1] === 0 && words[2] === 0xffff) return { words: [words[3] ?? 0] }
  return { words }
}

function groups(part: string): number[] | null {
  if (part === '') return []
  const result: number[] = []
  const pieces = part.split(':')
  for (const [index, piece] of pieces.entries()) {
    const v4 = index === pieces.length - 1 ? parseV4(piece) : null
    if (v4 !== null) result.push(v4 >>> 16, v4 & 0xffff)
    else if (/^[0-9a-f]{1,4}$/i.test(piece)) result.push(Number.parseInt(piece, 16))
    else return null
  }
  return result
}

import { isIPv4, isIPv6 } from 'node:net'

/**
 * Ranges of addresses as migrations read them. It is a copy of what core/domain/identity said when they landed, and
 * never changes: an old database must become the same whenever it is brought up to date.
 */
export interface FrozenRange {
  /** `4:` or `6:` and the address in hexadecimal digits: sorts as addresses do. */
  readonly first: string
  readonly last: string
  readonly length: number
  readonly bits: 32 | 128
}

/** Null when it is no CIDR. */
export function frozenRange(cidr: string): FrozenRange | null {
  const [host = '', given, ...more] = cidr.split('/')
  const digits = digitsOf(host)
  if (digits === null || more.length > 0 || (given !== undefined && !/^\d{1,3}$/.test(given))) return null
  const bits = digits.length === 8 ? 32 : 128
  const mapped = bits === 32 && host.includes(':')
  const length = given === undefined ? bits : Number(given) - (mapped ? 96 : 0)
  if (length < 0 || length > bits) return null
  const hosts = (1n << BigInt(bits - length)) - 1n
  const address = BigInt(`0x${digits}`)
  const key = (value: bigint): string => `${bits === 32 ? 4 : 6}:${value.toString(16).padStart(bits / 4, '0')}`
  return { first: key(address & ~hosts), last: key(address | hosts), length, bits }
}

export const frozenRangeKey = ({ first, length }: FrozenRange): string => `${first}/${String(length).padStart(3, '0')}`

export const frozenOverlap = (a: FrozenRange, b: FrozenRange): boolean => a.first <= b.last && b.first <= a.last

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0')

function digitsOf(host: string): string | null {
  if (isIPv4(host)) return ofV4(host)
  const bare = host.replace(/%.*$/, '')
  if (!isIPv6(bare)) return null
  const text = bare.replace(/[^:]+\.[^:]+$/, v4 => ofV4(v4).replace(/^(....)/, '$1:'))
  const [head = [], tail = []] = text.split('::').map(part => part.split(':').filter(group => group !== ''))
  const groups = [...head, ...Array<string>(8 - head.length - tail.length).fill('0'), ...tail]
  const digits = groups.map(group => group.padStart(4, '0').toLowerCase()).join('')
  return digits.startsWith(`${'0'.repeat(20)}ffff`) ? digits.slice(24) : digits
}

const ofV4 = (text: string): string =>
  text
    .split('.')
    .map(octet => hex(Number(octet), 2))
    .join('')

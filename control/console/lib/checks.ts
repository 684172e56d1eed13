/** Checks of inputs while the user types. The API validates them again when the form is sent. */

const IPV4 = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})(?:\/(\d{1,2}))?$/
const IPV6 = /^[0-9a-fA-F:]+(?:%\w+)?(?:\/(\d{1,3}))?$/

/** Returns an error, or null when `text` is an address or a network in CIDR form. */
export function wrongSource(text: string): string | null {
  const four = IPV4.exec(text)
  if (four) {
    const parts = four.slice(1, 5).map(Number)
    if (parts.some(part => part > 255)) return `${text}: each part is at most 255`
    const bits = four[5] === undefined ? 32 : Number(four[5])
    if (bits > 32) return `${text}: a prefix is at most /32`
    const value = parts.reduce((sum, part) => sum * 256 + part, 0)
    const size = 2 ** (32 - bits)
    if (value % size !== 0)
      return `${text}: address bits behind the prefix; the network is ${network(value, size, bits)}`
    return null
  }
  const six = IPV6.exec(text)
  if (six && text.includes(':')) return Number(six[1] ?? 0) > 128 ? `${text}: a prefix is at most /128` : null
  return `${text} is neither an address nor a network such as 203.0.113.0/24`
}

function network(value: number, size: number, bits: number): string {
  const base = value - (value % size)
  const parts = [24, 16, 8, 0].map(shift => Math.floor(base / 2 ** shift) % 256)
  return `${parts.join('.')}/${bits}`
}

export const linesOf = (text: string): readonly string[] =>
  text
    .split(/[\s,]+/)
    .map(line => line.trim())
    .filter(line => line !== '')

export const wrongSources = (text: string): string | null =>
  linesOf(text)
    .map(wrongSource)
    .filter(message => message !== null)
    .join('; ') || null

export function wrongSipUri(text: string, transport: string): string | null {
  if (text === '') return null
  const match = /^(sips?):(?:[^@\s]+@)?(\[[0-9a-fA-F:]+\]|[^\s:;?@]+)(?::(\d+))?(?:;[^\s]*)?$/.exec(text)
  if (!match) return 'is written sip:host or sip:host:port'
  if (match[3] !== undefined && (Number(match[3]) < 1 || Number(match[3]) > 65_535)) return 'has no such port'
  if (match[1] === 'sips' && transport !== 'tls') return 'sips: needs the transport TLS'
  return null
}

export const wrongNumber = (text: string): string | null =>
  text === '' || /^\+[1-9]\d{6,14}$/.test(text)
    ? null
    : 'is written as +, country code and number, such as +2348012345678'

export function wrongUrl(text: string): string | null {
  if (text === '') return null
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) ? null : 'is an http or https address'
}

import type { WorldCase } from './sip-world.ts'

// Changes of a SIP message that must change nothing of what it means (RFC 3261 §7.3.1, §7.3.3; RFC 5621).

/** A number from 0 to 1, the same for the same seed. */
type Random = () => number

/** Mulberry32. */
export function randomOf(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Returns the changed message, or null when the change does not apply to it. */
type Mutation = (one: WorldCase, random: Random) => WorldCase | null

const COMPACT: Readonly<Record<string, string>> = {
  ...{ via: 'v', from: 'f', to: 't', 'call-id': 'i', contact: 'm', 'content-type': 'c', 'content-length': 'l' },
  ...{ subject: 's', supported: 'k', 'content-encoding': 'e', 'session-expires': 'x', 'refer-to': 'r', identity: 'y' },
}
const LONG = new Map(Object.entries(COMPACT).map(([long, compact]) => [compact, long]))
/** Headers whose lines may be joined by commas, in their order (RFC 3261 §7.3.1). */
const LISTS = new Set([
  'via',
  'diversion',
  'history-info',
  'p-asserted-identity',
  'record-route',
  'supported',
  'require',
])

interface Line {
  readonly name: string
  /** The long name in lower case. */
  readonly of: string
  readonly value: string
}

function lineOf(header: string): Line {
  const colon = header.indexOf(':')
  const name = header.slice(0, colon).trimEnd()
  const lower = name.toLowerCase()
  const value = header
    .slice(colon + 1)
    .replaceAll(/\r\n[ \t]+/g, ' ')
    .trim()
  return { name, of: LONG.get(lower) ?? lower, value }
}

const eachLine =
  (change: (line: Line, random: Random) => string): Mutation =>
  (one, random) => ({ ...one, headers: one.headers.map(header => change(lineOf(header), random)) })

const pick = (random: Random, below: number): number => Math.floor(random() * below)

/** Replaces what `change` finds outside of quotes and angle brackets. */
function outside(value: string, change: (text: string) => string): string {
  return value.replaceAll(/("(?:[^"\\]|\\.)*"|<[^>]*>)|([^"<]+)/g, (all, kept?: string) => (kept ? all : change(all)))
}

/** Puts the headers into another order. Lines of one name keep theirs. */
const reordered: Mutation = (one, random) => {
  const rest = new Map<string, string[]>()
  for (const header of one.headers) {
    const { of } = lineOf(header)
    rest.set(of, [...(rest.get(of) ?? []), header])
  }
  const headers: string[] = []
  while (rest.size > 0) {
    const [name, lines] = [...rest][pick(random, rest.size)] ?? ['', []]
    headers.push(lines[0] ?? '')
    if (lines.length === 1) rest.delete(name)
    else rest.set(name, lines.slice(1))
  }
  return { ...one, headers }
}

/** Adds a parameter that nobody knows to headers that may have some. */
const parameters: Mutation = eachLine(({ name, of, value }) => {
  const may =
    ['via', 'from', 'to', 'contact', 'content-type'].includes(of) && !outside(value, text => text).includes(',')
  return `${name}: ${value}${may ? ';zebra=1;x-lion' : ''}`
})

const strange = ['Zebra-Stripes: black, white', 'Zebra-Stripes: "a;b, c" <sip:nobody@example.com>;tag=zebra', 'Q: ']

/** Adds headers that nobody knows, one of them repeated. */
const strangers: Mutation = (one, random) => {
  const headers = [...one.headers]
  for (const header of [...strange, ...strange]) headers.splice(pick(random, headers.length + 1), 0, header)
  return { ...one, headers }
}

/** Joins the lines of a list into one. */
const joined: Mutation = one => {
  const lines = one.headers.map(lineOf)
  const double = (of: string): boolean => LISTS.has(of) && lines.filter(line => line.of === of).length > 1
  if (!lines.some(({ of }) => double(of))) return null
  const seen = new Set<string>()
  const headers = lines.flatMap(({ name, of, value }, at) => {
    if (!double(of)) return [one.headers[at] ?? '']
    if (seen.has(of)) return []
    seen.add(of)
    return [
      `${name}: ${[value, ...lines.slice(at + 1).flatMap(other => (other.of === of ? other.value : []))].join(', ')}`,
    ]
  })
  return { ...one, headers }
}

/** Puts a session description into a multipart body, beside a part that need not be understood (RFC 5621 §3.1). */
const wrapped: Mutation = one => {
  const lines = one.headers.map(lineOf)
  const type = lines.find(({ of }) => of === 'content-type')?.value ?? ''
  const fixed = lines.some(({ of, value }) => of === 'content-length' && value !== '{length}')
  if (!/^application\/sdp$/i.test(type) || fixed || lines.some(({ of }) => of === 'content-encoding')) return null
  const body = [
    ...['--zebra', 'Content-Type: application/isup;version=itu-t92+', 'Content-Disposition: signal;handling=optional'],
    ...['', 'nothing', '--zebra', `Content-Type: ${type}`, '', one.body, '--zebra--', ''],
  ].join('\r\n')
  const headers = one.headers
    .filter((_header, at) => lines[at]?.of !== 'content-type' && lines[at]?.of !== 'content-disposition')
    .concat('Content-Type: multipart/mixed;boundary=zebra', 'MIME-Version: 1.0')
  return { ...one, headers, body }
}

export const MUTATIONS: Readonly<Record<string, Mutation>> = {
  'the order of headers': reordered,
  folding: eachLine(
    ({ name, value }, random) =>
      `${name}:\r\n ${outside(value, text => text.replaceAll(' ', blank => (random() < 0.5 ? '\r\n\t' : blank)))}`,
  ),
  'compact and long names': eachLine(({ name, of, value }) => {
    const other = name.length === 1 ? of : (COMPACT[of] ?? name)
    return `${other}: ${value}`
  }),
  'the case of names': eachLine(
    ({ name, value }, random) =>
      `${[...name].map(c => (random() < 0.5 ? c.toUpperCase() : c.toLowerCase())).join('')}: ${value}`,
  ),
  'the case of tokens': eachLine(({ name, of, value }) => {
    if (of === 'via') return `${name}: ${value.replace(/^SIP\/2\.0\/(\w+)/i, token => token.toLowerCase())}`
    if (of === 'content-type') return `${name}: ${value.replace(/^[^;]*/, type => type.toUpperCase())}`
    if (of === 'from' || of === 'to')
      return `${name}: ${value.replace(/;tag=/i, ';TAG=').replace(/^([^"<]*)<sip:/, '$1<SIP:')}`
    return `${name}: ${value}`
  }),
  'blanks around the colon and at the end': eachLine(
    ({ name, value }, random) =>
      `${name}${[' ', '\t', ''][pick(random, 3)]}:${[' ', '  \t', ''][pick(random, 3)]}${value}  `,
  ),
  'unknown headers': strangers,
  'unknown parameters': parameters,
  'joined lines': joined,
  'a multipart around the session description': wrapped,
}

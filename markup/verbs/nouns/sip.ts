import type { DialledUri } from '../../interpreter/types.ts'
import { integer, text } from '../attributes.ts'
import { isNode, type Node, type Report, shape } from '../shape.ts'
import { childAttributes, DETECTION } from './shared.ts'

const CREDENTIALS = {
  username: text({ max: 255, number: 13249, effect: 'child' }),
  password: text({ max: 255, number: 13249, effect: 'child' }),
}

const sipUri = shape(
  'Uri',
  {
    ...CREDENTIALS,
    priority: integer({ default: 10, min: 0, max: 65_535 }),
    weight: integer({ default: 10, min: 0, max: 65_535 }),
  },
  { content: 'text' },
)
const sipParameter = shape(
  'Parameter',
  { name: text({ max: 500 }), value: text({ max: 500 }) },
  { unsupported: '<Parameter> inside <Sip> has no effect here: a SIP destination gets <Headers>' },
)
const header = shape('Header', { name: text({ max: 256 }), value: text({ max: 1024, number: 13253 }) })
const headers = shape('Headers', {}, { nouns: [header] })

/** Headers other than `X-…` that a document may set on the INVITE or REFER (voice-compat.md §12.1). */
const ALLOWED = new Set(['user-to-user', 'remote-party-id', 'p-preferred-identity', 'p-called-party-id'])
const MAX_HEADER_CHARACTERS = 1024

export const sip = shape(
  'Sip',
  { ...childAttributes(13241), ...CREDENTIALS, ...DETECTION },
  {
    content: 'text',
    nouns: [sipUri, headers, sipParameter],
    inspect(node, report) {
      sipTarget(node, report)
    },
  },
)

/** The Sip noun of a Refer, which has only a URI and its headers. */
export const referSip = shape('Sip', {}, { content: 'text' })

interface SipTarget {
  readonly uris: readonly DialledUri[]
  readonly headers: readonly (readonly [string, string])[]
}

/**
 * Reads the URIs and headers of a Sip noun and reports dropped headers. Returns `refused`, which fails the child, when
 * a URI is missing, malformed or too long.
 */
export function sipTarget(node: Node, report: Report): SipTarget | { readonly refused: string } {
  const about = { place: node.element, element: 'Sip' }
  const written = node.nouns.filter(noun => isNode(sipUri, noun))
  const sources = written.length > 0 ? written : [node]
  const uris: DialledUri[] = []
  const pairs: [string, string][] = []
  for (const source of sources) {
    const split = splitUri(source.text)
    if (!split) {
      const detail = `"${source.text.slice(0, 60)}" is not a sip: URI of up to 255 characters`
      report({ ...about, rule: 'content', number: 13243, effect: 'child', detail, place: source.element })
      return { refused: detail }
    }
    pairs.push(...split.headers)
    const { username, password, priority, weight } = source.attributes as Record<string, string | number | null>
    uris.push({
      uri: split.uri,
      username: credential(username) ?? credential(node.attributes['username']),
      password: credential(password) ?? credential(node.attributes['password']),
      priority: typeof priority === 'number' ? priority : 10,
      weight: typeof weight === 'number' ? weight : 10,
    })
  }
  for (const noun of node.nouns.filter(noun => isNode(headers, noun)).flatMap(noun => noun.nouns)) {
    if (isNode(header, noun)) pairs.push([noun.attributes.name ?? '', noun.attributes.value ?? ''])
  }
  // Lower priorities first. The executor picks by weight among equals.
  uris.sort((a, b) => a.priority - b.priority)
  return { uris, headers: allowedHeaders(pairs, finding => report({ ...about, ...finding })) }
}

type HeaderReport = (finding: { rule: 'bad_value'; number: number; detail: string }) => void

function allowedHeaders(pairs: readonly (readonly [string, string])[], report: HeaderReport): [string, string][] {
  const kept: [string, string][] = []
  let characters = 0
  for (const [name, value] of pairs) {
    const lower = name.toLowerCase()
    const permitted = (lower.startsWith('x-') && !lower.startsWith('x-strowger-')) || ALLOWED.has(lower)
    if (!permitted || !/^[A-Za-z0-9-]{1,256}$/.test(name) || /[\u0000-\u001f\u007f]/.test(value)) {
      report({
        rule: 'bad_value',
        number: 13252,
        detail: `header "${name.slice(0, 60)}" is not allowed; it is dropped`,
      })
      continue
    }
    characters += name.length + value.length
    if (characters > MAX_HEADER_CHARACTERS) {
      const detail = `headers have over ${MAX_HEADER_CHARACTERS} characters; "${name.slice(0, 60)}" is dropped`
      report({ rule: 'bad_value', number: 13253, detail })
      continue
    }
    kept.push([name, value])
  }
  return kept
}

/**
 * Splits `sip:user@host;params?Name=value&…` into the URI and its headers, percent-decoded once. Returns null for a
 * malformed URI.
 */
function splitUri(text: string): { uri: string; headers: [string, string][] } | null {
  const [uri = '', query] = text.split(/\?(.*)/s)
  if (uri.length > 255) return null
  if (
    !/^sips?:(?:[^\s@<>"]{1,200}@)?(?:\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9.-]{1,253})(?::\d{1,5})?(?:;[^\s<>"]*)?$/i.test(
      uri,
    )
  ) {
    return null
  }
  if (/;transport=(?!(?:udp|tcp|tls)(?:;|$))/i.test(uri)) return null
  const headers: [string, string][] = []
  for (const pair of (query ?? '').split('&').filter(Boolean)) {
    const [name = '', value = ''] = pair.split(/=(.*)/s)
    headers.push([decode(name), decode(value)])
  }
  return { uri, headers }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function credential(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

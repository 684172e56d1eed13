import { splitList, unquoted, valueParams } from './uri.ts'

/**
 * The reader of message bodies by their Content-Type (RFC 3261 §7.4 and §8.2.3, RFC 5621, RFC 2046 §5.1). It finds the
 * session description wherever it is, hands out the parts that somebody reads, and leaves optional parts alone. One
 * pass over the text for each level of nesting, of which there are at most four.
 */

/** One body, or one part of a multipart body. */
interface BodyPart {
  /** In lower case, without parameters; '' when none is given. */
  readonly type: string
  /** The disposition type in lower case (RFC 3261 §20.11); '' when none is given. */
  readonly disposition: string
  /** `optional` and `required` as written; '' when it is not said. */
  readonly handling: string
  /** Content-ID without angle brackets (RFC 2392); '' without one. */
  readonly id: string
  readonly content: string
}

export interface BodyReading {
  /** The session description; '' when there is none. */
  readonly sdp: string
  /** All parts that are no multipart, in their order. */
  readonly parts: readonly BodyPart[]
  /** What cannot be handled and must be, for a 415; null when the message can be handled. */
  readonly refused: BodyRefusal | null
  /** What was read otherwise than written. */
  readonly notes: readonly string[]
}

interface BodyRefusal {
  /** What the body has. */
  readonly value: string
  /** Headers of the 415 (RFC 3261 §21.4.13). */
  readonly headers: Readonly<Record<string, string>>
}

/** Header values of a message or of a part, as received; null when absent. */
interface Described {
  readonly type: string | null
  readonly disposition: string | null
  readonly encoding: string | null
  readonly transfer_encoding?: string | null
  readonly id?: string | null
}

export const SDP_TYPE = 'application/sdp'
/** A location by value (RFC 6442 §4.1). */
export const PIDF_TYPE = 'application/pidf+xml'
/** What requests that set up or change a session may carry. */
const IN_CALLS: ReadonlySet<string> = new Set([SDP_TYPE, PIDF_TYPE])
const ACCEPT = 'application/sdp, application/pidf+xml, multipart/mixed, multipart/related, multipart/alternative'

const MAX_PARTS = 32
const MAX_DEPTH = 4
const MAX_PART_HEADERS = 32
const EMPTY: BodyReading = { sdp: '', parts: [], refused: null, notes: [] }

/** Reads the body of a message. `understood`: the types that its reader can handle. */
export function readBody(body: string, described: Described, understood = IN_CALLS): BodyReading {
  if (body === '') return EMPTY
  const reader = new Reader(understood)
  const root = reader.read(body, described, 0)
  if (reader.parts.length === 1 && !root.multipart) return reader.alone()
  return reader.together()
}

/** Returns the type of a Content-Type value in lower case, without parameters; '' when there is none. */
export const mediaType = (value: string | null): string => firstOf(value).split(';', 1)[0]?.trim().toLowerCase() ?? ''

/** Two lines of one header arrive as one value with a comma. */
const firstOf = (value: string | null): string => (value?.includes(',') ? (splitList(value)[0] ?? '') : (value ?? ''))

interface Leaf extends BodyPart {
  /** An encoding that we cannot undo; '' when the content is plain. */
  readonly encoded: string
  /** One of several forms of the same content (RFC 2046 §5.1.4), told apart by the group's number; 0 otherwise. */
  readonly alternative: number
}

class Reader {
  readonly parts: Leaf[] = []
  readonly #understood: ReadonlySet<string>
  readonly #notes: string[] = []
  #groups = 0
  #broken: string | null = null

  constructor(understood: ReadonlySet<string>) {
    this.#understood = understood
  }

  read(body: string, described: Described, depth: number, alternative = 0): { readonly multipart: boolean } {
    const given = mediaType(described.type)
    if (given.startsWith('multipart/') && depth < MAX_DEPTH) {
      this.#multipart(body, given, described, depth)
      return { multipart: true }
    }
    const type = given === '' && isSdp(body) ? SDP_TYPE : given
    if (type !== given) this.#notes.push('a body without Content-Type was read as application/sdp')
    const disposition = firstOf(described.disposition)
    const plain = transferred(body, described.transfer_encoding ?? null)
    const encoding = (described.encoding ?? '').trim().toLowerCase()
    this.parts.push({
      type,
      disposition: disposition.split(';', 1)[0]?.trim().toLowerCase() ?? '',
      handling: unquoted(valueParams(disposition).get('handling') ?? '').toLowerCase(),
      id: (described.id ?? '').trim().replace(/^<|>$/g, ''),
      content: plain ?? body,
      encoded: plain === null ? (described.transfer_encoding ?? '') : encoding === 'identity' ? '' : encoding,
      alternative,
    })
    return { multipart: false }
  }

  /** A body that is not a multipart: one that nobody understands is refused, unless it says that it is optional. */
  alone(): BodyReading {
    const [part] = this.parts
    const readable = part !== undefined && this.#reads(part)
    if (!part || readable || part.handling === 'optional') return this.#result(part && readable ? part : undefined)
    return { ...this.#result(undefined), refused: refusalOf(part) }
  }

  /**
   * Parts of a multipart body: one that is marked as required must be understood. RFC 3261 §20.11 takes a part that
   * says nothing for a required one; devices rarely say it, and the call needs no such part, so it is left alone.
   */
  together(): BodyReading {
    const readable = this.parts.filter(part => this.#reads(part))
    const groups = new Set(readable.map(({ alternative }) => alternative))
    const missing = this.parts.find(
      part =>
        part.handling === 'required' &&
        !readable.includes(part) &&
        !(part.alternative !== 0 && groups.has(part.alternative)),
    )
    const sessions = readable.filter(isSession)
    // The last of alternatives is the best one (RFC 2046 §5.1.4).
    const session = sessions.findLast(({ alternative }) => alternative !== 0) ?? sessions[0]
    if (sessions.length > 1) this.#notes.push('the body holds several session descriptions; one was read')
    const left = this.parts.filter(part => !readable.includes(part)).map(({ type }) => type || 'text/plain')
    if (left.length > 0) this.#notes.push(`parts of the body were left alone: ${[...new Set(left)].join(', ')}`)
    const hidden = this.parts.find(part => part.type === SDP_TYPE && part.encoded !== '')
    const refused =
      this.#broken !== null
        ? { value: this.#broken, headers: { Accept: ACCEPT } }
        : missing
          ? refusalOf(missing)
          : hidden && !session
            ? refusalOf(hidden)
            : null
    return { ...this.#result(session), refused }
  }

  #reads(part: Leaf): boolean {
    return part.encoded === '' && this.#understood.has(part.type)
  }

  #result(session: Leaf | undefined): BodyReading {
    return {
      sdp: session && isSession(session) ? session.content : '',
      parts: this.parts,
      refused: null,
      notes: this.#notes,
    }
  }

  #multipart(body: string, type: string, described: Described, depth: number): void {
    const boundary = unquoted(valueParams(firstOf(described.type)).get('boundary') ?? '')
    const found = boundary === '' ? guessedBoundary(body) : boundary
    if (boundary === '') this.#notes.push(`${type} names no boundary; its first line was taken for it`)
    const { pieces, closed } = piecesOf(body, found)
    if (!closed && pieces.length > 0) this.#notes.push(`${type} has no end; its last part ends with the body`)
    if (pieces.length === 0) this.#broken ??= `${type} without a part`
    const alternative = type === 'multipart/alternative' ? ++this.#groups : 0
    for (const piece of pieces) {
      if (this.parts.length >= MAX_PARTS) {
        this.#notes.push(`the body has more than ${MAX_PARTS} parts; later ones were not read`)
        return
      }
      const { headers, content } = headersOf(piece)
      const header = (name: string): string | null => headers.get(name) ?? null
      this.read(
        content,
        {
          type: header('content-type'),
          disposition: header('content-disposition'),
          encoding: header('content-encoding'),
          transfer_encoding: header('content-transfer-encoding'),
          id: header('content-id'),
        },
        depth + 1,
        alternative,
      )
    }
  }
}

/** RFC 3959: an early-session description is for early media of an application server, not for this session. */
const isSession = ({ type, disposition }: BodyPart): boolean => type === SDP_TYPE && disposition !== 'early-session'

const isSdp = (body: string): boolean => /^\s{0,8}v\s{0,2}=/.test(body.slice(0, 16))

function refusalOf({ type, encoded, disposition }: Leaf): BodyRefusal {
  const named = type === '' ? 'no Content-Type' : disposition === '' ? type : `${type} (${disposition})`
  if (encoded === '') return { value: named, headers: { Accept: ACCEPT } }
  return { value: `${named}, encoded as ${encoded}`, headers: { 'Accept-Encoding': 'identity' } }
}

/** Returns what stands between the delimiter lines (RFC 2046 §5.1.1), and whether the closing delimiter was found. */
function piecesOf(body: string, boundary: string): { readonly pieces: readonly string[]; readonly closed: boolean } {
  const pieces: string[] = []
  if (boundary === '' || boundary.length > 256) return { pieces, closed: false }
  const delimiter = `--${boundary}`
  let start = -1
  for (let at = body.indexOf(delimiter); at >= 0; at = body.indexOf(delimiter, at + delimiter.length)) {
    if (at > 0 && body.charCodeAt(at - 1) !== 10) continue
    let end = at + delimiter.length
    const closes = body.startsWith('--', end)
    if (closes) end += 2
    while (body.charCodeAt(end) === 32 || body.charCodeAt(end) === 9) end++
    const c = body.charCodeAt(end)
    // A longer boundary begins with this one.
    if (end < body.length && c !== 13 && c !== 10) continue
    if (start >= 0) pieces.push(withoutBreak(body.slice(start, at)))
    if (closes) return { pieces, closed: true }
    start = end + (c === 13 && body.charCodeAt(end + 1) === 10 ? 2 : 1)
  }
  if (start >= 0 && start < body.length) pieces.push(body.slice(start))
  return { pieces, closed: false }
}

/** The line break before a delimiter belongs to the delimiter. */
const withoutBreak = (text: string): string =>
  text.endsWith('\r\n') ? text.slice(0, -2) : text.endsWith('\n') ? text.slice(0, -1) : text

function guessedBoundary(body: string): string {
  const at = body.startsWith('--') ? 0 : body.indexOf('\n--') + 1
  if (!body.startsWith('--', at)) return ''
  const end = body.indexOf('\n', at)
  return body.slice(at + 2, end < 0 ? body.length : end).trim()
}

/** Splits a part into its headers, by lower-case name, and its content. A part may have no headers at all. */
function headersOf(piece: string): { readonly headers: ReadonlyMap<string, string>; readonly content: string } {
  const headers = new Map<string, string>()
  // Some peers leave out the empty line, too.
  if (!/^(?:[A-Za-z][A-Za-z0-9-]*[ \t]*:|[ \t]*\r?\n)/.test(piece.slice(0, 200))) return { headers, content: piece }
  let at = 0
  let last = ''
  for (let lines = 0; lines < MAX_PART_HEADERS && at < piece.length; lines++) {
    const feed = piece.indexOf('\n', at)
    const end = feed < 0 ? piece.length : feed
    const line = piece.slice(at, end).trimEnd()
    at = end + 1
    if (line === '') break
    const colon = line.indexOf(':')
    if (/^[ \t]/.test(line) && last !== '') headers.set(last, `${headers.get(last) ?? ''} ${line.trim()}`)
    else if (colon > 0) {
      last = line.slice(0, colon).trim().toLowerCase()
      if (!headers.has(last)) headers.set(last, line.slice(colon + 1).trim())
    }
  }
  return { headers, content: piece.slice(at) }
}

/** Undoes a Content-Transfer-Encoding (RFC 2045 §6), which SIP does not need; null for one that we do not know. */
function transferred(body: string, encoding: string | null): string | null {
  switch ((encoding ?? '').trim().toLowerCase()) {
    case '':
    case '7bit':
    case '8bit':
    case 'binary':
      return body
    case 'base64':
      return fromBase64(body)
    case 'quoted-printable':
      return body
        .replace(/=\r?\n/g, '')
        .replace(/=([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    default:
      return null
  }
}

function fromBase64(text: string): string | null {
  try {
    return atob(text.replace(/\s+/g, ''))
  } catch {
    return null
  }
}

/** The most bytes of a MESSAGE's body: longer texts need a message session (RFC 3428 §8). */
export const MAX_MESSAGE_BYTES = 1300

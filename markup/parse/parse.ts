import { SaxesParser } from 'saxes'
import type { Attribute, Element, Fault, Place } from '../interpreter/types.ts'

/** Limits of one document (design §6). Elements inside Say are SSML and have a separate depth limit. */
const LIMITS = { bytes: 65_536, verbs: 100, depth: 5, ssml_depth: 32 } as const

/** The parser cannot stop inside a chunk. This size bounds the text that it reads after a fault. */
const CHUNK_CHARACTERS = 256

type Parsed = { readonly ok: true; readonly root: Element } | { readonly ok: false; readonly fault: Fault }

interface OpenElement {
  readonly name: string
  readonly attributes: Record<string, Attribute>
  readonly children: (Element | string)[]
  readonly line: number
  readonly column: number
}

/**
 * Parses a document. Faults, all of them fatal (voice-compat.md §9): 11750 too large; 12100 not well-formed, a DOCTYPE,
 * an unknown entity, too deep or too many verbs; 12101 not XML 1.0; 12102 the root is not Response.
 */
export function parse(text: string): Parsed {
  const source = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
  if (utf8Length(source) > LIMITS.bytes) {
    return refused(11750, { line: 1, column: 1 }, `the document is larger than ${LIMITS.bytes} bytes`)
  }
  // A lone surrogate is not a character. Saxes throws on some of them instead of reporting an error.
  const half = source.search(/\p{Surrogate}/u)
  if (half >= 0) return refused(12100, placesOf(source)(half), 'half of a surrogate pair is not a character')
  const parser = new SaxesParser({ xmlns: false, position: true })
  const tree = new Tree(source, parser)
  for (let from = 0, to = 0; from < source.length && !tree.fault; from = to) {
    to = chunkEnd(source, from + CHUNK_CHARACTERS)
    parser.write(source.slice(from, to))
  }
  if (!tree.fault) parser.close()
  if (tree.fault) return { ok: false, fault: tree.fault }
  if (!tree.root) return refused(12100, { line: 1, column: 1 }, 'the document has no root element')
  return { ok: true, root: tree.root }
}

/** Builds elements from the parser's events and keeps the first fault. */
class Tree {
  root: Element | null = null
  fault: Fault | null = null
  readonly #source: string
  readonly #parser: SaxesParser
  readonly #places: (index: number) => Place
  readonly #stack: OpenElement[] = []
  #verbs = 0
  /** Depth of the open Say; 0 outside Say. */
  #say = 0

  constructor(source: string, parser: SaxesParser) {
    this.#source = source
    this.#parser = parser
    this.#places = placesOf(source)
    parser.on('error', error => this.#malformed(sentence(error.message)))
    parser.on('doctype', () => this.#fail(12100, this.#here(), 'a DOCTYPE is not allowed'))
    parser.on('xmldecl', ({ version }) => {
      if (version !== undefined && version !== '1.0') {
        this.#fail(12101, this.#here(), `XML version ${version} is not supported`)
      }
    })
    parser.on('opentagstart', ({ name }) => this.#open(name))
    parser.on('attribute', ({ name, value }) => {
      const open = this.#stack.at(-1)
      if (open) open.attributes[name] = { value, ...this.#places(attributeStart(source, parser.position)) }
    })
    parser.on('text', text => this.#stack.at(-1)?.children.push(text))
    parser.on('cdata', text => this.#stack.at(-1)?.children.push(text))
    parser.on('closetag', () => this.#close())
  }

  #open(name: string): void {
    const place = this.#places(this.#source.lastIndexOf('<', this.#parser.position - 1))
    const parent = this.#stack.at(-1)
    if (!parent && name !== 'Response') this.#fail(12102, place, `the root element is <${name}>, not <Response>`)
    if (parent && (parent.name === 'Response' || parent.name === 'Gather')) this.#verbs++
    if (this.#verbs > LIMITS.verbs) this.#fail(12100, place, `more than ${LIMITS.verbs} verbs`)
    const depth = this.#stack.length + 1
    const [over, limit] =
      this.#say === 0
        ? [depth > LIMITS.depth, LIMITS.depth]
        : [depth - this.#say > LIMITS.ssml_depth, LIMITS.ssml_depth]
    if (over) this.#fail(12100, place, `elements are nested deeper than ${limit}`)
    this.#stack.push({ name, attributes: Object.create(null), children: [], ...place })
    if (name === 'Say' && this.#say === 0) this.#say = depth
  }

  #close(): void {
    if (this.#say === this.#stack.length) this.#say = 0
    const closed = this.#stack.pop()
    if (!closed || this.fault) return
    // Attributes are collected without a prototype and copied as own properties: `__proto__` is a name like any other.
    const element: Element = { ...closed, attributes: Object.fromEntries(Object.entries(closed.attributes)) }
    const parent = this.#stack.at(-1)
    if (parent) parent.children.push(element)
    else this.root = element
  }

  #malformed(detail: string): void {
    if (this.fault) return
    const ampersand = strayAmpersand(this.#source, this.#parser.position)
    if (ampersand) this.#fail(12100, this.#places(ampersand.index), ampersand.detail)
    else this.#fail(12100, (detail.startsWith('unclosed tag') && this.#stack.at(-1)) || this.#here(), detail)
  }

  #fail(number: number, { line, column }: Place, detail: string): void {
    this.fault ??= { number, level: 'error', line, column, detail }
  }

  #here(): Place {
    return { line: this.#parser.line, column: Math.max(1, this.#parser.columnIndex) }
  }
}

/**
 * Moves the end of a chunk past a surrogate pair or a CR LF, because saxes holds back a character that ends a chunk.
 */
function chunkEnd(source: string, end: number): number {
  return /[\ud800-\udbff\r]/.test(source[end - 1] ?? '') ? end + 1 : end
}

function refused(number: number, place: Place, detail: string): Parsed {
  return { ok: false, fault: { number, level: 'error', ...place, detail } }
}

/** Removes the line and column that saxes prefixes to its messages: faults hold them as fields. */
function sentence(message: string): string {
  return message.replace(/^(?:\d+:\d+: )+/, '').slice(0, 200)
}

/**
 * Finds an ampersand that begins no entity, the most common fault. The parser reports it where the search for the
 * semicolon ends, often at the end of the document. This function returns the place of the ampersand.
 */
function strayAmpersand(source: string, end: number): { index: number; detail: string } | null {
  const pattern = /<!--|<!\[CDATA\[|&(?:#\d+|#x[0-9a-fA-F]+|amp|lt|gt|quot|apos);|&([A-Za-z_][\w.-]*;)?/g
  for (let match = pattern.exec(source); match && match.index < end; match = pattern.exec(source)) {
    if (match[0].startsWith('<')) {
      const close = source.indexOf(match[0] === '<!--' ? '-->' : ']]>', pattern.lastIndex)
      if (close < 0) return null
      pattern.lastIndex = close + 3
    }
    if (match[0] === '&') return { index: match.index, detail: 'an ampersand that begins no entity is written &amp;' }
    if (match[1]) return { index: match.index, detail: `unknown entity &${match[1].slice(0, 40)}` }
  }
  return null
}

/**
 * Returns the start of the attribute whose closing quote is just before `end`. A value never contains its own quote.
 */
function attributeStart(source: string, end: number): number {
  const close = end - 1
  const open = source.lastIndexOf(source[close] ?? '"', close - 1)
  let i = source.lastIndexOf('=', open) - 1
  while (i >= 0 && /\s/.test(source[i] ?? '')) i--
  while (i >= 0 && !/[\s<]/.test(source[i] ?? '')) i--
  return i + 1
}

/** Returns a function from index to place, for lines ended by LF, CR LF or CR. */
function placesOf(source: string): (index: number) => Place {
  const starts = [0]
  for (const { index, 0: ending } of source.matchAll(/\r\n|\r|\n/g)) starts.push(index + ending.length)
  return index => {
    let low = 0
    let high = starts.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((starts[middle] ?? 0) <= index) low = middle
      else high = middle - 1
    }
    return { line: low + 1, column: index - (starts[low] ?? 0) + 1 }
  }
}

function utf8Length(text: string): number {
  let bytes = 0
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    // A surrogate pair is four bytes: two for each half.
    bytes += unit < 0x80 ? 1 : unit < 0x800 || (unit >= 0xd800 && unit <= 0xdfff) ? 2 : 3
  }
  return bytes
}

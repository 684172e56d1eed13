/**
 * Splits a peer's SDP into tidy lines. Peers write lines that RFC 8866 does not allow; this is the only place that
 * forgives how a line is written. What it forgives becomes a note that names the line.
 */

/** A line without its line end, with single blanks. */
export interface SdpLine {
  /** Its number in the text, from 1. */
  readonly at: number
  /** The letter before the `=`. */
  readonly type: string
  readonly value: string
}

/** The session level, or one m= line with what follows it. */
export interface Section {
  /** Null at session level. */
  readonly head: SdpLine | null
  readonly connections: readonly SdpLine[]
  /** Without `a=`; names in lower case, no blanks around the colon. */
  readonly attributes: readonly string[]
}

interface SdpText {
  readonly session: Section
  readonly media: readonly Section[]
}

/** Collects what a reader has forgiven. */
export class Notes {
  static readonly #MOST = 20
  readonly #texts = new Set<string>()

  get texts(): readonly string[] {
    return [...this.#texts]
  }

  /** `line`: null when the note is about the whole text. */
  add(line: SdpLine | null, text: string): void {
    if (this.#texts.size < Notes.#MOST) this.#texts.add(line === null ? text : `${nameOf(line)}: ${text}`)
  }
}

const MOST_SHOWN = 60
/** Names a line for people: `line 7 (m=audio 4000 RTP/AVP 0)`. */
export const nameOf = ({ at, type, value }: SdpLine): string => `line ${at} (${type}=${value.slice(0, MOST_SHOWN)})`

/** Lines end with CR LF (RFC 8866 §5); some peers send CR or LF alone, and end the text with NUL. */
function linesOf(text: string, notes: Notes): SdpLine[] {
  if (text.includes('\0')) notes.add(null, 'NUL characters are left out')
  if (/\r(?!\n)|(?<!\r)\n/.test(text)) notes.add(null, 'lines end with CR or LF alone')
  const lines: SdpLine[] = []
  for (const [index, raw] of text
    .replace(/^\ufeff/, '')
    .replaceAll('\0', '')
    .split(/\r\n|\r|\n/)
    .entries()) {
    if (raw.trim() === '') continue
    const [, type = '', rest = ''] = /^\s*([a-z])\s*=(.*)$/is.exec(raw) ?? []
    const line = { at: index + 1, type: type.toLowerCase(), value: rest.replace(/[ \t]+/g, ' ').trim() }
    if (type === '') notes.add({ ...line, type: '', value: raw.trim() }, 'is not a line of SDP')
    else lines.push(line)
    if (line.value !== rest && /[vocmat]/i.test(type)) notes.add(line, 'has blanks too many')
  }
  return lines
}

/** Attribute names are case-sensitive (RFC 8866 §6) and have no blanks around the colon; peers write both. */
function tidyAttribute(value: string): string {
  const [, name = '', rest] = /^([^\s:]+)\s*(?::\s*(.*))?$/s.exec(value) ?? []
  if (name === '') return value
  return rest === undefined ? name.toLowerCase() : `${name.toLowerCase()}:${rest.replace(/ ?\/ ?/g, '/')}`
}

/** RFC 8866 §5.2. Nothing in it is needed. */
const ORIGIN = /^\S+ \d+ \d+ IN IP[46] \S+$/

/** Never fails: a text that is no SDP has no media sections. */
export function readSdpText(text: string, notes: Notes): SdpText {
  const lines = linesOf(text, notes)
  if (lines[0]?.type !== 'v' || lines[0].value !== '0') notes.add(lines[0] ?? null, 'does not begin with v=0')
  const sections: { head: SdpLine | null; connections: SdpLine[]; attributes: string[] }[] = []
  let section: (typeof sections)[number] = { head: null, connections: [], attributes: [] }
  const session = section
  for (const line of lines) {
    if (line.type === 'm') {
      section = { head: line, connections: [], attributes: [] }
      sections.push(section)
    } else if (line.type === 'c') section.connections.push(line)
    else if (line.type === 'a') section.attributes.push(tidyAttribute(line.value))
  }
  for (const type of ['o', 's', 't'])
    if (!lines.some(line => line.type === type)) notes.add(null, `there is no ${type}= line`)
  const origin = lines.find(line => line.type === 'o')
  if (origin && !ORIGIN.test(origin.value)) notes.add(origin, 'is not user, id, version, IN, IP4 or IP6, and address')
  return { session, media: sections }
}

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
    if (this.#texts.size < Notes.#MOST) this.#texts.add(line === null ? text : `${lineName(line)}: ${text}`)
  }
}

const MOST_SHOWN = 60
/** Names a line for people: `line 7 (m=audio 4000 RTP/AVP 0)`. */
export const lineName = ({ at, type, value }: SdpLine): string => `line ${at} (${type}=${value.slice(0, MOST_SHOWN)})`

/** Lines end with CR LF (RFC 8866 §5); some peers send CR or LF alone, and end the text with NUL. */
function linesOf(text: string, notes: Notes): SdpLine[] {
  if (text.includes('\0')) notes.add(null, 'NUL characters are left out')
  const plain = text.charCodeAt(0) === 0xfeff || text.includes('\0') ? text.replaceAll(/^\ufeff|\0/g, '') : text
  const lines: SdpLine[] = []
  let at = 0
  for (let number = 1; at < plain.length; number++) {
    const end = endOfLine(plain, at)
    const raw = plain.slice(at, end)
    if (isTidy(raw)) lines.push({ at: number, type: raw.charAt(0), value: raw.slice(2) })
    else if (raw.trim() !== '') addUntidy(lines, raw, number, notes)
    const whole = plain.startsWith('\r\n', end)
    if (!whole && end < plain.length) notes.add(null, 'lines end with CR or LF alone')
    at = end + (whole ? 2 : 1)
  }
  return lines
}

/** Returns the position of the next CR or LF, or that of the end. */
function endOfLine(text: string, from: number): number {
  let at = from
  while (at < text.length && text.charCodeAt(at) !== 10 && text.charCodeAt(at) !== 13) at++
  return at
}

/** Reports whether a line is `x=value` as RFC 8866 wants it, with single blanks. Nearly all are; no other check is. */
function isTidy(raw: string): boolean {
  const type = raw.charCodeAt(0)
  if (!(type >= 97 && type <= 122) || raw.charCodeAt(1) !== 61) return false
  let blank = true
  for (let i = 2; i < raw.length; i++) {
    const c = raw.charCodeAt(i)
    if (c > 127 || c < 32 || (c === 32 && blank)) return false
    blank = c === 32
  }
  return !blank
}

function addUntidy(lines: SdpLine[], raw: string, at: number, notes: Notes): void {
  const [, type = '', rest = ''] = /^\s*([a-z])\s*=(.*)$/is.exec(raw) ?? []
  const line = { at, type: type.toLowerCase(), value: rest.replace(/[ \t]+/g, ' ').trim() }
  if (type === '') notes.add({ ...line, type: '', value: raw.trim() }, 'is not a line of SDP')
  else lines.push(line)
  if (line.value !== rest && /[vocmat]/i.test(type)) notes.add(line, 'has blanks too many')
}

/** Attribute names are case-sensitive (RFC 8866 §6) and have no blanks around the colon; peers write both. */
function tidyAttribute(value: string): string {
  const colon = value.indexOf(':')
  const tidy = PLAIN_NAME.test(colon < 0 ? value : value.slice(0, colon)) && value.charCodeAt(colon + 1) !== 32
  if (tidy && !value.includes(' /') && !value.includes('/ ')) return value
  const [, name = '', rest] = /^([^\s:]+)\s*(?::\s*(.*))?$/s.exec(value) ?? []
  if (name === '') return value
  return rest === undefined ? name.toLowerCase() : `${name.toLowerCase()}:${rest.replace(/ ?\/ ?/g, '/')}`
}

const PLAIN_NAME = /^[a-z0-9-]+$/

/** RFC 8866 §5.2. Nothing in it is needed. */
const ORIGIN = /^\S+ \d+ \d+ IN IP[46] \S+$/

/** Never fails: a text that is no SDP has no media sections. */
export function readSdpText(text: string, notes: Notes): SdpText {
  const lines = linesOf(text, notes)
  if (lines[0]?.type !== 'v' || lines[0].value !== '0') notes.add(lines[0] ?? null, 'does not begin with v=0')
  const sections: { head: SdpLine | null; connections: SdpLine[]; attributes: string[] }[] = []
  let section: (typeof sections)[number] = { head: null, connections: [], attributes: [] }
  const session = section
  let origin: SdpLine | null = null
  let [has_name, has_times] = [false, false]
  for (const line of lines) {
    const { type } = line
    if (type === 'm') {
      section = { head: line, connections: [], attributes: [] }
      sections.push(section)
    } else if (type === 'c') section.connections.push(line)
    else if (type === 'a') section.attributes.push(tidyAttribute(line.value))
    else if (type === 'o') origin ??= line
    else if (type === 's') has_name = true
    else if (type === 't') has_times = true
  }
  // RFC 8866 §5 demands these lines; nothing in them is needed.
  if (!origin) notes.add(null, 'there is no o= line')
  if (!has_name) notes.add(null, 'there is no s= line')
  if (!has_times) notes.add(null, 'there is no t= line')
  if (origin && !ORIGIN.test(origin.value)) notes.add(origin, 'is not user, id, version, IN, IP4 or IP6, and address')
  return { session, media: sections }
}

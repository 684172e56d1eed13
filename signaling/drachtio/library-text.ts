// Reads the text of a message for the library, in its own form. The library's parser asks the environment for each
// header, decodes percent-escapes in names, so that `%46rom` counts as From, and has regular expressions that take
// quadratic time: a Content-Type of 60 kB would stop a node for seconds.

/** A message as the library keeps it: names as by `libraryName`, values unfolded and repeated ones joined by commas. */
export interface LibraryText {
  readonly version: string
  /** Only of a request, as `uri`. */
  readonly method?: string
  readonly uri?: string
  /** Only of a response, as `reason`. */
  readonly status?: number
  readonly reason?: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const CRLF = '\r\n'

/** Returns the message in a text; undefined when its first line is none of SIP. Lines without a name are left out. */
export function readLibraryText(text: string): LibraryText | undefined {
  const empty = text.indexOf(`${CRLF}${CRLF}`)
  const head_end = empty < 0 ? text.length : empty
  const first = text.indexOf(CRLF)
  const start_end = first < 0 ? text.length : first
  const start = startLine(text.slice(0, start_end))
  if (!start) return undefined
  const headers = readHeaders(text, start_end + CRLF.length, head_end)
  const body = empty < 0 ? '' : text.slice(empty + 2 * CRLF.length)
  return { ...start, headers, body: withinLength(body, headers['content-length']) }
}

function startLine(line: string): Omit<LibraryText, 'headers' | 'body'> | undefined {
  const blank = line.indexOf(' ')
  if (line.startsWith('SIP/')) {
    const status = Number(line.slice(blank + 1, blank + 4))
    if (blank < 0 || !Number.isInteger(status) || status < 100) return undefined
    return { version: line.slice(4, blank), status, reason: line.slice(blank + 4).trim() }
  }
  const version = line.lastIndexOf(' SIP/')
  if (blank <= 0 || version <= blank) return undefined
  return { version: line.slice(version + 5), method: line.slice(0, blank), uri: line.slice(blank + 1, version) }
}

function readHeaders(text: string, from: number, end: number): Record<string, string> {
  const headers: Record<string, string> = Object.create(null)
  let at = from
  while (at < end) {
    const stop = lineEnd(text, at, end)
    const line = text.slice(at, stop)
    at = stop + CRLF.length
    const colon = line.indexOf(':')
    if (colon <= 0) continue
    const name = libraryName(line.slice(0, colon).trimEnd())
    const value = unfolded(line.slice(colon + 1))
    const before = headers[name]
    headers[name] = before === undefined ? value : `${before}, ${value}`
  }
  return headers
}

/** Returns the end of a header with its folds (RFC 3261 §7.3.1). */
function lineEnd(text: string, from: number, end: number): number {
  for (let at = from; ; at += CRLF.length) {
    at = text.indexOf(CRLF, at)
    if (at < 0 || at >= end) return end
    const next = text.charCodeAt(at + CRLF.length)
    if (next !== 32 && next !== 9) return at
  }
}

const unfolded = (value: string): string =>
  value.includes('\n')
    ? value
        .split('\n')
        .map(line => line.trim())
        .join(' ')
        .trim()
    : value.trim()

/** The body ends with its Content-Length, in bytes. */
function withinLength(body: string, length: string | undefined): string {
  const bytes = length === undefined ? Number.NaN : Number(length)
  if (!(bytes >= 0) || bytes >= Buffer.byteLength(body)) return body
  return Buffer.from(body).subarray(0, bytes).toString()
}

const COMPACT: ReadonlyMap<string, string> = new Map([
  ['i', 'call-id'],
  ['m', 'contact'],
  // The library's own mistake, which readers of this header know.
  ['e', 'contact-encoding'],
  ['l', 'content-length'],
  ['c', 'content-type'],
  ['f', 'from'],
  ['s', 'subject'],
  ['k', 'supported'],
  ['t', 'to'],
  ['v', 'via'],
])

/** The name under which the library keeps a header. Those that applications choose keep their spelling. */
export function libraryName(name: string): string {
  if (name.startsWith('X-') || (name.startsWith('P-') && !name.startsWith('P-Asserted')) || name === 'Diversion')
    return name
  const id = name.toLowerCase()
  return COMPACT.get(id) ?? id
}

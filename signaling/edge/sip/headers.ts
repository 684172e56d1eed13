// The table of header fields: canonical spelling, compact form (RFC 3261 §7.3.3), position in the messages that we
// write, and whether commas separate values.

/** A header field name. `id` is its lower-case long name, by which the stack refers to it. */
export interface HeaderKind {
  readonly id: string
  readonly name: string
  /**
   * Position in messages that we write: routing first, as RFC 3261 §7.3.1 recommends, then the dialog, then the rest.
   */
  readonly rank: number
  /** In the table below. `name` of any other is as it was written. */
  readonly known: boolean
  /** One line may hold several values, separated by commas. */
  readonly list: boolean
  /** The field may occur only once (RFC 3261 table 2). */
  readonly single: boolean
}

const LIST = 1
const SINGLE = 2

// Name, flags and compact form, in the order in which we write them.
const KNOWN: readonly (readonly [name: string, flags: number, compact?: string])[] = [
  ['Via', LIST, 'v'],
  ['Route', LIST],
  ['Record-Route', LIST],
  ['Max-Forwards', SINGLE],
  ['Proxy-Require', LIST],
  ['From', SINGLE, 'f'],
  ['To', SINGLE, 't'],
  ['Call-ID', SINGLE, 'i'],
  ['CSeq', SINGLE],
  ['Contact', LIST, 'm'],
  ['RSeq', SINGLE],
  ['RAck', SINGLE],
  ['Request-Disposition', LIST, 'd'],
  ['Accept-Contact', LIST, 'a'],
  ['Reject-Contact', LIST, 'j'],
  ['Expires', SINGLE],
  ['Date', SINGLE],
  ['Retry-After', SINGLE],
  ['Timestamp', SINGLE],
  ['Min-Expires', SINGLE],
  ['Subject', SINGLE, 's'],
  ['Priority', SINGLE],
  ['Call-Info', LIST],
  ['Organization', SINGLE],
  ['Server', SINGLE],
  ['User-Agent', SINGLE],
  ['In-Reply-To', LIST],
  ['Accept', LIST],
  ['Accept-Encoding', LIST],
  ['Accept-Language', LIST],
  ['Allow', LIST],
  ['Require', LIST],
  ['Supported', LIST, 'k'],
  ['Unsupported', LIST],
  ['Event', SINGLE, 'o'],
  ['Allow-Events', LIST, 'u'],
  ['Subscription-State', SINGLE],
  ['Proxy-Authenticate', 0],
  ['Proxy-Authentication-Info', 0],
  ['Proxy-Authorization', 0],
  ['Authorization', 0],
  ['WWW-Authenticate', 0],
  ['Authentication-Info', 0],
  ['Error-Info', LIST],
  ['Warning', LIST],
  ['Refer-To', SINGLE, 'r'],
  ['Referred-By', SINGLE, 'b'],
  ['Replaces', SINGLE],
  ['Session-Expires', SINGLE, 'x'],
  ['Min-SE', SINGLE],
  ['Path', LIST],
  ['Service-Route', LIST],
  ['Reason', LIST],
  ['Privacy', 0],
  ['SIP-ETag', SINGLE],
  ['SIP-If-Match', SINGLE],
  ['MIME-Version', SINGLE],
  ['Content-Type', SINGLE, 'c'],
  ['Content-Encoding', LIST, 'e'],
  ['Content-Language', LIST],
  ['Content-Disposition', SINGLE],
  ['Content-Length', SINGLE, 'l'],
]

// Headers with a known spelling but no rank. They follow Content-Length in the order in which they were added.
const UNRANKED: readonly (readonly [name: string, flags: number])[] = [
  ['Alert-Info', LIST],
  ['Diversion', LIST],
  ['Geolocation', LIST],
  ['History-Info', LIST],
  ['Identity', 0],
  ['P-Preferred-Identity', LIST],
  ['Session-ID', 0],
]

// These come last.
const LAST: readonly (readonly [name: string, flags: number])[] = [
  ['Remote-Party-ID', LIST],
  ['P-Asserted-Identity', LIST],
]

const EXTRA_RANK = KNOWN.length

const byName = new Map<string, HeaderKind>()
for (const [rank, [name, flags, compact]] of KNOWN.entries()) {
  add(name, compact, rank, flags)
}
for (const [name, flags] of UNRANKED) add(name, undefined, EXTRA_RANK, flags)
for (const [i, [name, flags]] of LAST.entries()) add(name, undefined, EXTRA_RANK + 1 + i, flags)

function add(name: string, compact: string | undefined, rank: number, flags: number): void {
  const id = name.toLowerCase()
  const kind: HeaderKind = { id, name, rank, known: true, list: (flags & LIST) !== 0, single: (flags & SINGLE) !== 0 }
  byName.set(name, kind)
  byName.set(id, kind)
  if (compact !== undefined) {
    byName.set(compact, kind)
    byName.set(compact.toUpperCase(), kind)
  }
}

/** Returns the kind of a header name in any spelling. Unknown names are not cached, because strangers choose them. */
export function headerKind(name: string): HeaderKind {
  const known = byName.get(name)
  if (known) return known
  const id = name.toLowerCase()
  return byName.get(id) ?? { id, name, rank: EXTRA_RANK, known: false, list: false, single: false }
}

/** Returns the lower-case long name of a header name in any spelling. */
export function headerId(name: string): string {
  return byName.get(name)?.id ?? byName.get(name.toLowerCase())?.id ?? name.toLowerCase()
}

/** Returns the spelling for the wire: canonical if known, `X-` names as given, others capitalised after each dash. */
export const spellingOf = ({ name, known }: HeaderKind): string => (known ? name : spelled(name))

function spelled(name: string): string {
  if (name.startsWith('X-') || name.startsWith('x-')) return name
  let out = ''
  let start = true
  for (const c of name) {
    out += start ? c.toUpperCase() : c
    start = c === '-'
  }
  return out
}

const TOKEN = new Uint8Array(256)
for (const c of "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.!%*_+`'~") TOKEN[c.charCodeAt(0)] = 1

/** Returns the position behind the token (RFC 3261 §25.1) that begins at `from`, at most `end`. */
export function endOfToken(text: string, from: number, end: number): number {
  let at = from
  while (at < end && TOKEN[text.charCodeAt(at)] === 1) at++
  return at
}

/** Reports whether `text` is a token. */
export const isToken = (text: string): boolean => text !== '' && endOfToken(text, 0, text.length) === text.length

/**
 * Returns the text between two positions without the blanks around it. `trim` would also cut the last byte of UTF-8
 * characters such as `à`, which alone is a no-break space.
 */
export function valueIn(text: string, from: number, end: number): string {
  let first = from
  let last = end
  while (first < last && isBlank(text.charCodeAt(first))) first++
  while (last > first && isBlank(text.charCodeAt(last - 1))) last--
  return text.slice(first, last)
}

const isBlank = (c: number): boolean => c === 32 || (c >= 9 && c <= 13)

const PHRASES: Readonly<Record<number, string>> = {
  100: 'Trying',
  180: 'Ringing',
  181: 'Call Is Being Forwarded',
  182: 'Queued',
  183: 'Session Progress',
  199: 'Early Dialog Terminated',
  200: 'OK',
  202: 'Accepted',
  204: 'No Notification',
  300: 'Multiple Choices',
  301: 'Moved Permanently',
  302: 'Moved Temporarily',
  305: 'Use Proxy',
  380: 'Alternative Service',
  400: 'Bad Request',
  401: 'Unauthorized',
  402: 'Payment Required',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  406: 'Not Acceptable',
  407: 'Proxy Authentication Required',
  408: 'Request Timeout',
  410: 'Gone',
  412: 'Conditional Request Failed',
  413: 'Request Entity Too Large',
  414: 'Request-URI Too Long',
  415: 'Unsupported Media Type',
  416: 'Unsupported URI Scheme',
  420: 'Bad Extension',
  421: 'Extension Required',
  422: 'Session Interval Too Small',
  423: 'Interval Too Brief',
  430: 'Flow Failed',
  480: 'Temporarily Unavailable',
  481: 'Call/Transaction Does Not Exist',
  482: 'Loop Detected',
  483: 'Too Many Hops',
  484: 'Address Incomplete',
  485: 'Ambiguous',
  486: 'Busy Here',
  487: 'Request Terminated',
  488: 'Not Acceptable Here',
  489: 'Bad Event',
  491: 'Request Pending',
  493: 'Undecipherable',
  500: 'Server Internal Error',
  501: 'Not Implemented',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Server Time-out',
  505: 'Version Not Supported',
  513: 'Message Too Large',
  600: 'Busy Everywhere',
  603: 'Decline',
  604: 'Does Not Exist Anywhere',
  606: 'Not Acceptable',
}

/** The methods that we know, in the order of our Allow header. */
export const METHODS: readonly string[] = [
  ...['INVITE', 'ACK', 'CANCEL', 'BYE', 'OPTIONS', 'REGISTER', 'INFO', 'MESSAGE', 'SUBSCRIBE', 'NOTIFY', 'REFER'],
  ...['PUBLISH', 'UPDATE', 'PRACK'],
]

/** Returns the usual reason phrase of a status code (RFC 3261 §21 and the RFCs that added codes). */
export function reasonPhrase(status: number): string {
  return PHRASES[status] ?? 'Unknown'
}

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * What we read of SIP messages: each header and body has one reader, which every part of the platform calls. A header
 * that is read anywhere and has no line here is a finding, and so is a second way to take an address or a body apart.
 */

interface Reader {
  /** The file with the reader. */
  readonly file: string
  /** The functions that read. */
  readonly functions: string
  readonly reads: string
  readonly headers: readonly string[]
}

const ADDRESSES = [
  'from',
  'to',
  'contact',
  'm',
  'p-asserted-identity',
  'p-called-party-id',
  'refer-to',
  'r',
  'referred-by',
]

const READERS: readonly Reader[] = [
  {
    file: 'core/domain/sip/address.ts',
    functions: '`readAddress`, `readAddresses`, `readUri`, `dialled`',
    reads: 'names, URIs, numbers in their context, parameters; also the request-URI',
    headers: ADDRESSES,
  },
  {
    file: 'core/domain/sip/uri.ts',
    functions: '`parseNameAddress`, `parseUri`, `parseVia`, `tagOf`, `splitList`',
    reads: 'the forms below an address, routes and Via, on the path of every message',
    headers: ['route', 'record-route', 'via'],
  },
  {
    file: 'core/domain/sip/remote-party.ts',
    functions: '`readRemoteParty`',
    reads: 'the calling party and its privacy, over `readAddresses`',
    headers: ['remote-party-id'],
  },
  {
    file: 'core/domain/sip/diversion.ts',
    functions: '`readDiverters`',
    reads: 'who diverted a call, over `readAddresses`',
    headers: ['diversion', 'history-info'],
  },
  {
    file: 'core/domain/sip/body.ts',
    functions: '`readBody`, `mediaType`',
    reads: 'bodies by their type: SDP, locations, keys, texts, sipfrag, and parts of multipart bodies',
    headers: [
      ...['content-type', 'c', 'content-disposition', 'content-encoding', 'contact-encoding', 'e', 'content-id'],
      'content-transfer-encoding',
    ],
  },
  {
    file: 'core/domain/codecs/sdp.ts',
    functions: '`readSdp`',
    reads: 'session descriptions',
    headers: [],
  },
  {
    file: 'signaling/b2bua/refer-to.ts',
    functions: '`readReferTo`, `readReplaces`',
    reads: 'the target of a transfer and the dialog that is replaced, over `readAddress`',
    headers: ['replaces'],
  },
  {
    file: 'core/domain/sip/values.ts',
    functions:
      '`readSeconds`, `readHops`, `hasToken`, `readToken`, `readSessionExpires`, `parseCSeq`, `readRAck`, `readPrivacy`, ' +
      '`readReasons`, `statusIn`',
    reads: 'numbers, tokens, option tags, causes and their parameters; also the status line of a `message/sipfrag`',
    headers: [
      ...['cseq', 'rack', 'max-forwards', 'expires', 'min-expires', 'min-se', 'retry-after', 'session-expires', 'x'],
      ...['supported', 'k', 'require', 'allow', 'event', 'o', 'subscription-state', 'refer-sub', 'privacy', 'reason'],
    ],
  },
  {
    file: 'core/domain/identity/digest.ts',
    functions: '`parseAuthorization`',
    reads: 'credentials',
    headers: ['authorization', 'proxy-authorization'],
  },
  {
    file: 'core/domain/identity/digest-answer.ts',
    functions: '`readChallenges`',
    reads: 'challenges, over `readParameters` of `digest.ts`',
    headers: ['www-authenticate', 'proxy-authenticate'],
  },
  {
    file: 'core/domain/identity/passport.ts',
    functions: '`Stir.verify`',
    reads: 'signatures of callers',
    headers: ['identity', 'y'],
  },
  {
    file: 'core/domain/identity/caller.ts',
    functions: '`readCaller`',
    reads: 'which of the addresses is the caller, and whether it is to be shown',
    headers: [],
  },
  {
    file: 'core/domain/calls/custom-headers.ts',
    functions: '`customHeaders`, `applicationHeaders`',
    reads: 'X- headers, User-to-User, Session-ID and Geolocation, passed on or handed to the application unchanged',
    headers: ['x-*', 'user-to-user', 'geolocation', 'x-strowger-callsid'],
  },
  {
    file: 'core/domain/sip/session-id.ts',
    functions: '`readSessionId`',
    reads: 'the UUID of a side of the session (RFC 7989)',
    headers: ['session-id'],
  },
  {
    file: 'signaling/b2bua/dtmf-info.ts',
    functions: '`keyOfInfo`',
    reads: 'keys in bodies of INFO: `application/dtmf-relay` and `application/dtmf`',
    headers: [],
  },
  {
    file: 'signaling/scripts/siprec-body.ts',
    functions: '`splitAnswer`',
    reads: "the streams of a recorder's answer, each of which `readSdp` reads again",
    headers: [],
  },
  {
    file: 'core/domain/ladder/field.ts',
    functions: '`fieldReader`, `fieldsReader`',
    reads: 'headers in kept texts, for the ladder and its redaction',
    headers: [],
  },
  {
    file: 'signaling/edge/sip/headers.ts',
    functions: '`headerKind`, `headerId`',
    reads: 'names of headers in any spelling',
    headers: [],
  },
  {
    file: 'signaling/edge/sip/message.ts',
    functions: '`SipMessage`; `parseMessage` and `StreamFramer` find its end',
    reads: 'lines and values of a message; what is taken as it is written; numbers alone by `parseDigits`',
    headers: ['call-id', 'rseq', 'user-agent', 'content-length'],
  },
]

/** Where headers of messages are read by name. */
const SIGNALING = /^signaling\//
/**
 * `message.get('via')`, `request.header('from')`, `headerOf(text, 'CSeq')`, `h.kind.id === 'to'`,
 * `headerId(name) === 'via'`; a map of parameters is no message.
 */
const READ = new RegExp(
  [
    /(\w*)\??\.?\b(?:header|headerOf|commandHeader|get|list|lines|lists|has)\(\s*(?:\w+(?:\.\w+)?,\s*)?'(\w[\w-]*)'/,
    /\b(kind|h)\.id === '(\w[\w-]*)'/,
    /\b(headerId)\(.*\) === '(\w[\w-]*)'/,
    // What `reply` and `req` have are headers of HTTP.
    /(?<!\b(?:reply|req)\.)\b(headers)\['(\w[\w-]*)'\]/,
  ]
    .map(({ source }) => `(?:${source})`)
    .join('|'),
  'g',
)
const PARAMETERS = new Set(['params', 'of_uri', 'of_number', 'searchParams'])

/** Signs of a second reader, and the files that validate or write such text of our own configuration. */
const SECOND: readonly (readonly [sign: RegExp, what: string, allowed: RegExp])[] = [
  [
    /\bsips\?:|\/\^?sips:/,
    'a regular expression reads a SIP URI; use core/domain/sip/address.ts',
    /^(control|markup\/verbs|core\/runtime\/variable-values|core\/domain\/calls\/trace|signaling\/trunks\/carrier-r)/,
  ],
  [
    /<\(?\[\^[^\]]*>[^\]]*\][^/\n]*>/,
    'a regular expression reads an address in brackets; use core/domain/sip/address.ts',
    /^(control\/|media\/files\/|core\/domain\/(?!sip\/)|markup\/)/,
  ],
  [
    /\/[^/\n'`]*transport=[^/\n'`]*\/i?\.(?:test|exec)/,
    'a regular expression reads the transport of a URI; use `transportOf`',
    // What an application answers over HTTP, and what a document names.
    /^(signaling\/edge\/agent\/outbound\.ts|markup\/verbs\/)/,
  ],
  [
    /phone-context/,
    'only core/domain/sip/address.ts reads phone-context',
    /^(core\/domain\/(sip|reasons)\/|signaling\/admission\/read-invite\.ts)/,
  ],
  [
    /get\('boundary'\)|handling=/,
    'only core/domain/sip/body.ts reads multipart bodies',
    /^core\/domain\/(sip|reasons)\//,
  ],
  [
    /parseUri\b.*\buser\b/,
    'the user of an address is read by core/domain/sip/address.ts',
    /^(core\/domain\/sip\/|signaling\/(edge|sandbox)\/)/,
  ],
]

interface Text {
  readonly path: string
  readonly text: string
}

const codeOf = (text: string): string => text.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')

/** Returns the files that read each header, by its lower-case name. */
function callers(all: readonly Text[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>()
  for (const { path, text } of all) {
    if (!SIGNALING.test(path)) continue
    for (const name of namesIn(codeOf(text))) {
      if (NOT_SIP.has(`${path} ${name}`)) continue
      const files = found.get(name) ?? []
      if (!files.includes(path)) files.push(path)
      found.set(name, files)
    }
  }
  return found
}

/** Reads of other things by such names. */
const NOT_SIP: ReadonlySet<string> = new Set(['signaling/edge/transport/web.ts sip'])

/** Returns the headers that the code reads, in lower case. */
const namesIn = (code: string): string[] =>
  [...code.matchAll(READ)].flatMap(([, ...groups]) => {
    const [on = '', name] = groups.filter(group => group !== undefined)
    return name === undefined || PARAMETERS.has(on) ? [] : [name.toLowerCase()]
  })

/** The parser of messages, and what writes a request from the text of another one. */
const PARSERS = /^signaling\/edge\/(?:sip\/|transaction\/client\.ts)/

/** What takes a text apart: of a header's value only its reader does. `*` is a whole value, and a cut is no reading. */
const TAKES =
  '(?:split|match|matchAll|replace|replaceAll|startsWith|endsWith|slice(?!\\(0, \\d+\\))|substring|indexOf|search)'
const INTO = '(?:exec|test|Number|parseInt|parseFloat|parseDigits)'
const APART = new RegExp(`\\.${TAKES}\\(|\\b${INTO}\\(|\\.includes\\((?!'\\*'\\))`)

/** Returns the headers whose values the code takes apart itself, in the same expression or by the name it gave them. */
function takenApart(code: string): string[] {
  const lines = code.replace(/\n\s*(?=\??\.|\?\?)/g, '').split('\n')
  return lines.flatMap(line => {
    const names = namesIn(line)
    if (names.length === 0) return []
    // A list is an array.
    const given = /\.(?:list|lines)\(/.test(line) ? undefined : /^\s*const (\w+) = /.exec(line)?.[1]
    const later = given !== undefined && new RegExp(`\\b${given}\\??\\.${TAKES}\\(|\\b${INTO}\\(${given}\\b`).test(code)
    return APART.test(line) || later ? names : []
  })
}

/** Returns headers without a reader, lines without a header, and second readers. */
export function readerFindings(all: readonly Text[]): string[] {
  const known = new Map(READERS.flatMap(reader => reader.headers.map(header => [header, reader] as const)))
  const read = callers(all)
  return [
    ...[...read].flatMap(([header, files]) =>
      known.has(header)
        ? []
        : files.map(file => `${file}: reads the header ${header}, which has no reader in test/tidy/readers.ts`),
    ),
    ...all.flatMap(({ path, text }) =>
      SIGNALING.test(path) && !PARSERS.test(path) && !READERS.some(({ file }) => file === path)
        ? takenApart(codeOf(text)).map(header => `${path}: takes the header ${header} apart; call its reader`)
        : [],
    ),
    ...READERS.filter(({ file }) => !all.some(({ path }) => path === file)).map(
      ({ file }) => `test/tidy/readers.ts: there is no ${file}`,
    ),
    ...all.flatMap(({ path, text }) =>
      /^(core|signaling|media|markup|control)\//.test(path)
        ? SECOND.flatMap(([sign, what, allowed]) =>
            !allowed.test(path) && sign.test(codeOf(text)) ? [`${path}: ${what}`] : [],
          )
        : [],
    ),
  ]
}

/** Returns the rows of docs/readers.md: what is read, by which reader, and who calls it. */
export function readerRows(): string[][] {
  const all = ['core/domain', 'signaling', 'media'].flatMap(filesBelow)
  const read = callers(all)
  return READERS.map(({ file, functions, reads, headers }) => {
    const files = new Set(headers.flatMap(header => read.get(header) ?? []))
    const imports = new RegExp(`from '[^']*/${file.split('/').at(-1)?.replace('.', '\\.')}'`)
    for (const { path, text } of all) if (path !== file && imports.test(text)) files.add(path)
    return [
      headers.length === 0 ? '–' : headers.map(header => `\`${header}\``).join(' '),
      reads,
      `\`${file}\`: ${functions}`,
      [...files]
        .sort()
        .map(path => `\`${path}\``)
        .join(' '),
    ]
  })
}

function filesBelow(folder: string): Text[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap(entry => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return filesBelow(path)
    return path.endsWith('.ts') ? [{ path, text: readFileSync(path, 'utf8') }] : []
  })
}

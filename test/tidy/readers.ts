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
    file: 'signaling/b2bua/session-timer.ts',
    functions: '`readSessionExpires`, `supports`',
    reads: 'session timers and option tags in signaling',
    headers: ['session-expires', 'x', 'min-se', 'supported', 'k', 'require'],
  },
  {
    file: 'core/domain/identity/digest.ts',
    functions: '`parseAuthorization`',
    reads: 'credentials; `readChallenges` of `digest-answer.ts` reads challenges',
    headers: ['authorization', 'proxy-authorization', 'www-authenticate', 'proxy-authenticate'],
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
    reads: 'whether the caller is to be shown',
    headers: ['privacy'],
  },
  {
    file: 'core/domain/calls/custom-headers.ts',
    functions: '`customHeaders`, `toldHeaders`',
    reads: 'X- headers, User-to-User, Session-ID and Geolocation, which pass or are told as they are',
    headers: ['x-strowger-callsid'],
  },
  {
    file: 'signaling/edge/sip/message.ts',
    functions: '`SipMessage`, `parseCSeq`; `list` and `lists` split values and tokens',
    reads: 'what identifies a message; numbers by `parseDigits`',
    headers: [
      ...['call-id', 'cseq', 'max-forwards', 'expires', 'min-expires', 'retry-after', 'rseq', 'rack', 'allow'],
      ...['event', 'o', 'subscription-state', 'refer-sub', 'reason', 'user-agent'],
    ],
  },
]

/** Where headers of messages are read by name. */
const SIGNALING = /^signaling\//
/** `message.get('via')`, `request.header('from')`, `headerOf(text, 'CSeq')`; a map of parameters is no message. */
const READ =
  /(\w*)\??\.?\b(?:header|headerOf|get|list|lines|lists|has)\(\s*(?:\w+(?:\.\w+)?,\s*)?'([A-Za-z][A-Za-z0-9-]*)'/g
const PARAMETERS = new Set(['params', 'of_uri', 'of_number', 'searchParams', 'headers'])

/** Signs of a second reader, and the files that validate or write such text of our own configuration. */
const SECOND: readonly (readonly [sign: RegExp, what: string, allowed: RegExp])[] = [
  [
    /\bsips\?:/,
    'a regular expression reads a SIP URI; use core/domain/sip/address.ts',
    /^(control|markup\/verbs|core\/runtime\/variable-values|core\/domain\/calls\/trace|signaling\/trunks\/carrier-r)/,
  ],
  [
    /<\(?\[\^[^\]]*>[^\]]*\][^/\n]*>/,
    'a regular expression reads an address in brackets; use core/domain/sip/address.ts',
    /^(control\/|media\/files\/|core\/domain\/(?!sip\/)|markup\/)/,
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
    for (const [, on = '', name = ''] of codeOf(text).matchAll(READ)) {
      if (PARAMETERS.has(on) || NOT_SIP.has(`${path} ${name}`)) continue
      const files = found.get(name.toLowerCase()) ?? []
      if (!files.includes(path)) files.push(path)
      found.set(name.toLowerCase(), files)
    }
  }
  return found
}

/** Reads of other things by such names. */
const NOT_SIP: ReadonlySet<string> = new Set(['signaling/edge/transport/web.ts sip'])

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

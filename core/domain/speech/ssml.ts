import { escapeXml } from '../text/xml.ts'

/**
 * The SSML that speech engines receive: only these elements and attributes (voice-compat.md §10). `audio`, `voice` and
 * `mark` are excluded, because engines open the files and addresses in them.
 */
export const SSML: Readonly<Record<string, Readonly<Record<string, RegExp>>>> = {
  break: {
    strength: /^(none|x-weak|weak|medium|strong|x-strong)$/,
    // At most ten seconds.
    time: /^(10000|\d{1,4}(\.\d{1,3})?)ms$|^(10|\d(\.\d{1,3})?)s$/,
  },
  emphasis: { level: /^(strong|moderate|reduced)$/ },
  lang: { 'xml:lang': /^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*$/ },
  p: {},
  s: {},
  phoneme: { alphabet: /^[a-z-]{1,20}$/, ph: /^.{1,200}$/ },
  prosody: {
    volume: /^(silent|x-soft|soft|medium|loud|x-loud|[+-]\d{1,2}(\.\d)?dB)$/,
    rate: /^(x-slow|slow|medium|fast|x-fast|\d{1,3}%)$/,
    pitch: /^(x-low|low|medium|high|x-high|[+-]?\d{1,3}%)$/,
  },
  'say-as': {
    'interpret-as':
      /^(cardinal|ordinal|digits|characters|spell-out|fraction|unit|date|time|address|expletive|telephone)$/,
    format: /^[a-z]{1,12}$/,
  },
  sub: { alias: /^.{1,200}$/ },
  w: { role: /^.{1,60}$/ },
}

/** Returns the rules of an element's attributes; undefined for an unlisted element. */
export const ssmlRules = (element: string): Readonly<Record<string, RegExp>> | undefined =>
  Object.hasOwn(SSML, element) ? SSML[element] : undefined

/** Returns a valid attribute as written; an empty text for any other. */
export function ssmlAttribute(element: string, name: string, value: string): string {
  const rules = ssmlRules(element)
  const good = rules !== undefined && Object.hasOwn(rules, name) && rules[name]?.test(value)
  return good ? ` ${name}="${escapeXml(value)}"` : ''
}

/** Removes control characters, which are embedded commands to espeak-ng and invalid XML. */
export function speakable(words: string): string {
  return words.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u0080-\u009f\ufffe\uffff]/g, ' ')
}

const MAX_TAG_CHARACTERS = 1000
/** Markup that is skipped as a whole, with its end. */
const SKIPPED = [
  ['<!--', '-->'],
  ['<?', '?>'],
  ['<!', '>'],
] as const

/** Returns well-formed SSML of the listed elements in one `speak`. Of other elements only the text remains. */
export function safeSsml(markup: string): string {
  const source = speakable(markup)
  const open: string[] = []
  let safe = ''
  for (let at = 0; at < source.length; ) {
    const tag_at = source.indexOf('<', at)
    safe += escapeXml(unescapeXml(source.slice(at, tag_at === -1 ? source.length : tag_at)))
    if (tag_at === -1) break
    const skipped = SKIPPED.find(([start]) => source.startsWith(start, tag_at))
    const [start, stop] = skipped ?? ['<', '>']
    const end = source.indexOf(stop, tag_at + start.length)
    // Text without a closing bracket is no tag.
    if (end === -1) return `<speak>${safe + escapeXml(source.slice(tag_at)) + closing(open)}</speak>`
    if (!skipped) safe += safeTag(source.slice(tag_at + 1, end), open)
    at = end + stop.length
  }
  return `<speak>${safe + closing(open)}</speak>`
}

/** Returns a listed tag without its invalid attributes, balanced with the open ones. */
function safeTag(inside: string, open: string[]): string {
  if (inside.length > MAX_TAG_CHARACTERS) return ''
  const name = /^\/?([A-Za-z-]+)/.exec(inside)?.[1] ?? ''
  if (!ssmlRules(name)) return ''
  if (inside.startsWith('/')) return closing(open, name)
  const attributes = [...inside.matchAll(/\s([A-Za-z:-]{1,20})\s?=\s?(?:"([^"]*)"|'([^']*)')/g)]
    .filter(([, word], index, all) => all.findIndex(other => other[1] === word) === index)
    .map(([, word = '', double, single]) => ssmlAttribute(name, word, unescapeXml(double ?? single ?? '')))
    .join('')
  if (inside.endsWith('/')) return `<${name}${attributes}/>`
  open.push(name)
  return `<${name}${attributes}>`
}

/** Returns the end tags of the open elements, down to and including `name`; none when that is not open. */
function closing(open: string[], name?: string): string {
  const from = name === undefined ? 0 : open.lastIndexOf(name)
  if (from === -1) return ''
  return open
    .splice(from)
    .reverse()
    .map(element => `</${element}>`)
    .join('')
}

const NAMED: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

function unescapeXml(words: string): string {
  return words.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(amp|lt|gt|quot|apos));/gi, (whole, decimal, hex, name) => {
    if (name) return NAMED[String(name).toLowerCase()] ?? whole
    const code = decimal ? Number(decimal) : Number.parseInt(hex, 16)
    return code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? ' ' : speakable(String.fromCodePoint(code))
  })
}

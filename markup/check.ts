import { type Opened, open, readStatement } from './interpreter/document.ts'
import { resolveUrl } from './interpreter/turn.ts'
import type { Element, RunKind } from './interpreter/types.ts'
import { SCHEMA } from './verbs/attributes.ts'
import type { MarkupFinding, MarkupRule, Node } from './verbs/shape.ts'

/** One line of the static check. `number` is null for advice that a running call does not note. */
export interface Advice {
  readonly line: number
  readonly column: number
  readonly rule: MarkupRule
  readonly level: 'error' | 'warning'
  readonly number: number | null
  readonly detail: string
  /** The probable intent, or how to fix the fault. */
  readonly suggestion: string | null
}

interface CheckOptions {
  /** Kind of the document; defaults to `call`. */
  readonly kind?: RunKind
  /** URL that serves the document; null (the default) for an inline document, whose relative URLs have no base. */
  readonly url?: string | null
}

/**
 * Checks a document and returns its faults in document order. Faults that a call would note have a number. The check
 * also finds what a call cannot: unreachable verbs, and relative URLs without a base.
 */
export function checkDocument(
  text: string,
  options: CheckOptions = {},
): { readonly ok: boolean; readonly advice: readonly Advice[] } {
  const kind = options.kind ?? 'call'
  const opened: Opened = open(text, kind)
  if (!opened.ok) {
    const { line, column, number, detail } = opened.fault
    const suggestion = suggestSyntax(text, detail)
    return { ok: false, advice: [{ line, column, rule: 'syntax', level: 'error', number, detail, suggestion }] }
  }
  const advice = opened.findings.map(toAdvice)
  advice.push(...unreachable(opened.verbs, kind))
  for (const element of opened.verbs) {
    const { node } = readStatement(element, kind)
    if (node) advice.push(...relativeUrls(node, options.url ?? null, element === opened.verbs.at(-1)))
  }
  advice.sort((a, b) => a.line - b.line || a.column - b.column)
  return { ok: advice.every(({ level }) => level !== 'error'), advice }
}

function toAdvice({ line, column, rule, level, number, detail, suggestion }: MarkupFinding): Advice {
  const meant = suggestion === null ? null : `did you mean "${suggestion}"?`
  return { line, column, rule, level, number: number === 0 ? null : number, detail, suggestion: meant }
}

/** Reports the first verb below one that ends the document. */
function unreachable(verbs: readonly Element[], kind: RunKind): Advice[] {
  let ended: string | null = null
  const advice: Advice[] = []
  for (const element of verbs) {
    const { verb, node } = readStatement(element, kind)
    if (ended !== null) {
      const detail = `<${element.name}> is never reached: <${ended}> above ends this document`
      const { line, column } = element
      const suggestion = 'remove it, or move it up'
      advice.push({ line, column, rule: 'unreachable', level: 'warning', number: null, detail, suggestion })
      break
    }
    if (verb && node && verb.ends?.(node)) ended = element.name
  }
  return advice
}

/** Attributes, of any element, that hold the URL of a document or callback. */
const URLS = [
  'action',
  'url',
  'waitUrl',
  'referUrl',
  'statusCallback',
  'statusCallbackUrl',
  'recordingStatusCallback',
  'transcribeCallback',
  'partialResultCallback',
  'amdStatusCallback',
]

/** Reports URLs that have no base, each with the level and number that a call notes for it. */
function relativeUrls(node: Node, base: string | null, last: boolean): Advice[] {
  const advice: Advice[] = []
  const { name: named } = node.shape
  const found = (
    place: { line: number; column: number },
    { level, number }: Pick<Advice, 'level' | 'number'>,
    [detail, suggestion]: readonly [string, string],
  ) => void advice.push({ ...at(place), rule: 'relative_url', level, number, detail, suggestion })
  const relative = (what: string) =>
    [
      `${what} of <${named}> is relative, and an inline document has no URL of its own`,
      'write an absolute URL',
    ] as const
  const unresolved = (url: string) => url.trim() !== '' && resolveUrl(url, base) === undefined
  for (const name of URLS) {
    const written = node.element.attributes[name]
    if (!written || !node.given.has(name) || !unresolved(written.value) || isSocket(named, name)) continue
    found(written, name === 'action' ? noteOfAction(named) : noteOfCallback(node, name), relative(name))
  }
  if ((named === 'Play' || named === 'Redirect') && unresolved(node.text))
    found(node.element, named === 'Play' ? WARNING : ERROR, relative('the URL'))
  if (base === null && asksForItself(node) && !(named === 'Record' && last)) {
    const detail = `<${named}> without a URL asks for this document again, and an inline document has no URL`
    const suggestion = named === 'Redirect' ? 'write an absolute URL' : 'add an absolute action'
    found(node.element, noteOfAction(named), [detail, suggestion])
  }
  for (const noun of node.nouns) advice.push(...relativeUrls(noun, base, false))
  return advice
}

const ERROR = { level: 'error', number: 11100 } as const
const WARNING = { level: 'warning', number: 11100 } as const

/** The URL of these nouns is that of a WebSocket; its reader refuses a relative one. */
const isSocket = (named: string, attribute: string): boolean =>
  (named === 'Stream' || named === 'ConversationRelay') && attribute === 'url'

/** An action is a request that cannot be made: the document fails. A Record only ends the call. */
const noteOfAction = (named: string) => (named === 'Record' ? WARNING : ERROR)

/** A callback without a base is left out, with a warning of the attribute's own number if it has one. */
function noteOfCallback(node: Node, name: string): Pick<Advice, 'level' | 'number'> {
  const number = node.shape.attributes[name]?.number ?? SCHEMA
  return number === SCHEMA ? WARNING : { level: 'warning', number }
}

/** Whether the element, as it is written, requests the document in which it stands. */
function asksForItself({ shape, given, text }: Node): boolean {
  if (shape.name === 'Redirect') return text === ''
  return (shape.name === 'Gather' || shape.name === 'Record') && !given.has('action')
}

function at({ line, column }: { line: number; column: number }) {
  return { line, column }
}

/** Suggests a fix for the most common syntax errors; null for the others. */
function suggestSyntax(text: string, detail: string): string | null {
  if (/^\s+<\?xml/.test(text)) return 'nothing, not even a line break, may stand before the XML declaration'
  if (/DOCTYPE/.test(detail)) return 'remove the DOCTYPE; the five entities of XML and numeric ones are always known'
  if (/entity|ampersand|&/i.test(detail)) return 'write & as &amp;, also inside URLs'
  if (/root element is/.test(detail)) return 'put the verbs into <Response>…</Response>'
  return null
}

import { closest } from '../../core/domain/text/closest.ts'
import { parse } from '../parse/parse.ts'
import { VERBS, VERBS_BY_NAME } from '../verbs/index.ts'
import { type MarkupFinding, type Node, type Report, readShape, shorten } from '../verbs/shape.ts'
import type { Verb } from '../verbs/verb.ts'
import type { Element, Fault, RunKind } from './types.ts'

/** An element that has been read as a verb, or the reason why it cannot run here. */
interface Statement {
  readonly element: Element
  /** Null when the verb is unknown or misplaced; the element is skipped. */
  readonly verb: Verb | null
  readonly node: Node | null
  readonly findings: readonly MarkupFinding[]
  /** The first fault that stops the document when execution reaches this statement. */
  readonly fatal: MarkupFinding | null
}

export type Opened =
  | { readonly ok: true; readonly verbs: readonly Element[]; readonly findings: readonly MarkupFinding[] }
  | { readonly ok: false; readonly fault: Fault }

/** Parses a document and finds all its faults. Fails only for a syntax error. */
export function open(text: string, kind: RunKind): Opened {
  const parsed = parse(text)
  if (!parsed.ok) return parsed
  const { root } = parsed
  const findings: MarkupFinding[] = []
  const report = collect(findings)
  for (const [name, place] of Object.entries(root.attributes)) {
    if (name === 'xml:lang') continue
    const detail = `unknown attribute "${name}" of <Response>`
    report({ rule: 'unknown_attribute', number: 12200, detail, place, element: 'Response' })
  }
  const verbs: Element[] = []
  let stray = false
  for (const child of root.children) {
    if (typeof child !== 'string') verbs.push(child)
    else stray ||= child.trim() !== ''
  }
  if (stray) {
    const detail = 'text inside <Response> is ignored'
    report({ rule: 'content', number: 12200, detail, place: root, element: 'Response' })
  }
  for (const element of verbs) findings.push(...readStatement(element, kind).findings)
  return { ok: true, verbs, findings }
}

/**
 * Statements by element. Elements never change, and every event looks up the running verb: without this cache, a Say of
 * 64 KiB would be read again for each event.
 */
const READ = new WeakMap<Element, Map<RunKind, Statement>>()

/** Reads one direct child of Response in a document of this kind. */
export function readStatement(element: Element, kind: RunKind): Statement {
  const known = READ.get(element)
  const before = known?.get(kind)
  if (before) return before
  const statement = readAnew(element, kind)
  if (known) known.set(kind, statement)
  else READ.set(element, new Map([[kind, statement]]))
  return statement
}

function readAnew(element: Element, kind: RunKind): Statement {
  const findings: MarkupFinding[] = []
  const report = collect(findings)
  const known = VERBS_BY_NAME.get(element.name)
  if (known?.kinds.includes(kind)) {
    const node = readShape(known, element, report)
    return { element, verb: known, node, findings, fatal: findings.find(f => f.effect === 'document') ?? null }
  }
  report(misplaced(element, known, kind))
  return { element, verb: null, node: null, findings, fatal: findings.find(f => f.effect === 'document') ?? null }
}

function misplaced(element: Element, known: Verb | undefined, kind: RunKind): Parameters<Report>[0] {
  const about = { place: element, element: element.name }
  if (!known) {
    const suggestion = closest(
      element.name,
      VERBS.filter(verb => verb.kinds.includes(kind)).map(verb => verb.name),
    )
    const detail = `unknown verb <${shorten(element.name)}>; it is skipped`
    return { ...about, rule: 'unknown_element', number: 12200, detail, suggestion }
  }
  const where = { call: 'a call', whisper: 'a whisper', queue_wait: "a queue's wait", conference_wait: 'a wait' }[kind]
  const detail = `<${element.name}> may not stand in ${where} document`
  const rule = 'misplaced_element'
  if (element.name === 'Dial') return { ...about, rule, number: 13201, effect: 'document', detail }
  if (kind === 'conference_wait') return { ...about, rule, number: 13238, effect: 'document', detail }
  return { ...about, rule, number: 12200, detail: `${detail}; it is skipped` }
}

function collect(findings: MarkupFinding[]): Report {
  return ({ rule, number, effect = 'default', detail, place, element, suggestion = null }) => {
    const level = effect === 'document' ? 'error' : 'warning'
    const { line, column } = place
    findings.push({ rule, number, effect, level, detail, line, column, element, suggestion })
  }
}

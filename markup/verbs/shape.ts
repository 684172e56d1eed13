import { closest } from '../../core/domain/text/closest.ts'
import type { Element, Fault, Place } from '../interpreter/types.ts'
import { type AttributeTypes, type Effect, SCHEMA, type Values } from './attributes.ts'

/** The schema of an element: its attributes, its content, and rules that attribute types cannot express. */
export interface Shape<A extends AttributeTypes = AttributeTypes> {
  readonly name: string
  readonly attributes: A
  /** Shapes of the allowed inner elements. */
  readonly nouns: readonly Shape[]
  /** With `tree`, inner elements stay unread (SSML). */
  readonly content: 'none' | 'text' | 'tree'
  /** Fault number of an inner element that is not allowed here. */
  readonly stray: number
  /**
   * Why the element is not supported, or null. It is read with a warning, so that its verb takes the failure branch.
   */
  readonly unsupported: string | null
  /** Maps the fault numbers of inner elements: Gather has its own numbers for the faults of nested verbs. */
  renumber?(number: number): number
  inspect?(node: Node<A>, report: Report): void
}

/** An element that was read according to its shape. */
export interface Node<A extends AttributeTypes = AttributeTypes> {
  readonly shape: Shape
  readonly element: Element
  readonly attributes: Values<A>
  /** Names of the attributes that the document sets to valid values. */
  readonly given: ReadonlySet<string>
  /** Trimmed text content. */
  readonly text: string
  readonly nouns: readonly Node[]
  /** Why a child dialled by this noun fails at once; null when it can be dialled. */
  readonly failed: string | null
}

/** A fault in the form that the static check lists. */
export interface MarkupFinding extends Fault {
  readonly rule: MarkupRule
  readonly effect: Effect
  readonly suggestion: string | null
  readonly element: string
}

export type MarkupRule =
  | 'syntax'
  | 'unknown_element'
  | 'misplaced_element'
  | 'unknown_attribute'
  | 'bad_value'
  | 'missing'
  | 'not_supported'
  | 'no_effect'
  | 'content'
  | 'unreachable'
  | 'relative_url'

export type Report = (finding: {
  readonly rule: MarkupRule
  readonly number: number
  readonly effect?: Effect
  readonly detail: string
  readonly place: Place
  readonly element: string
  readonly suggestion?: string | null
}) => void

export function shape<const A extends AttributeTypes>(
  name: string,
  attributes: A,
  more: Partial<Omit<Shape<A>, 'name' | 'attributes'>> = {},
): Shape<A> {
  return { name, attributes, nouns: [], content: 'none', stray: SCHEMA, unsupported: null, ...more }
}

export function isNode<A extends AttributeTypes>(of: Shape<A>, node: Node): node is Node<A> {
  return node.shape.name === of.name
}

/** Reads an element according to its shape. Reports every fault; never throws. */
export function readShape<A extends AttributeTypes>(of: Shape<A>, element: Element, listen: Report): Node<A> {
  let failed: string | null = null
  const report: Report = finding => {
    if (finding.effect === 'child') failed ??= finding.detail
    listen(finding)
  }
  const given = new Set<string>()
  const attributes = readAttributes(of, element, given, report)
  const nouns: Node[] = []
  let text = ''
  for (const child of element.children) {
    if (typeof child === 'string') text += child
    else if (of.content === 'tree') continue
    else nouns.push(...readChild(of, child, report))
  }
  text = text.trim()
  if (of.content === 'none' && text !== '') {
    report({
      rule: 'content',
      number: SCHEMA,
      detail: `text inside <${of.name}> is ignored`,
      place: element,
      element: of.name,
    })
  }
  const node: Node<A> = { shape: of as Shape, element, attributes, given, text, nouns, failed }
  if (of.unsupported !== null) {
    report({ rule: 'not_supported', number: SCHEMA, detail: of.unsupported, place: element, element: of.name })
  }
  of.inspect?.(node, report)
  return { ...node, failed }
}

function readAttributes<A extends AttributeTypes>(
  of: Shape<A>,
  element: Element,
  given: Set<string>,
  report: Report,
): Values<A> {
  const values: Record<string, unknown> = {}
  for (const [name, type] of Object.entries(of.attributes)) values[name] = type.fallback
  for (const [name, written] of Object.entries(element.attributes)) {
    const type = Object.hasOwn(of.attributes, name) ? of.attributes[name] : undefined
    const about = { place: written, element: of.name }
    if (!type) {
      if (name === 'xml:lang') continue
      const suggestion = closest(name, Object.keys(of.attributes))
      const detail = `unknown attribute "${name}" of <${of.name}>`
      report({ ...about, rule: 'unknown_attribute', number: SCHEMA, detail, suggestion })
      continue
    }
    const trimmed = written.value.trim()
    if (trimmed === '' && type.empty_is_absent) continue
    const value = type.read(trimmed)
    const doubt = value === undefined ? undefined : type.doubt?.(trimmed)
    if (value === undefined) {
      const detail = `${name}="${shorten(trimmed)}" of <${of.name}> should be: ${type.values}`
      report({ ...about, rule: 'bad_value', number: type.number, effect: type.effect, detail })
      continue
    }
    if (doubt) report({ ...about, rule: 'bad_value', number: type.number, detail: `${name} of <${of.name}>: ${doubt}` })
    if (type.ignored) {
      const detail = `${name} of <${of.name}> has no effect here`
      report({ ...about, rule: 'no_effect', number: type.warns ? SCHEMA : 0, detail })
    }
    values[name] = value
    given.add(name)
  }
  return values as Values<A>
}

function readChild(of: Shape, child: Element, report: Report): Node[] {
  const noun = of.nouns.find(candidate => candidate.name === child.name)
  if (!noun) {
    const suggestion = closest(
      child.name,
      of.nouns.map(n => n.name),
    )
    const detail = `<${shorten(child.name)}> may not stand in <${of.name}>`
    report({ rule: 'misplaced_element', number: of.stray, detail, place: child, element: child.name, suggestion })
    return []
  }
  const renumbered: Report = of.renumber
    ? finding => report({ ...finding, number: of.renumber?.(finding.number) ?? finding.number })
    : report
  return [readShape(noun, child, renumbered)]
}

export function shorten(value: string, to = 60): string {
  return value.length <= to ? value : `${value.slice(0, to)}…`
}

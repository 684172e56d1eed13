import { VERBS } from './index.ts'
import type { Shape } from './shape.ts'

/** A row of the published table: an element or one of its attributes. */
interface AttributeRow {
  /** `Dial`, or `Dial > Sip` for a noun. */
  readonly element: string
  /** Null for the element itself. */
  readonly attribute: string | null
  readonly values: string
  readonly default: string
  /** Fault number of a bad value, and whether it stops the document or fails the child. */
  readonly fault: string
  readonly support: 'yes' | 'no effect' | 'not supported'
}

/** Returns every verb, noun and attribute, in registry order. */
export function attributeRows(): readonly AttributeRow[] {
  return VERBS.flatMap(verb => rowsOf(verb, verb.name))
}

function rowsOf(shape: Shape, path: string): AttributeRow[] {
  const support = shape.unsupported === null ? 'yes' : 'not supported'
  const rows: AttributeRow[] = [{ element: path, attribute: null, values: '', default: '', fault: '', support }]
  for (const [attribute, type] of Object.entries(shape.attributes)) {
    rows.push({
      element: path,
      attribute,
      values: type.values,
      default: shown(type.fallback),
      fault: type.ignored
        ? ''
        : `${type.number}${{ default: '', child: ', child fails', document: ', fatal' }[type.effect]}`,
      support: type.ignored ? 'no effect' : support,
    })
  }
  // A nested verb (Say in Gather) already has its own rows.
  const nouns = shape.nouns.filter(noun => !VERBS.some(verb => verb.name === noun.name))
  return [...rows, ...nouns.flatMap(noun => rowsOf(noun, `${path} > ${noun.name}`))]
}

function shown(value: unknown): string {
  if (value === null || value === undefined) return ''
  return Array.isArray(value) ? value.join(' ') : String(value)
}

/** A test file and its text, which is searched for elements and attributes. */
export interface TestText {
  readonly name: string
  readonly text: string
}

/** Returns the tests that contain `<Element … attribute=` (or `<Element` for the element itself). */
export function testsOf({ element, attribute }: AttributeRow, tests: readonly TestText[]): readonly string[] {
  const [name = '', within] = element.split(' > ').reverse()
  const tag = attribute === null ? `<${name}[\\s/>]` : `<${name}\\b[^<>]*\\s${attribute}=`
  const pattern = new RegExp(tag)
  // Several verbs may have a noun of this name, so the test must contain the verb too.
  const outer = within === undefined ? null : new RegExp(`<${element.split(' > ')[0]}[\\s>]`)
  return tests.filter(({ text }) => pattern.test(text) && (outer?.test(text) ?? true)).map(test => test.name)
}

/** Reports whether a test runs whole calls, with real SIP and audio. */
export const onLiveCalls = (test: string): boolean => test.startsWith('flows/')

/** Returns the published table of elements, attributes and tests, in Markdown. */
export function markdownTable(tests: readonly TestText[]): string {
  const lines = [
    '| element | attribute | values | default | fault | support | on live calls | other tests |',
    '| --- | --- | --- | --- | --- | --- | --- | --- |',
  ]
  const named = (found: readonly string[]): string =>
    found.length > 3 ? `${found.slice(0, 3).join(', ')} and ${found.length - 3} more` : found.join(', ')
  for (const row of attributeRows()) {
    const found = testsOf(row, tests)
    const attribute = row.attribute === null ? '' : `\`${row.attribute}\``
    const cells = [
      `\`${row.element}\``,
      attribute,
      row.values,
      row.default,
      row.fault,
      row.support,
      named(found.filter(onLiveCalls)),
      named(found.filter(test => !onLiveCalls(test))),
    ]
    lines.push(`| ${cells.map(cell => cell.replace(/\|/g, '\\|')).join(' | ')} |`)
  }
  return `${lines.join('\n')}\n`
}

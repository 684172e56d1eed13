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
  return VERBS.flatMap(verb => rowsOf(verb, verb.name, true))
}

function rowsOf(shape: Shape, path: string, within: boolean): AttributeRow[] {
  const supported = within && shape.unsupported === null
  const support = supported ? 'yes' : 'not supported'
  const types = Object.values(shape.attributes)
  const idle = types.length > 0 && types.every(type => type.ignored) && shape.nouns.length === 0
  const about = { element: path, attribute: null, values: '', default: '', fault: '' }
  const rows: AttributeRow[] = [{ ...about, support: supported && idle ? 'no effect' : support }]
  for (const [attribute, type] of Object.entries(shape.attributes)) {
    rows.push({
      element: path,
      attribute,
      values: type.values,
      default: shown(type.fallback),
      fault: type.ignored
        ? ''
        : `${type.number}${{ default: '', child: ', child fails', document: ', fatal' }[type.effect]}`,
      support: supported && type.ignored ? 'no effect' : support,
    })
  }
  // A nested verb (Say in Gather) already has its own rows.
  const nouns = shape.nouns.filter(noun => !VERBS.some(verb => verb.name === noun.name))
  return [...rows, ...nouns.flatMap(noun => rowsOf(noun, `${path} > ${noun.name}`, supported))]
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

/** What a row does, by the registry of effects. */
function acts(row: AttributeRow, shown: ReadonlySet<string>): string {
  if (row.support !== 'yes') return 'no'
  return shown.has(`${row.element} ${row.attribute ?? ''}`) ? 'yes' : 'read, not acted on'
}

/**
 * Returns the published table of elements, attributes and tests, in Markdown. `shown` has the rows whose effect a test
 * asserts.
 */
export function markdownTable(tests: readonly TestText[], shown: ReadonlySet<string>): string {
  const lines = [
    '| element | attribute | values | default | fault | support | acts | on live calls | other tests |',
    '| --- | --- | --- | --- | --- | --- | --- | --- | --- |',
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
      acts(row, shown),
      named(found.filter(onLiveCalls)),
      named(found.filter(test => !onLiveCalls(test))),
    ]
    lines.push(`| ${cells.map(cell => cell.replace(/\|/g, '\\|')).join(' | ')} |`)
  }
  return `${lines.join('\n')}\n`
}

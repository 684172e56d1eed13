import { VERBS } from '../../markup/verbs/index.ts'
import type { Shape } from '../../markup/verbs/shape.ts'

/** What the registry of verbs says of elements, for programs without the registry: the console and `packages/voice`. */

/** An element with everything that it may have in any place where it may stand. */
export interface Known {
  readonly name: string
  /** What each attribute may be, in the words of the documentation. */
  readonly attributes: Map<string, string>
  readonly nouns: Set<string>
  content: Shape['content']
}

export function knownElements(): Map<string, Known> {
  const all = new Map<string, Known>()
  const add = (shape: Shape): void => {
    if (shape.unsupported !== null) return
    const one = all.get(shape.name) ?? { name: shape.name, attributes: new Map(), nouns: new Set(), content: 'none' }
    all.set(shape.name, one)
    if (shape.content !== 'none') one.content = shape.content
    for (const [name, { values, ignored }] of Object.entries(shape.attributes))
      if (!ignored && !one.attributes.has(name)) one.attributes.set(name, values)
    for (const noun of shape.nouns) {
      if (noun.unsupported === null) one.nouns.add(noun.name)
      add(noun)
    }
  }
  for (const verb of VERBS) add(verb)
  return all
}

/** The words that an attribute may be; null when its values are of another kind. */
export const wordsOfValues = (values: string): string[] | null =>
  /^[\w-]+( [\w-]+)?(, [\w-]+( [\w-]+)?)+$/.test(values) ? values.split(', ') : null

const CONSOLE_NOTICE = `// Made from the registry of verbs by \`npm run documents\`; do not edit.
// biome-ignore-all format: made by a program
import type { MarkupElement } from '../ui/code-editor.tsx'
`

/** Generates the elements that the console's editor offers. */
export function consoleElements(): string {
  const verbs = VERBS.filter(verb => verb.unsupported === null).map(({ name }) => name)
  const quoted = (list: readonly string[]): string => `[${list.map(word => `'${word}'`).join(', ')}]`
  const lines = [...knownElements().values()].map(({ name, attributes, nouns }) => {
    const named = [...attributes].map(([attribute, values]) => {
      const words = wordsOfValues(values)
      return `{ name: '${attribute}'${words ? `, values: ${quoted(words)}` : ''} }`
    })
    return `  { name: '${name}', children: ${quoted([...nouns])}, attributes: [${named.join(', ')}] },`
  })
  const top = `  { name: 'Response', top: true, children: ${quoted(verbs)}, attributes: [] },`
  return [CONSOLE_NOTICE, 'export const ELEMENTS: readonly MarkupElement[] = [', top, ...lines, ']', ''].join('\n')
}

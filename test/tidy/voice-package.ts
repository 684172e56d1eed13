import { VERBS } from '../../markup/verbs/index.ts'
import { type Known, knownElements, wordsOfValues } from './markup-elements.ts'

/** Generates `packages/voice/src/elements.ts`: a function for each element that documents may have. */

const NOTICE = `// Made from the registry of verbs by \`npm run documents\`; do not edit.
// biome-ignore-all format: made by a program
import { type Element, element, render, type Ssml } from './element.ts'
`

/** Returns the TypeScript type of an attribute, from the values that its documentation names. */
function typeOf(values: string): string {
  const [, listed] = /^list of (.*)$/.exec(values) ?? []
  if (listed !== undefined) return `readonly (${wordsOf(listed).join(' | ')})[]`
  if (/^(integer|seconds) /.test(values)) return `number${values.endsWith(', auto') ? " | 'auto'" : ''}`
  if (/^(up to \d+ of|comma list)/.test(values)) return 'readonly string[]'
  const words = wordsOfValues(values)?.map(word => `'${word}'`)
  if (!words) return 'string'
  const is_flag = words.includes("'true'") && words.includes("'false'")
  const others = words.filter(word => word !== "'true'" && word !== "'false'")
  return (is_flag ? ['boolean', ...others] : words).join(' | ')
}

const wordsOf = (list: string): string[] => list.split(', ').map(word => `'${word}'`)

const functionName = (name: string): string => `${name.charAt(0).toLowerCase()}${name.slice(1)}`

export function voiceElements(): string {
  const all = [...knownElements().values()]
  const verbs = VERBS.filter(verb => verb.unsupported === null).map(({ name }) => `'${name}'`)
  return [
    NOTICE,
    `/** An element that may stand directly in a document. */\nexport type Verb = Element<${verbs.join(' | ')}>\n`,
    `/** Returns a document of verbs as XML. */`,
    `export const response = (...verbs: readonly Verb[]): string =>`,
    `  \`<?xml version="1.0" encoding="UTF-8"?>\${render(element('Response', {}, verbs))}\`\n`,
    ...all.map(functionOf),
  ].join('\n')
}

function functionOf({ name, attributes, nouns, content }: Known): string {
  const fields = [...attributes].map(
    ([field, values]) => `  /** ${values} */\n  readonly ${field}?: ${typeOf(values)}\n`,
  )
  const has_fields = fields.length > 0
  const type = `${name}Attributes`
  const shape = has_fields ? `export interface ${type} {\n${fields.join('')}}\n\n` : ''
  const taken = has_fields ? `attributes: ${type}` : 'attributes: Record<string, never>'
  const text = content === 'tree' ? 'string | Ssml' : 'string'
  const inner = [...nouns].map(noun => `Element<'${noun}'>`)
  const made = `Element<'${name}'>`
  const head = `${shape}/** \`<${name}>\` */\nexport const ${functionName(name)} = `
  if (inner.length > 0) {
    const parts = [...inner, ...(content === 'none' ? [] : [text])].join(' | ')
    return `${head}(${taken}, ...content: readonly (${parts})[]): ${made} =>\n  element('${name}', attributes, content)\n`
  }
  const optional = has_fields ? `${taken} = {}` : ''
  const given = has_fields ? 'attributes' : '{}'
  if (content === 'none') return `${head}(${optional}): ${made} => element('${name}', ${given}, [])\n`
  const comma = has_fields ? `, ${optional}` : ''
  return `${head}(text: ${text}${comma}): ${made} => element('${name}', ${given}, [text])\n`
}

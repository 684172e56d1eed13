import type { FormParameters } from '../../interpreter/types.ts'
import { text } from '../attributes.ts'
import { isNode, type Node, type Report, shape } from '../shape.ts'

/** A name and a value for the far side of a noun. */
export const parameter = shape(
  'Parameter',
  { name: text({ max: 500 }), value: text({ max: 500 }) },
  {
    inspect({ attributes, element }, report) {
      if (attributes.name) return
      report({
        rule: 'missing',
        number: 12200,
        detail: '<Parameter> has no name',
        place: element,
        element: 'Parameter',
      })
    },
  },
)

/** Returns the Parameter children of a noun. The last of a repeated name wins. */
export function parametersOf(node: Node): FormParameters {
  const parameters: Record<string, string> = {}
  for (const noun of node.nouns) {
    if (isNode(parameter, noun) && noun.attributes.name) parameters[noun.attributes.name] = noun.attributes.value ?? ''
  }
  return parameters
}

/** Reports each parameter whose name and value together exceed 500 characters (voice-compat.md §12.5). */
export function inspectParameters(node: Node, report: Report): void {
  for (const { attributes, element } of node.nouns.filter(noun => isNode(parameter, noun))) {
    const length = `${attributes['name'] ?? ''}${attributes['value'] ?? ''}`.length
    if (length <= 500) continue
    const detail = `name and value of <Parameter> have ${length} characters; at most 500 are allowed`
    report({ rule: 'bad_value', number: 12200, detail, place: element, element: 'Parameter' })
  }
}

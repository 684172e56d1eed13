import { shape } from '../shape.ts'
import { parameter } from './parameters.ts'
import { childAttributes } from './shared.ts'

const identity = shape('Identity', {}, { content: 'text' })

export const client = shape('Client', childAttributes(12200), {
  content: 'text',
  nouns: [identity, parameter],
  inspect(node, report) {
    if (/^[^\s]{1,256}$/.test(identityOf(node))) return
    const detail = 'the identity of <Client> is missing or not one word of up to 256 characters'
    report({ rule: 'content', number: 12200, effect: 'child', detail, place: node.element, element: 'Client' })
  },
})

/** Returns the identity: the text of the Identity child or, without one, of the noun. */
export function identityOf(node: {
  readonly text: string
  readonly nouns: readonly { readonly shape: { readonly name: string }; readonly text: string }[]
}): string {
  return node.nouns.find(noun => noun.shape.name === 'Identity')?.text ?? node.text
}

import { ignored, method, url } from '../attributes.ts'
import { shape } from '../shape.ts'
import { parameter } from './parameters.ts'
import { childAttributes } from './shared.ts'

const applicationSid = shape('ApplicationSid', {}, { content: 'text' })

export const application = shape(
  'Application',
  {
    ...childAttributes(12200),
    url: url(),
    method: method(),
    customerId: ignored(),
    copyParentTo: ignored(),
  },
  {
    content: 'text',
    nouns: [applicationSid, parameter],
    inspect(node, report) {
      if (/^[A-Za-z0-9_-]{1,64}$/.test(applicationIdOf(node))) return
      const detail = 'the id of <Application> is missing or not an id'
      report({ rule: 'content', number: 12200, effect: 'child', detail, place: node.element, element: 'Application' })
    },
  },
)

export function applicationIdOf(node: {
  readonly text: string
  readonly nouns: readonly { readonly shape: { readonly name: string }; readonly text: string }[]
}): string {
  return node.nouns.find(noun => noun.shape.name === 'ApplicationSid')?.text ?? node.text
}

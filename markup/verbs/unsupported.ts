import { method, url } from './attributes.ts'
import { toAction, verb } from './verb.ts'

/**
 * A verb that has nothing behind it here: a warning, and its action is requested with the result that lets the script
 * take its failure branch (voice-compat.md §13).
 */
function unsupported(name: string, result: Readonly<Record<string, string>>) {
  return verb(
    name,
    { action: url(), method: method() },
    {
      content: 'tree',
      unsupported: `<${name}> is not supported; it is skipped`,
      answers: () => false,
      ends: node => node.attributes.action !== null,
      begin: ({ attributes }) => toAction(attributes, result),
    },
  )
}

export const sms = unsupported('Sms', { SmsStatus: 'failed' })
export const pay = unsupported('Pay', { Result: 'payment-connector-error' })
export const prompt = unsupported('Prompt', { Result: 'payment-connector-error' })

import { method, url } from './attributes.ts'
import { toAction, verb } from './verb.ts'

/**
 * Declares a verb that is not implemented here. It causes a warning, and its action is requested with `result`, so that
 * the script takes its failure branch (voice-compat.md §13).
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

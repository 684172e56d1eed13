import { withoutSeparators } from '../../../core/domain/numbers/separators.ts'
import { ignored, pattern } from '../attributes.ts'
import { shape } from '../shape.ts'
import { childAttributes, DETECTION } from './shared.ts'

export const number = shape(
  'Number',
  {
    ...childAttributes(13221),
    sendDigits: pattern(/^[0-9A-D#*wW]{1,100}$/i, '0-9 A-D # * w W', { default: null, number: 13222 }),
    byoc: ignored(),
    ...DETECTION,
  },
  {
    content: 'text',
    inspect({ text, element }, report) {
      if (dialable(text) !== null) return
      const detail = `"${text.slice(0, 60)}" is not a telephone number`
      report({ rule: 'content', number: 13223, effect: 'child', detail, place: element, element: 'Number' })
    },
  },
)

/** Returns the number without visual separators; null when the text is not a number. */
export function dialable(text: string): string | null {
  const digits = withoutSeparators(text)
  return /^\+?[0-9]{3,15}$/.test(digits) ? digits : null
}

import { ignored, method, url } from '../attributes.ts'
import { shape } from '../shape.ts'

export const queue = shape(
  'Queue',
  {
    url: url(14211, 'document'),
    method: method(14210, 'document'),
    reservationSid: ignored(),
    postWorkActivitySid: ignored(),
  },
  {
    content: 'text',
    inspect({ text, element, given }, report) {
      const about = { place: element, element: 'Queue', rule: 'content', effect: 'document' } as const
      if (given.has('reservationSid')) {
        const detail = 'reservations are not supported; the queue is not entered'
        report({ ...about, rule: 'not_supported', effect: 'default', number: 12200, detail })
      } else if (text === '') report({ ...about, number: 14212, detail: 'the name of the queue is missing' })
      else if (text.length > 64)
        report({ ...about, number: 14213, detail: 'the name of the queue has over 64 characters' })
    },
  },
)

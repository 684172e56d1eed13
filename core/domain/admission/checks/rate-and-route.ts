import { minuteMinor } from '../../rating/price.ts'
import { counted } from '../../text/counted.ts'
import { passed, refused, skipped } from '../findings.ts'
import type { Check } from '../types.ts'

export const rateAndRoute: Check = {
  name: 'rate_and_route',
  reasons: ['no_rate', 'no_route'],
  asked: ['outbound'],
  decide({ called, over, price_book, rate, routes, billing }) {
    const number = called.number
    if (over !== 'network') {
      const price = rate ? `rate of class ${rate.prefix} ${rate.label}` : 'costs nothing'
      return passed(`${price}; a ${over} leg needs no route`, null, rate ? minuteMinor(rate) : null)
    }
    if (!number) return skipped('there is no number')
    if (!rate && billing === 'rated')
      return refused('no_rate', { value: number.e164, name: price_book ? `"${price_book.name}"` : 'of the project' })
    if (routes === 0) return refused('no_route', { value: number.e164 })
    const price = rate ? `rate +${rate.prefix} ${rate.label}` : 'not billed'
    return passed(`${price}, ${counted(routes, 'route')}`, routes, rate ? minuteMinor(rate) : null)
  },
}

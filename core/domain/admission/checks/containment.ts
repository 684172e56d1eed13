import { passed, refused, skipped } from '../findings.ts'
import type { Check } from '../types.ts'

export const containment: Check = {
  name: 'containment',
  reasons: ['DESTINATION_CONTAINED'],
  asked: ['outbound'],
  decide({ called, containments }) {
    const number = called.number
    if (!number) return skipped('there is no number')
    const hit = containments.find(({ prefix }) => number.digits.startsWith(prefix))
    if (hit)
      return refused('DESTINATION_CONTAINED', { value: number.e164, limit: `+${hit.prefix}`, name: hit.case_ref })
    return passed('the destination is not contained', null, number.e164)
  },
}

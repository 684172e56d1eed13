import { minuteMinor } from '../../rating/price.ts'
import { skipped, withinLevels } from '../findings.ts'
import type { Check } from '../types.ts'

/** The ceiling is an amount per minute (docs/calls.md). A call that is not billed has the rate 0. */
export const rateCeiling: Check = {
  name: 'rate_ceiling',
  reasons: ['rate_above_ceiling'],
  asked: ['outbound'],
  decide({ rate, levels, called, over }) {
    if (!called.number && over === 'network') return skipped('there is no number')
    const used = rate ? minuteMinor(rate) : 0
    return withinLevels(levels, {
      reason: 'rate_above_ceiling',
      noun: 'the rate a minute',
      of_money: true,
      compare: ({ max_destination_rate_minor }) => ({ limit: max_destination_rate_minor, used }),
      adds: 0,
      shows: 'used',
    })
  },
}

import { passed, refused, skipped } from '../findings.ts'
import type { Check } from '../types.ts'

/** Every policy must have the moment in its hours. Emergency numbers and short codes may always be called. */
export const callingHours: Check = {
  name: 'calling_hours',
  reasons: ['outside_calling_hours'],
  asked: ['outbound'],
  decide({ called, closed_by }) {
    if (closed_by === null) return passed('within the calling hours', null, null)
    if (called.short_code !== undefined) return skipped('short codes may always be called')
    return refused('outside_calling_hours', { name: `"${closed_by.policy}"`, value: closed_by.local_time })
  },
}

import { withinLevels } from '../findings.ts'
import type { Check } from '../types.ts'

export const cps: Check = {
  name: 'cps',
  reasons: ['cps_exceeded'],
  asked: ['outbound', 'inbound', 'on_net'],
  decide: ({ levels }) =>
    withinLevels(levels, {
      reason: 'cps_exceeded',
      noun: 'calls of the last second',
      compare: level => level.cps,
      adds: 1,
      shows: 'used',
    }),
}

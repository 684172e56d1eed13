import { withinLevels } from '../findings.ts'
import type { Check } from '../types.ts'

export const concurrency: Check = {
  name: 'concurrency',
  reasons: ['concurrency_exceeded'],
  asked: ['outbound', 'inbound', 'on_net'],
  decide: ({ levels }) =>
    withinLevels(levels, {
      reason: 'concurrency_exceeded',
      noun: 'calls in progress',
      compare: level => level.concurrency,
      adds: 1,
      shows: 'used',
    }),
}

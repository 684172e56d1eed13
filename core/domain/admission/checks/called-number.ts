import { passed, refused, skipped } from '../findings.ts'
import type { Check } from '../types.ts'

export const calledNumber: Check = {
  name: 'called_number',
  reasons: ['number_invalid'],
  asked: ['outbound', 'on_net'],
  decide({ called, over }) {
    if (!called.number && over !== 'network') return skipped(`a ${over} leg needs no number`)
    if (!called.number) return refused('number_invalid', { value: called.given, limit: called.country })
    const { e164 } = called.number
    const sentence = called.given === e164 ? `${e164} is a number of E.164` : `${called.given} is ${e164}`
    return passed(sentence, 'E.164', e164)
  },
}

import type { CallerOwnership } from '../../identity/caller.ts'
import { passed, refused, skipped } from '../findings.ts'
import type { Check } from '../types.ts'

const SENTENCE: Readonly<Record<CallerOwnership, string>> = {
  owned: 'a number of this service',
  forwarded: 'the caller of the call that is forwarded',
  default: 'the default caller of the trunk',
  invalid: 'not an E.164 number',
  not_owned: 'not a number of the project',
  outside_service: 'a number of the project, but not of this service',
}

export const callerNumber: Check = {
  name: 'caller_number',
  reasons: ['caller_not_owned'],
  // A peer may present any caller to a number of the platform (docs/calls.md), but not to the telephone network.
  asked: ['outbound'],
  decide({ caller, over }) {
    if (over !== 'network') return skipped(`a ${over} leg presents whom its document names`)
    const sentence = SENTENCE[caller.ownership]
    const given = caller.given || 'anonymous'
    switch (caller.ownership) {
      case 'owned':
      case 'forwarded':
      case 'default':
        return passed(`${caller.e164 ?? given} is ${sentence}`, 'owned', caller.e164)
      case 'invalid':
      case 'not_owned':
      case 'outside_service':
        return refused('caller_not_owned', { value: given, limit: sentence })
    }
  },
}

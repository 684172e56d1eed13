import { verb } from './verb.ts'

/**
 * Hangs up. An unanswered call is answered first, because scripts and call records expect it; Reject does not answer.
 */
export const hangup = verb(
  'Hangup',
  {},
  {
    kinds: ['call', 'whisper', 'queue_wait'],
    answers: () => false,
    ends: () => true,
    begin: () => ({ to: 'hangup' }),
  },
)

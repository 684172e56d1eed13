import { verb } from './verb.ts'

/** As first verb of an unanswered call it answers, then hangs up: scripts and call records expect it; see Reject. */
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

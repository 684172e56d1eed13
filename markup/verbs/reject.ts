import { choice } from './attributes.ts'
import { verb } from './verb.ts'

export const reject = verb(
  'Reject',
  { reason: choice(['rejected', 'busy'], { default: 'rejected', number: 13810 }) },
  {
    answers: () => false,
    ends: () => true,
    begin({ attributes }, turn) {
      if (turn.answered) return { to: 'hangup' }
      const busy = attributes.reason === 'busy'
      // 603, not 404: in the compatible form 404 means its not-in-service message (voice-compat.md §10).
      turn.emit({ type: 'reject', sip_code: busy ? 486 : 603, status: busy ? 'busy' : 'no-answer' })
      return { to: 'done', outcome: 'rejected' }
    },
  },
)

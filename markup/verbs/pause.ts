import type { Event } from '../interpreter/types.ts'
import { integer } from './attributes.ts'
import { next, stay, verb } from './verb.ts'

interface PauseState {
  readonly timer: string
}

export const pause = verb(
  'Pause',
  { length: integer({ default: 1, min: 0, max: 86_400, number: 13910 }) },
  {
    kinds: ['call', 'whisper', 'queue_wait', 'conference_wait'],
    // A leading Pause delays the answer by its length (voice-compat.md §9).
    answers: () => false,
    begin(node, turn) {
      if (node.attributes.length === 0) return next
      const id = turn.id('timer')
      turn.emit({ type: 'start_timer', id, ms: node.attributes.length * 1000 })
      return stay({ timer: id } satisfies PauseState)
    },
    on(_node, _turn, state: PauseState, event: Event) {
      return event.type === 'timer' && event.id === state.timer ? next : undefined
    },
    cut(_node, turn, state) {
      turn.emit({ type: 'cancel_timer', id: state.timer })
    },
  },
)

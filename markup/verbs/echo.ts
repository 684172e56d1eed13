import { stay, verb } from './verb.ts'

/** Sends the caller's audio back until the call ends. */
export const echo = verb(
  'Echo',
  {},
  {
    ends: () => true,
    begin(_node, turn) {
      turn.emit({ type: 'start_echo' })
      return stay(null)
    },
  },
)

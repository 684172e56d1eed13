import { verb } from './verb.ts'

/** Takes the caller out of the queue. Allowed only in a queue's wait document. */
export const leave = verb(
  'Leave',
  {},
  {
    kinds: ['queue_wait'],
    answers: () => false,
    ends: () => true,
    begin: () => ({ to: 'done', outcome: 'leave' }),
  },
)

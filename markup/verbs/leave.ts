import { verb } from './verb.ts'

/** Only in a queue's wait document: the caller leaves the queue. */
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

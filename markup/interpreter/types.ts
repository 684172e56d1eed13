/**
 * The contract between the pure interpreter and its executor (signaling/scripts).
 *
 * The executor holds one Run per leg that executes markup. It calls `start(facts)` once, then `step(run, event)` for
 * each event, carries out the returned commands in order, and keeps the returned run. Runs, Commands and Events are
 * plain JSON. These rules hold for all of them:
 *
 * - The interpreter makes ids from a counter (`play-3`). An event names the id of the command that it answers. `step`
 *   ignores an event whose id is no longer awaited, so the executor may report late and need not filter.
 * - The executor starts commands in order without waiting for one to complete. Commands of one run that touch the same
 *   leg keep their order.
 * - Time is an event: `start_timer` asks for `timer`. The executor enforces no other time limit, except those that a
 *   media worker measures (silence and length of a recording, end of speech).
 * - `fetch` and `callback` carry only the verb's parameters. The executor adds the standard set of voice-compat.md §7.2
 *   for the run's leg (for a wait document also the queue's or conference's). It signs, follows redirects, retries as
 *   the URL fragment says and guards against private addresses.
 * - `done` is the last command of a run. After it the executor ends what the run still has open (timers, plays,
 *   children). Activities that `start_*` began belong to the leg, not to the run, and end with the leg.
 */

export type * from './commands.ts'
export type * from './events.ts'
export type * from './facts.ts'
export type * from './run.ts'

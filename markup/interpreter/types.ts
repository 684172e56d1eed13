/**
 * The contract between the pure interpreter and its executor (signaling/scripts).
 *
 * The executor holds one Run per leg that executes markup. It calls `start(facts)` once, then `step(run, event)` for
 * each event, carries out the returned commands in order, and keeps the returned run. A Run, every Command and every
 * Event are plain JSON. Rules that hold for all of them:
 *
 * - Ids are made by the interpreter from a counter (`play-3`). An event names the id of the command it answers. An
 *   event whose id is no longer awaited is ignored by `step`, so the executor may report late and need not filter.
 * - Commands are carried out in the order given and without waiting for one another, except that commands of one run
 *   that touch the same leg keep their order.
 * - Time is an event: `start_timer` asks for `timer`. No other command carries a time limit that the executor must
 *   watch, save what a media worker measures by itself (silence and length of a recording, end of speech).
 * - Parameters in `fetch` and `callback` are only those of the verb. The executor adds the standard set of
 *   voice-compat.md §7.2 for the leg the run is on (for a wait document also the queue's or conference's), signs,
 *   follows redirects, retries by the URL fragment and guards against private addresses.
 * - `done` is the last command of a run. After it the executor ends, for this run, whatever is still going on
 *   (timers, plays, children); activities begun by `start_*` belong to the leg, not to the run, and end with the
 *   leg.
 */

export type * from './commands.ts'
export type * from './events.ts'
export type * from './facts.ts'
export type * from './run.ts'

import { setTimeout } from 'node:timers/promises'
import { giveWay } from '../../runtime/give-way.ts'
import type { Db, Trx } from '../db.ts'
import type { State } from '../port.ts'

/** Rows of a transaction while calls come in, and while none does. The first takes a millisecond. */
const ROWS = { beside_calls: 100, calm: 500 } as const
/** Beside calls, the store is left to them for this many times as long as a part had it. */
const PAUSE_TIMES = 20
/** A process that was stopped within a part measures nonsense. */
const MOST_PAUSE_MS = 250
/** Beside calls, a part waits so long for a moment in which none is set up. */
const MOST_WAY_MS = 20
/** Calls come in until so long after the newest one. */
const CALM_AFTER_MS = 10_000

/** Reports whether calls have come in lately. */
export async function callsComeIn(db: Db, now_ms: number): Promise<boolean> {
  const query = db.selectFrom('call').select('queued_at').orderBy('position', 'desc').limit(1)
  const newest = await query.executeTakeFirst()
  return newest !== undefined && Date.parse(newest.queued_at) > now_ms - CALM_AFTER_MS
}

/** Writes so many rows of a long work. Returns whether there are more. */
type Part = (trx: Trx, rows: number) => Promise<boolean>

/**
 * Writes the next part of a long work in a transaction of its own, and leaves the store to calls for a while: an
 * admission that finds the store locked waits for the lock. Returns whether there is more to write.
 */
export async function writePart(state: State, part: Part): Promise<boolean> {
  const beside_calls = await callsComeIn(state.db, state.clock.now())
  if (beside_calls) await giveWay(MOST_WAY_MS)
  let held_ms = 0
  const more = await state.shortTransaction(
    async trx => {
      const begun_ms = state.clock.monotonic_ms()
      const left = await part(trx, beside_calls ? ROWS.beside_calls : ROWS.calm)
      held_ms = state.clock.monotonic_ms() - begun_ms
      return left
    },
    // A sync for each part would hold up those that calls wait for.
    left => !left,
  )
  // A command has nothing else that would keep its process alive meanwhile.
  if (more && beside_calls) await setTimeout(Math.min(PAUSE_TIMES * held_ms, MOST_PAUSE_MS))
  return more
}

/**
 * Writes a long work to its end, part by part. It breaks off when `goesOn` says no, such as at the end of the process:
 * for work that finds by itself what is left.
 */
export async function writeInParts(state: State, part: Part, goesOn: () => boolean = () => true): Promise<void> {
  while ((await writePart(state, part)) && goesOn());
}

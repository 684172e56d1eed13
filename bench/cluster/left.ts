import { setTimeout as pause } from 'node:timers/promises'
import type { State } from '../../core/state/index.ts'
import { brokenInvariants } from '../../core/state/maintenance/invariants.ts'

// What two machines have left in the rows when all calls should be over.

const LOOK_MS = 500

const running = ({ db }: State) => db.selectFrom('call').select('queued_at').where('ended_at', 'is', null).execute()

/** Waits until no call is in progress, but not for ever. */
export async function awaitEnds(state: State, limit_ms: number): Promise<void> {
  const until_ms = performance.now() + limit_ms
  while (performance.now() < until_ms && (await running(state)).length > 0) await pause(LOOK_MS)
}

/** Observes how old calls in progress become. */
export function watchAge(state: State): { stop(): number } {
  let oldest_ms = 0
  const look = async (): Promise<void> => {
    for (const { queued_at } of await running(state))
      oldest_ms = Math.max(oldest_ms, state.clock.now() - Date.parse(queued_at))
  }
  const looking = setInterval(() => void look().catch(error => console.error(error)), LOOK_MS)
  return {
    stop() {
      clearInterval(looking)
      return oldest_ms
    },
  }
}

export async function countOf({ db }: State): Promise<number> {
  const counted = db.selectFrom('call').select(eb => eb.fn.countAll<number>().as('calls'))
  return Number((await counted.executeTakeFirstOrThrow()).calls)
}

/** Why calls failed. */
export const reasons = ({ db }: State) =>
  db
    .selectFrom('call')
    .select(eb => ['reason', eb.fn.countAll<number>().as('count')])
    .where('reason', 'is not', null)
    .groupBy('reason')
    .execute()

/** What is left that should not be, or lacks, in sentences. */
export async function wrongRows(state: State): Promise<readonly string[]> {
  const { db } = state
  const open = await running(state)
  const slots = await db.selectFrom('lease').select('call_sid').where('ended_at', 'is', null).execute()
  const without = await db
    .selectFrom('call')
    .leftJoin('cdr', 'cdr.call_sid', 'call.sid')
    .select('call.sid')
    .where('cdr.call_sid', 'is', null)
    .execute()
  const charges = await db
    .selectFrom('cdr')
    .leftJoin('ledger', join => join.onRef('ledger.call_sid', '=', 'cdr.call_sid').on('ledger.kind', '=', 'charge'))
    .select(eb => ['cdr.call_sid', eb.fn.count<number>('ledger.position').as('charges')])
    .where('cdr.answered_at', 'is not', null)
    .groupBy('cdr.call_sid')
    .execute()
  const unbilled = charges.filter(one => Number(one.charges) === 0).length
  const twice = charges.filter(one => Number(one.charges) > 1).length
  return [
    ...(await brokenInvariants(db)),
    ...(open.length > 0 ? [`${open.length} calls are still in progress`] : []),
    ...(slots.length > 0 ? [`${slots.length} slots are still taken`] : []),
    ...(without.length > 0 ? [`${without.length} calls have no record`] : []),
    ...(unbilled > 0 ? [`${unbilled} answered calls are not charged`] : []),
    ...(twice > 0 ? [`${twice} calls are charged twice`] : []),
  ]
}

import { ending } from '../../domain/calls/endings.ts'
import type { Db, Trx } from '../db.ts'
import { callProcedure, type State } from '../port.ts'
import type { Admission, AdmitInput, AdmitQueuedInput } from '../procedures/running/admit.ts'
import type { FinalFacts } from '../procedures/running/finish.ts'
import { keptCall } from '../procedures/running/kept-call.ts'
import { type CallRow, type NewCall, rowOf } from '../procedures/running/rows.ts'
import type { CallStep, CallWritten } from '../procedures/running/write.ts'

/**
 * The rows of calls from their insertion to their end with a CDR. Each function that writes sends one message to the
 * state's thread and runs in its own transaction unless it gets one (core/state/procedures/running, decision 0002).
 */

export async function insertCall(db: Db | Trx, call: NewCall, now_ms: number): Promise<CallRow> {
  const position = await callProcedure(db, 'insert_call', { call, now_ms })
  return rowOf(call, position, now_ms)
}

export const findCall = (db: Db | Trx, sid: string): Promise<CallRow | undefined> =>
  db.selectFrom('call').selectAll().where('sid', '=', sid).executeTakeFirst()

export interface AdmittedCall extends Omit<Admission, 'position'> {
  /** The row without its decision. */
  readonly row: CallRow
}

type AdmittedQueued = Pick<Admission, 'decided' | 'queued'>

/**
 * Decides on a new call and writes it: an admitted call with its slots and money, a refused one with its end. Fails as
 * busy and writes nothing when the transaction cannot begin within `within_ms`.
 */
export async function admitCall(db: Db | Trx, input: AdmitInput, within_ms?: number): Promise<AdmittedCall> {
  const { position, ...admitted } = await callProcedure(db, 'admit_call', input, within_ms)
  return { row: rowOf(keptCall(input, admitted), position, input.now_ms), ...admitted }
}

/** Decides on a queued call that already has a row. */
export const admitQueuedCall = (db: Db | Trx, input: AdmitQueuedInput): Promise<AdmittedQueued> =>
  callProcedure(db, 'admit_queued_call', input)

/** Writes the steps of a call atomically. */
export const writeCall = (db: Db | Trx, sid: string, steps: readonly CallStep[]): Promise<CallWritten> =>
  callProcedure(db, 'write_call', { sid, steps })

/** Ends a call: final status, CDR, last callback. Returns undefined when it has already ended. */
export const finishCall = async (trx: Trx, sid: string, facts: FinalFacts): Promise<CallRow | undefined> =>
  (await callProcedure(trx, 'finish_call', { sid, facts })) ? findCall(trx, sid) : undefined

/** Counts the calls that have not ended, of all nodes. */
export async function countRunningCalls(db: Db | Trx): Promise<number> {
  const count = db.selectFrom('call').select(eb => eb.fn.countAll<number>().as('calls'))
  return Number((await count.where('ended_at', 'is', null).executeTakeFirst())?.calls ?? 0)
}

/** Returns the live calls of a node, without test calls: those end with their run. */
export const callsOfNode = (db: Db | Trx, node_id: string): Promise<CallRow[]> =>
  db
    .selectFrom('call')
    .selectAll()
    .where('node_id', '=', node_id)
    .where('ended_at', 'is', null)
    .where('origin', '!=', 'test')
    .execute()

/** Calls of a lost node that are ended together: other writers wait for as long. */
const MOST_AT_ONCE = 8

/**
 * Ends the calls of a node that was declared lost, with a CDR of reason `node_lost`. A call ends at the node's last
 * heartbeat, because it ran at least until then. Each call ends for itself, so several nodes may do this concurrently.
 * When the node registers again meanwhile, it ends the others itself.
 */
export async function endCallsOfLostNode(
  { db }: State,
  node: { readonly id: string; readonly heartbeat_at: string },
  now_ms: number,
): Promise<string[]> {
  const calls = await db
    .selectFrom('call')
    .select(['sid', 'answered_at'])
    .where('node_id', '=', node.id)
    .where('ended_at', 'is', null)
    .execute()
  const ended: string[] = []
  const end = async (call: LostCall): Promise<void> => {
    const ended_ms = Math.min(now_ms, Math.max(Date.parse(node.heartbeat_at), Date.parse(call.answered_at ?? '') || 0))
    const input = { sid: call.sid, facts: factsOfLost(call, { cause: 'node_lost', ended_ms }), node_id: node.id }
    if (await callProcedure(db, 'end_lost_call', input)) ended.push(call.sid)
  }
  for (let at = 0; at < calls.length; at += MOST_AT_ONCE) await Promise.all(calls.slice(at, at + MOST_AT_ONCE).map(end))
  return ended
}

/** Ends a call that no node runs any more. Returns false when it has already ended. */
export const endLostCall = ({ db }: State, call: LostCall, lost: LostFacts): Promise<boolean> =>
  callProcedure(db, 'finish_call', { sid: call.sid, facts: factsOfLost(call, lost) })

type LostCall = Pick<CallRow, 'sid' | 'answered_at'>

interface LostFacts {
  readonly cause: 'node_lost' | 'internal'
  readonly ended_ms: number
}

const factsOfLost = ({ answered_at }: LostCall, { cause, ended_ms }: LostFacts): FinalFacts => ({
  ending: ending({ cause, answered: answered_at !== null }),
  ended_ms,
  pdd_ms: null,
  media: null,
})

export type { Decided } from '../procedures/running/admit.ts'
export { type CallRow, type NewCall, NOTHING_YET } from '../procedures/running/rows.ts'
export type { CallStep, CallWritten } from '../procedures/running/write.ts'

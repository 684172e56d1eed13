import { ending } from '../../domain/calls/endings.ts'
import type { Db, Trx } from '../db.ts'
import { callProcedure, type State } from '../port.ts'
import { type Admission, type AdmitInput, type AdmitQueuedInput, keptCall } from '../procedures/running/admit.ts'
import type { FinalFacts } from '../procedures/running/finish.ts'
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

/**
 * Ends the calls of a node that was declared lost, with a CDR of reason `node_lost`. A call ends at the node's last
 * heartbeat, because it ran at least until then. Each call is its own transaction, so several nodes may do this
 * concurrently. When the node registers again meanwhile, it ends the others itself.
 */
export async function endCallsOfLostNode(
  state: State,
  node: { readonly id: string; readonly heartbeat_at: string },
  now_ms: number,
): Promise<string[]> {
  const calls = await state.db
    .selectFrom('call')
    .select(['sid', 'answered_at'])
    .where('node_id', '=', node.id)
    .where('ended_at', 'is', null)
    .execute()
  const ended: string[] = []
  for (const call of calls) {
    const ended_ms = Math.min(now_ms, Math.max(Date.parse(node.heartbeat_at), Date.parse(call.answered_at ?? '') || 0))
    const by_us = await state.transaction(
      async trx => (await isLost(trx, node.id)) && endLost(trx, call, { cause: 'node_lost', ended_ms }),
    )
    if (by_us) ended.push(call.sid)
  }
  return ended
}

const isLost = async (trx: Trx, node_id: string): Promise<boolean> => {
  const node = await trx.selectFrom('node').select('lost_at').where('id', '=', node_id).executeTakeFirst()
  return (node?.lost_at ?? null) !== null
}

/** Ends a call that no node runs any more, in its own transaction. Returns false when it has already ended. */
export const endLostCall = (state: State, call: LostCall, facts: LostFacts): Promise<boolean> =>
  state.transaction(trx => endLost(trx, call, facts))

type LostCall = Pick<CallRow, 'sid' | 'answered_at'>

interface LostFacts {
  readonly cause: 'node_lost' | 'internal'
  readonly ended_ms: number
}

async function endLost(trx: Trx, call: LostCall, { cause, ended_ms }: LostFacts): Promise<boolean> {
  const row = await finishCall(trx, call.sid, {
    ending: ending({ cause, answered: call.answered_at !== null }),
    ended_ms,
    pdd_ms: null,
    media: null,
  })
  return row !== undefined
}

export type { Decided } from '../procedures/running/admit.ts'
export { type CallRow, type NewCall, NOTHING_YET } from '../procedures/running/rows.ts'
export type { CallStep, CallWritten } from '../procedures/running/write.ts'

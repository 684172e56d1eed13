import type { Insertable, Selectable, Updateable } from 'kysely'
import { type Ending, ending } from '../domain/calls/endings.ts'
import { iso } from '../runtime/clock.ts'
import { later, statement } from './batch.ts'
import type { CallAttemptTable, CallTable, CdrTable, Db, State, Trx } from './index.ts'
import { enqueueStatusCallback } from './outbox.ts'
import { countEndedCall } from './trunk-steps.ts'
import { queueEvent } from './webhook-endpoints.ts'

/** The rows of calls while signaling runs them, up to their end with CDR. */

export type CallRow = Selectable<CallTable>
export type NewCall = Omit<Insertable<CallTable>, 'position' | 'updated_at'>

/** Of a call of which nothing has come yet. */
export const NOTHING_YET = {
  initiated_at: null,
  ringing_at: null,
  answered_at: null,
  ended_at: null,
  duration_seconds: null,
  sip_code: null,
  reason: null,
  ended_by: null,
  decision_trace: null,
} as const satisfies Partial<NewCall>

export async function insertCall(trx: Trx, call: NewCall, now_ms: number): Promise<CallRow> {
  return trx
    .insertInto('call')
    .values({ ...call, updated_at: iso(now_ms) })
    .returningAll()
    .executeTakeFirstOrThrow()
}

export const findCall = (db: Db | Trx, sid: string): Promise<CallRow | undefined> =>
  db.selectFrom('call').selectAll().where('sid', '=', sid).executeTakeFirst()

/** Changes a call that has not ended; undefined when it has. */
export async function updateCall(
  trx: Trx,
  sid: string,
  changes: Omit<Updateable<CallTable>, 'sid' | 'position' | 'updated_at'>,
  now_ms: number,
): Promise<CallRow | undefined> {
  return trx
    .updateTable('call')
    .set({ ...changes, updated_at: iso(now_ms) })
    .where('sid', '=', sid)
    .where('ended_at', 'is', null)
    .returningAll()
    .executeTakeFirst()
}

/** The INVITE leaves. */
export const callInitiated = (trx: Trx, sid: string, changes: Updateable<CallTable>, now_ms: number) =>
  progress(trx, sid, 'initiated', { initiated_at: iso(now_ms), ...changes }, now_ms)

/** The first 18x. */
export const callRinging = (trx: Trx, sid: string, now_ms: number) =>
  progress(trx, sid, 'ringing', { status: 'ringing', ringing_at: iso(now_ms) }, now_ms)

export const callAnswered = (trx: Trx, sid: string, now_ms: number) =>
  progress(trx, sid, 'answered', { status: 'in-progress', answered_at: iso(now_ms) }, now_ms)

async function progress(
  trx: Trx,
  sid: string,
  event: 'initiated' | 'ringing' | 'answered',
  changes: Updateable<CallTable>,
  now_ms: number,
): Promise<CallRow | undefined> {
  const row = await updateCall(trx, sid, changes, now_ms)
  if (!row) return row
  await enqueueStatusCallback(trx, row, event, { now_ms })
  const { direction, from_number: from, to_number: to, status, project_id } = row
  const data = { sid, status, direction, from, to, at: iso(now_ms) }
  await queueEvent(trx, { project_id, kind: `call.${event}`, data }, now_ms)
  return row
}

export interface FinalFacts {
  readonly ending: Ending
  readonly ended_ms: number
  /**
   * Seconds since the answer by the steady clock of the node that ran the call. Left out when that node is gone: then
   * the wall times tell.
   */
  readonly duration_seconds?: number
  /** Of the leg that reached the network: for the last callback. */
  readonly pdd_ms: number | null
  /** JSON of both legs' codecs and quality; null when there was no media. */
  readonly media: string | null
  /** Further parameters of the last callback. */
  readonly extra?: Readonly<Record<string, string>>
}

interface Closing {
  readonly sid: string
  readonly ended_at: string
}

const INSERT_CDR = statement((db, cdr: Insertable<CdrTable>) =>
  db.insertInto('cdr').values({
    call_sid: cdr.call_sid,
    project_id: cdr.project_id,
    trunk_id: cdr.trunk_id,
    carrier_id: cdr.carrier_id,
    origin: cdr.origin,
    direction: cdr.direction,
    from_number: cdr.from_number,
    to_number: cdr.to_number,
    status: cdr.status,
    sip_code: cdr.sip_code,
    reason: cdr.reason,
    ended_by: cdr.ended_by,
    started_at: cdr.started_at,
    answered_at: cdr.answered_at,
    ended_at: cdr.ended_at,
    duration_seconds: cdr.duration_seconds,
    pdd_ms: cdr.pdd_ms,
    media: cdr.media,
  }),
)

const CANCEL_ATTEMPTS = statement((db, { sid, ended_at }: Closing) =>
  db
    .updateTable('call_attempt')
    .set({ ended_at, result: 'canceled' })
    .where('call_sid', '=', sid)
    .where('ended_at', 'is', null),
)

const CLOSE_COMMANDS = statement((db, { sid, ended_at }: Closing) =>
  db
    .updateTable('call_command')
    .set({ done_at: ended_at, outcome: 'call_ended' })
    .where('call_sid', '=', sid)
    .where('done_at', 'is', null),
)

/** Ends a call once: final status, CDR, last callback. Undefined when it had ended already. */
export async function finishCall(trx: Trx, sid: string, facts: FinalFacts): Promise<CallRow | undefined> {
  const known = await findCall(trx, sid)
  if (!known || known.ended_at !== null) return undefined
  const answered_ms = known.answered_at === null ? null : Date.parse(known.answered_at)
  // Wall time may have jumped while the call ran: an end before its beginning would be nonsense (threats §2.10).
  const least_ms =
    answered_ms === null ? Date.parse(known.queued_at) : answered_ms + (facts.duration_seconds ?? 0) * 1000
  const ended_ms = Math.max(facts.ended_ms, least_ms)
  const ended_at = iso(ended_ms)
  const duration_seconds =
    answered_ms === null ? 0 : (facts.duration_seconds ?? Math.floor((ended_ms - answered_ms) / 1000))
  const { status, sip_code, reason, ended_by } = facts.ending
  const changes = { status, sip_code, reason, ended_by, ended_at, duration_seconds, updated_at: iso(facts.ended_ms) }
  const row = { ...known, ...changes }
  await later(trx, trx.updateTable('call').set(changes).where('sid', '=', sid))
  const record = {
    call_sid: sid,
    project_id: row.project_id,
    trunk_id: row.trunk_id,
    carrier_id: row.carrier_id,
    origin: row.origin,
    direction: row.direction,
    from_number: row.from_number,
    to_number: row.to_number,
    status,
    sip_code,
    reason,
    ended_by,
    started_at: row.initiated_at ?? row.queued_at,
    answered_at: row.answered_at,
    ended_at,
    duration_seconds,
    pdd_ms: facts.pdd_ms,
    media: facts.media,
  }
  await later(trx, INSERT_CDR(record))
  await countEndedCall(trx, record)
  await queueEvent(
    trx,
    {
      project_id: row.project_id,
      kind: 'call.ended',
      data: {
        sid,
        status,
        direction: row.direction,
        from: row.from_number,
        to: row.to_number,
        duration_seconds,
        ended_at,
      },
    },
    facts.ended_ms,
  )
  await later(trx, CANCEL_ATTEMPTS({ sid, ended_at }))
  await later(trx, CLOSE_COMMANDS({ sid, ended_at }))
  await enqueueStatusCallback(trx, row, 'completed', {
    now_ms: facts.ended_ms,
    ...(facts.extra ? { extra: facts.extra } : {}),
  })
  return row
}

export const insertAttempt = (
  trx: Trx,
  attempt: Pick<CallAttemptTable, 'call_sid' | 'sequence' | 'target' | 'transport'>,
  now_ms: number,
) =>
  trx
    .insertInto('call_attempt')
    .values({
      ...attempt,
      sip_call_id: null,
      address: null,
      started_at: iso(now_ms),
      provisional_at: null,
      ended_at: null,
      sip_code: null,
      result: null,
      reason: null,
    })
    .returning('id')
    .executeTakeFirstOrThrow()

export const updateAttempt = (trx: Trx, id: number, changes: Updateable<CallAttemptTable>): Promise<void> =>
  later(trx, trx.updateTable('call_attempt').set(changes).where('id', '=', id))

/** Keeps how a call was decided. */
export const saveDecision = (trx: Trx, sid: string, decision_trace: string, now_ms: number): Promise<void> =>
  later(
    trx,
    trx
      .updateTable('call')
      .set({ decision_trace, updated_at: iso(now_ms) })
      .where('sid', '=', sid),
  )

/** Calls of a node that have not ended. Test calls are left out: they end with their run. */
export const callsOfNode = (db: Db | Trx, node_id: string): Promise<CallRow[]> =>
  db
    .selectFrom('call')
    .selectAll()
    .where('node_id', '=', node_id)
    .where('ended_at', 'is', null)
    .where('origin', '!=', 'test')
    .execute()

/** How much an `also` may add to the end of each lost call, in its transaction: leases, settlement. */
export type AlsoAtEnd = (trx: Trx, row: CallRow, ended_ms: number) => Promise<void>

/**
 * Ends the calls of nodes that are gone, with a CDR of reason `node_lost`, at the node's last heartbeat (it ran until
 * then at least). Each call is a transaction of its own, so that any number of nodes may do this at once.
 */
export async function endCallsOfNodes(
  state: State,
  nodes: readonly { readonly id: string; readonly heartbeat_at: string }[],
  now_ms: number,
  also: AlsoAtEnd = async () => undefined,
): Promise<string[]> {
  const ended: string[] = []
  for (const node of nodes) {
    const calls = await state.db
      .selectFrom('call')
      .select(['sid', 'answered_at'])
      .where('node_id', '=', node.id)
      .where('ended_at', 'is', null)
      .execute()
    for (const call of calls) {
      const ended_ms = Math.min(
        now_ms,
        Math.max(Date.parse(node.heartbeat_at), Date.parse(call.answered_at ?? '') || 0),
      )
      if (await endLostCall(state, call, { cause: 'node_lost', ended_ms }, also)) ended.push(call.sid)
    }
  }
  return ended
}

/** Ends a call that nobody runs any more, in a transaction of its own; false when it had ended already. */
export function endLostCall(
  state: State,
  call: Pick<CallRow, 'sid' | 'answered_at'>,
  { cause, ended_ms }: { readonly cause: 'node_lost' | 'internal'; readonly ended_ms: number },
  also: AlsoAtEnd,
): Promise<boolean> {
  return state.transaction(async trx => {
    const row = await finishCall(trx, call.sid, {
      ending: ending({ cause, answered: call.answered_at !== null }),
      ended_ms,
      pdd_ms: null,
      media: null,
    })
    if (row) await also(trx, row, ended_ms)
    return row !== undefined
  })
}

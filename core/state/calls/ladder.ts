import type { Selectable } from 'kysely'
import { shownCallId } from '../../domain/calls/foreign.ts'
import { missingFrom } from '../../domain/ladder/message.ts'
import type { Db, SipMessageTable, Trx } from '../db.ts'
import type { State } from '../index.ts'
import { writeInParts } from '../maintenance/parts.ts'
import { callProcedure } from '../port.ts'
import type { MessagesOfEdge } from '../procedures/running/messages.ts'

/** Retention of SIP messages. */
export const LADDER_DAYS = 7

type SipMessageRow = Selectable<SipMessageTable>

/** Rows per transaction. It bounds how long other writers wait. */
const BATCH = 500

export async function insertMessages(db: Db, { edge_id, messages }: MessagesOfEdge): Promise<void> {
  for (let at = 0; at < messages.length; at += BATCH) {
    const batch: MessagesOfEdge = { edge_id, messages: messages.slice(at, at + BATCH) }
    await callProcedure(db, 'insert_messages', batch)
  }
}

/** Inserts only the messages that are missing: a killed writer may have stored some of them. */
export async function insertMissingMessages(db: Db, { edge_id, messages }: MessagesOfEdge): Promise<void> {
  const call_ids = messages.map(({ sip_call_id }) => sip_call_id)
  const known = await messagesOf(db, call_ids, edge_id)
  await insertMessages(db, { edge_id, messages: missingFrom(known, messages) })
}

/** Returns the messages that crossed an edge, in the order in which they were stored. */
async function messagesOf(db: Db, sip_call_ids: readonly string[], edge_id: string): Promise<SipMessageRow[]> {
  const wanted = [...new Set(sip_call_ids)]
  const messages: SipMessageRow[] = []
  for (let at = 0; at < wanted.length; at += BATCH)
    messages.push(
      ...(await db
        .selectFrom('sip_message')
        .selectAll()
        .where('sip_call_id', 'in', wanted.slice(at, at + BATCH))
        .where('edge_id', 'in', [edge_id, ''])
        .execute()),
    )
  return messages.sort((a, b) => a.id - b.id)
}

/**
 * Returns the messages of all legs of a call in order of time, including every attempt and the calls that it dialled.
 * Only an operator sees the dialog of another tenant's peer.
 */
export async function ladderOf(db: Db, call_sid: string, reader: 'customer' | 'operator') {
  const family = await db
    .selectFrom('call')
    .select(['sid', 'sip_call_id', 'foreign_caller'])
    .where(eb => eb.or([eb('sid', '=', call_sid), eb('parent_call_sid', '=', call_sid)]))
    .execute()
  if (family.length === 0) return null
  const sids = family.map(call => call.sid)
  const attempts = await db.selectFrom('call_attempt').select('sip_call_id').where('call_sid', 'in', sids).execute()
  const callers = family.map(call => (reader === 'operator' ? call.sip_call_id : shownCallId(call)))
  const call_ids = [...callers, ...attempts.map(attempt => attempt.sip_call_id)].filter(id => id !== null)
  if (call_ids.length === 0) return []
  const rows = await db
    .selectFrom('sip_message')
    .select(['id', 'sip_call_id', 'at_ms', 'direction', 'protocol', 'local', 'remote', 'retransmission', 'text'])
    .where('sip_call_id', 'in', [...new Set(call_ids)])
    .orderBy('at_ms')
    .orderBy('id')
    .execute()
  return rows.map(row => ({ ...row, retransmission: row.retransmission === 1 }))
}

/**
 * Returns the messages that crossed an edge for all legs of calls without a regular end, in the order in which they
 * were stored: live calls, calls declared lost since `since` (ISO), and `further` Call-IDs that the state may not know.
 */
export async function messagesOfLostCalls(
  db: Db,
  { edge_id, since, further }: { edge_id: string; since: string; further: readonly string[] },
) {
  const lost = db.selectFrom('cdr').select('call_sid').where('ended_at', '>=', since).where('reason', '=', 'node_lost')
  const running = db.selectFrom('call').select('sid as call_sid').where('ended_at', 'is', null)
  const sids = (await running.unionAll(lost).execute()).map(row => row.call_sid)
  const call_ids = [...further]
  for (let at = 0; at < sids.length; at += BATCH) {
    const some = sids.slice(at, at + BATCH)
    const rows = await db
      .selectFrom('call')
      .select('sip_call_id')
      .where('sid', 'in', some)
      .unionAll(db.selectFrom('call_attempt').select('sip_call_id').where('call_sid', 'in', some))
      .execute()
    call_ids.push(...rows.flatMap(row => row.sip_call_id ?? []))
  }
  return await messagesOf(db, call_ids, edge_id)
}

/**
 * Maps each SIP Call-ID to its call, or to the parent of a dialled call, so that all legs of a conversation share one
 * sid. Omits Call-IDs without a call.
 */
export async function callsOfCallIds(db: Db, sip_call_ids: readonly string[]): Promise<Map<string, string>> {
  const [calls, attempts] = await Promise.all([
    db
      .selectFrom('call')
      .select(['sid', 'parent_call_sid', 'sip_call_id'])
      .where('sip_call_id', 'in', sip_call_ids)
      .execute(),
    db
      .selectFrom('call_attempt')
      .innerJoin('call', 'call.sid', 'call_attempt.call_sid')
      .select(['call.sid', 'call.parent_call_sid', 'call_attempt.sip_call_id'])
      .where('call_attempt.sip_call_id', 'in', sip_call_ids)
      .execute(),
  ])
  const found = new Map<string, string>()
  for (const { sid, parent_call_sid, sip_call_id } of [...attempts, ...calls])
    if (sip_call_id !== null) found.set(sip_call_id, parent_call_sid ?? sid)
  return found
}

/** Deletes messages past their retention. */
export async function forgetOldMessages(state: State, now_ms: number, goesOn?: () => boolean): Promise<void> {
  const before_ms = now_ms - LADDER_DAYS * 86_400_000
  const part = async (trx: Trx, rows: number): Promise<boolean> => {
    const old = trx.selectFrom('sip_message').select('id').where('at_ms', '<', before_ms).orderBy('at_ms').limit(rows)
    const { numDeletedRows } = await trx.deleteFrom('sip_message').where('id', 'in', old).executeTakeFirstOrThrow()
    return Number(numDeletedRows) === rows
  }
  await writeInParts(state, part, goesOn)
}

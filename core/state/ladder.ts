import type { Selectable } from 'kysely'
import type { Db, SipMessageTable } from './index.ts'

/** How long messages are kept. */
export const LADDER_DAYS = 7

type NewMessage = Omit<SipMessageTable, 'id'>
export type SipMessageRow = Selectable<SipMessageTable>

/** Rows of a batch stay below SQLite's limit of variables in a statement. */
const BATCH = 500

export async function insertMessages(db: Db, messages: readonly NewMessage[]): Promise<void> {
  for (let at = 0; at < messages.length; at += BATCH)
    await db
      .insertInto('sip_message')
      .values(messages.slice(at, at + BATCH))
      .execute()
}

/**
 * The messages of all legs of a call, those of every attempt and of the calls that it dialled, in the order of time.
 */
export async function ladderOf(db: Db, call_sid: string) {
  const family = await db
    .selectFrom('call')
    .select(['sid', 'sip_call_id'])
    .where(eb => eb.or([eb('sid', '=', call_sid), eb('parent_call_sid', '=', call_sid)]))
    .execute()
  if (family.length === 0) return null
  const sids = family.map(call => call.sid)
  const attempts = await db.selectFrom('call_attempt').select('sip_call_id').where('call_sid', 'in', sids).execute()
  const call_ids = [...family, ...attempts].flatMap(row => row.sip_call_id ?? [])
  if (call_ids.length === 0) return []
  const rows = await db
    .selectFrom('sip_message')
    .selectAll()
    .where('sip_call_id', 'in', [...new Set(call_ids)])
    .orderBy('at_ms')
    .orderBy('id')
    .execute()
  return rows.map(row => ({ ...row, retransmission: row.retransmission === 1 }))
}

/**
 * The messages of all legs of calls that nobody has ended properly: those that still run, and those that were given up
 * as lost since a moment (ISO), in the order of time.
 */
export async function messagesOfLostCalls(db: Db, since: string) {
  const lost = db.selectFrom('cdr').select('call_sid').where('ended_at', '>=', since).where('reason', '=', 'node_lost')
  const running = db.selectFrom('call').select('sid as call_sid').where('ended_at', 'is', null)
  const sids = (await running.unionAll(lost).execute()).map(row => row.call_sid)
  const messages: SipMessageRow[] = []
  for (let at = 0; at < sids.length; at += BATCH) {
    const some = sids.slice(at, at + BATCH)
    const rows = await db
      .selectFrom('sip_message')
      .selectAll()
      .where('sip_call_id', 'in', eb =>
        eb
          .selectFrom('call')
          .select('sip_call_id')
          .where('sid', 'in', some)
          .where('sip_call_id', 'is not', null)
          .unionAll(
            eb
              .selectFrom('call_attempt')
              .select('sip_call_id')
              .where('call_sid', 'in', some)
              .where('sip_call_id', 'is not', null),
          )
          .$castTo<{ sip_call_id: string }>(),
      )
      .orderBy('id')
      .execute()
    messages.push(...rows)
  }
  return messages
}

/**
 * The call that each SIP Call-ID belongs to; of a call that another one dialled, that other one, so that all legs of a
 * conversation have one name. Call-IDs of no call are left out.
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

/** Forgets what is older than its days; a bounded number at a time, so that it never holds the database for long. */
export async function forgetOldMessages(db: Db, now_ms: number, limit = 5000): Promise<void> {
  await db
    .deleteFrom('sip_message')
    .where('id', 'in', eb =>
      eb
        .selectFrom('sip_message')
        .select('id')
        .where('at_ms', '<', now_ms - LADDER_DAYS * 86_400_000)
        .limit(limit),
    )
    .execute()
}

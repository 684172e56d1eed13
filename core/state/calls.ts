import type { Selectable } from 'kysely'
import { iso } from '../runtime/clock.ts'
import type { CallCommandTable, CallEventTable, CallStatus, CallTable, Db, RecordingTable, Trx } from './index.ts'

/** What the APIs need of calls: making, listing and fetching them, and telling the node that runs one what to do. */

export type CallRow = Selectable<CallTable>
export type RecordingRow = Selectable<RecordingTable>
export type CallEventRow = Selectable<CallEventTable>

export interface QueuedCall {
  readonly sid: string
  readonly project_id: string
  readonly account_sid: string
  readonly from_number: string
  readonly to_number: string
  readonly number_id: string
  readonly trunk_id: string | null
  /** JSON of core/domain/calls/request.ts. */
  readonly request: string
}

/** A call of the API, queued, and the command that makes a signaling node place it: both or neither. */
export async function queueCall(trx: Trx, call: QueuedCall, now_ms: number): Promise<CallRow> {
  const at = iso(now_ms)
  const row = await trx
    .insertInto('call')
    .values({
      ...call,
      parent_call_sid: null,
      origin: 'rest',
      direction: 'outbound-api',
      status: 'queued',
      carrier_id: null,
      application_id: null,
      sip_call_id: null,
      node_id: null,
      queued_at: at,
      initiated_at: null,
      ringing_at: null,
      answered_at: null,
      ended_at: null,
      duration_seconds: null,
      sip_code: null,
      reason: null,
      ended_by: null,
      decision_trace: null,
      updated_at: at,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  await insertCommand(trx, call.sid, 'originate', {}, now_ms)
  return row
}

export async function insertCommand(
  trx: Trx,
  call_sid: string,
  kind: CallCommandTable['kind'],
  payload: object,
  now_ms: number,
): Promise<void> {
  await trx
    .insertInto('call_command')
    .values({
      call_sid,
      kind,
      payload: JSON.stringify(payload),
      created_at: iso(now_ms),
      taken_by: null,
      done_at: null,
      outcome: null,
    })
    .execute()
}

/** Commands of a call that have not been carried out. */
export const pendingCommands = (db: Db, call_sid: string): Promise<Selectable<CallCommandTable>[]> =>
  db
    .selectFrom('call_command')
    .selectAll()
    .where('call_sid', '=', call_sid)
    .where('done_at', 'is', null)
    .orderBy('id')
    .execute()

/** A redirect that nobody has begun is replaced by the next one. */
export async function dropWaitingRedirects(trx: Trx, call_sid: string, now_ms: number): Promise<void> {
  await trx
    .updateTable('call_command')
    .set({ done_at: iso(now_ms), outcome: 'replaced' })
    .where('call_sid', '=', call_sid)
    .where('kind', '=', 'redirect')
    .where('taken_by', 'is', null)
    .where('done_at', 'is', null)
    .execute()
}

export const findAccountCall = (db: Db, account_sid: string, sid: string): Promise<CallRow | undefined> =>
  db.selectFrom('call').selectAll().where('sid', '=', sid).where('account_sid', '=', account_sid).executeTakeFirst()

export interface CallFilter {
  readonly to_number?: string
  readonly from_number?: string
  readonly status?: CallStatus
  readonly parent_call_sid?: string
  /** Instants, the first included, the second not. */
  readonly answered?: { readonly from?: string; readonly before?: string }
  readonly ended?: { readonly from?: string; readonly before?: string }
}

/** Which window of the list, newest first: by offset, or next to a position. */
export type CallWindow =
  | { readonly offset: number }
  | { readonly older_than: number }
  /** The nearest ones newer than it, still newest first. */
  | { readonly newer_than: number }

export async function listAccountCalls(
  db: Db,
  account_sid: string,
  filter: CallFilter,
  window: CallWindow,
  limit: number,
): Promise<CallRow[]> {
  let query = filtered(db, account_sid, filter).limit(limit)
  if ('newer_than' in window) {
    const rows = await query.where('position', '>', window.newer_than).orderBy('position').execute()
    return rows.reverse()
  }
  if ('older_than' in window) query = query.where('position', '<', window.older_than)
  else query = query.offset(window.offset)
  return query.orderBy('position', 'desc').execute()
}

function filtered(db: Db, account_sid: string, filter: CallFilter) {
  let query = db.selectFrom('call').selectAll().where('account_sid', '=', account_sid)
  if (filter.to_number !== undefined) query = query.where('to_number', 'in', withAndWithoutPlus(filter.to_number))
  if (filter.from_number !== undefined) query = query.where('from_number', 'in', withAndWithoutPlus(filter.from_number))
  if (filter.status !== undefined) query = query.where('status', '=', filter.status)
  if (filter.parent_call_sid !== undefined) query = query.where('parent_call_sid', '=', filter.parent_call_sid)
  for (const [column, range] of [
    ['answered_at', filter.answered],
    ['ended_at', filter.ended],
  ] as const) {
    if (range?.from !== undefined) query = query.where(column, '>=', range.from)
    if (range?.before !== undefined) query = query.where(column, '<', range.before)
  }
  return query
}

const withAndWithoutPlus = (number: string): string[] => {
  const digits = number.replace(/^\+/, '')
  return [digits, `+${digits}`]
}

/** Recordings of a call that there is something to say about, newest first. */
export const listCallRecordings = (db: Db, call_sid: string): Promise<RecordingRow[]> =>
  db
    .selectFrom('recording')
    .selectAll()
    .where('call_sid', '=', call_sid)
    .where('status', '!=', 'deleted')
    .orderBy('created_at', 'desc')
    .orderBy('sid')
    .execute()

export const findProjectRecording = (db: Db, project_id: string, sid: string): Promise<RecordingRow | undefined> =>
  db
    .selectFrom('recording')
    .selectAll()
    .where('sid', '=', sid)
    .where('project_id', '=', project_id)
    .where('status', '!=', 'deleted')
    .executeTakeFirst()

export const listCallEvents = (
  db: Db,
  call_sid: string,
  kind: CallEventTable['kind'],
  limit: number,
): Promise<CallEventRow[]> =>
  db
    .selectFrom('call_event')
    .selectAll()
    .where('call_sid', '=', call_sid)
    .where('kind', '=', kind)
    .orderBy('id')
    .limit(limit)
    .execute()

import type { Selectable } from 'kysely'
import { ending } from '../../domain/calls/endings.ts'
import type { CallAttemptTable, CallEventTable, CallStatus, CallTable, CdrTable, Db, Trx } from '../db.ts'
import { insertCommand, pendingCommands } from './calls.ts'
import { finishCall } from './running-calls.ts'

export type HistoryRow = Selectable<CallTable>

export interface HistoryFilter {
  readonly status?: CallStatus
  readonly direction?: CallTable['direction']
  readonly trunk_id?: string
  /** Calling and called number, with or without plus; `number` matches either. */
  readonly from?: string
  readonly to?: string
  readonly number?: string
  /** Bounds of `queued_at`: `since` is inclusive, `before` exclusive. */
  readonly since?: string
  readonly before?: string
  readonly subaccount_id?: string
  readonly live?: boolean
}

/** Lists the calls of a project, newest first. `page.before` is the position of the previous page's last call. */
export function listProjectCalls(
  db: Db,
  project_id: string,
  filter: HistoryFilter,
  page: { readonly limit: number; readonly before?: number },
): Promise<HistoryRow[]> {
  let query = db
    .selectFrom('call')
    .selectAll()
    .where('project_id', '=', project_id)
    .orderBy('position', 'desc')
    .limit(page.limit)
  const { status, direction, trunk_id, from, to, number, since, before, subaccount_id, live } = filter
  if (page.before !== undefined) query = query.where('position', '<', page.before)
  if (status !== undefined) query = query.where('status', '=', status)
  if (direction !== undefined) query = query.where('direction', '=', direction)
  if (trunk_id !== undefined) query = query.where('trunk_id', '=', trunk_id)
  if (from !== undefined) query = query.where('from_number', 'in', formsOf(from))
  if (to !== undefined) query = query.where('to_number', 'in', formsOf(to))
  if (number !== undefined) {
    const forms = formsOf(number)
    query = query.where(eb => eb.or([eb('from_number', 'in', forms), eb('to_number', 'in', forms)]))
  }
  if (since !== undefined) query = query.where('queued_at', '>=', since)
  if (before !== undefined) query = query.where('queued_at', '<', before)
  if (live === true) query = query.where('ended_at', 'is', null)
  if (subaccount_id !== undefined)
    query = query.where('trunk_id', 'in', eb =>
      eb.selectFrom('trunk').select('trunk.id').where('trunk.subaccount_id', '=', subaccount_id),
    )
  return query.execute()
}

const formsOf = (number: string): string[] => {
  const digits = number.replace(/^\+/, '')
  return [digits, `+${digits}`]
}

export const findProjectCall = (db: Db, project_id: string, sid: string): Promise<HistoryRow | undefined> =>
  db.selectFrom('call').selectAll().where('sid', '=', sid).where('project_id', '=', project_id).executeTakeFirst()

export const cdrOf = (db: Db, call_sid: string): Promise<Selectable<CdrTable> | undefined> =>
  db.selectFrom('cdr').selectAll().where('call_sid', '=', call_sid).executeTakeFirst()

/** Returns all events of a call, in order. A call has at most a thousand (call-events.ts). */
export const eventsOf = (db: Db, call_sid: string): Promise<Selectable<CallEventTable>[]> =>
  db.selectFrom('call_event').selectAll().where('call_sid', '=', call_sid).orderBy('id').execute()

export const attemptsOf = (db: Db, call_sid: string): Promise<Selectable<CallAttemptTable>[]> =>
  db.selectFrom('call_attempt').selectAll().where('call_sid', '=', call_sid).orderBy('sequence').orderBy('id').execute()

/**
 * Ends a call: at once when no node has taken it, otherwise by a command to its node. Does nothing when such a command
 * is already pending.
 */
export async function endOrHangUp(trx: Trx, call: HistoryRow, now_ms: number): Promise<void> {
  if (call.status === 'queued' && call.node_id === null) {
    await finishCall(trx, call.sid, {
      ending: ending({ cause: 'api', answered: false }),
      ended_ms: now_ms,
      pdd_ms: null,
      media: null,
    })
    return
  }
  const waiting = await pendingCommands(trx, call.sid)
  if (waiting.some(({ kind }) => kind === 'hangup' || kind === 'cancel')) return
  await insertCommand(trx, call.sid, 'hangup', {}, now_ms)
}

import { type Expression, expressionBuilder, type Selectable, type SqlBool } from 'kysely'
import { ending } from '../../domain/calls/endings.ts'
import type { CallAttemptTable, CallEventTable, CallStatus, CallTable, CdrTable, Db, Trx } from '../db.ts'
import type { Schema } from '../schema/index.ts'
import { insertCommand, pendingCommands } from './calls.ts'
import { isLive } from './live-calls.ts'
import { finishCall } from './running-calls.ts'

export type HistoryRow = Selectable<CallTable>

export interface HistoryFilter {
  readonly status?: CallStatus
  readonly direction?: CallTable['direction']
  readonly trunk_id?: string
  readonly application_id?: string
  readonly parent_call_sid?: string
  /** Calling and called number, with or without plus; `number` matches either. */
  readonly from?: string
  readonly to?: string
  readonly number?: string
  /** The id of the call, or its first characters. */
  readonly call_id?: string
  /** Bounds of `queued_at`: `since` is inclusive, `before` exclusive. */
  readonly since?: string
  readonly before?: string
  /** Bounds of `ended_at`, likewise. */
  readonly ended_since?: string
  readonly ended_before?: string
  /** A call without a reason has its final status as one. */
  readonly reason?: string
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
  const query = db
    .selectFrom('call')
    .selectAll()
    .where(matches({ ...filter, project_id }))
    .orderBy('position', 'desc')
    .limit(page.limit)
  return (page.before === undefined ? query : query.where('position', '<', page.before)).execute()
}

/** The condition of a filter on the table of calls, also where other tables are joined to it. */
export function matches(filter: HistoryFilter & { readonly project_id?: string }): Expression<SqlBool> {
  const { project_id, status, direction, trunk_id, from, to, number, since, before, subaccount_id, live } = filter
  const { reason, call_id, application_id, parent_call_sid, ended_since, ended_before } = filter
  const eb = expressionBuilder<Schema, 'call'>()
  const conditions: Expression<SqlBool>[] = []
  if (project_id !== undefined) conditions.push(eb('call.project_id', '=', project_id))
  if (status !== undefined) conditions.push(eb('call.status', '=', status))
  if (direction !== undefined) conditions.push(eb('call.direction', '=', direction))
  if (trunk_id !== undefined) conditions.push(eb('call.trunk_id', '=', trunk_id))
  if (application_id !== undefined) conditions.push(eb('call.application_id', '=', application_id))
  if (parent_call_sid !== undefined) conditions.push(eb('call.parent_call_sid', '=', parent_call_sid))
  if (from !== undefined) conditions.push(eb('call.from_number', 'in', formsOf(from)))
  if (to !== undefined) conditions.push(eb('call.to_number', 'in', formsOf(to)))
  if (number !== undefined) {
    const forms = formsOf(number)
    conditions.push(eb.or([eb('call.from_number', 'in', forms), eb('call.to_number', 'in', forms)]))
  }
  // A call without a reason has its final status as one, as in the figures of trunks.
  if (reason !== undefined) conditions.push(eb(eb.fn.coalesce('call.reason', 'call.status'), '=', reason))
  // A range instead of LIKE, which the primary key serves. An id has only digits and the letters a to f.
  if (call_id !== undefined) conditions.push(eb('call.sid', '>=', call_id), eb('call.sid', '<', `${call_id}g`))
  if (since !== undefined) conditions.push(eb('call.queued_at', '>=', since))
  if (before !== undefined) conditions.push(eb('call.queued_at', '<', before))
  if (ended_since !== undefined) conditions.push(eb('call.ended_at', '>=', ended_since))
  if (ended_before !== undefined) conditions.push(eb('call.ended_at', '<', ended_before))
  if (live === true) conditions.push(isLive())
  if (subaccount_id !== undefined) {
    const trunks = eb.selectFrom('trunk').select('trunk.id').where('trunk.subaccount_id', '=', subaccount_id)
    conditions.push(eb('call.trunk_id', 'in', trunks))
  }
  return eb.and(conditions)
}

/** The lowest and the highest position of the calls of a project, or of all; null without a call. */
export async function positionsOfCalls(
  db: Db | Trx,
  project_id: string | null,
): Promise<{ readonly first: number; readonly last: number } | null> {
  // Two statements, of which each looks at one entry of an index.
  const end = async (order: 'asc' | 'desc') => {
    const query = db.selectFrom('call').select('position').orderBy('position', order).limit(1)
    return (project_id === null ? query : query.where('project_id', '=', project_id)).executeTakeFirst()
  }
  const [first, last] = [await end('asc'), await end('desc')]
  return first && last ? { first: first.position, last: last.position } : null
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

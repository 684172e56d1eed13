import type { Insertable, Selectable } from 'kysely'
import { iso } from '../../../runtime/clock.ts'
import type { CallTable } from '../../db.ts'
import { inserting, numberOf, type Query, updating, type Value } from '../query.ts'

/** The rows of running calls, as the procedures write them. */

export type CallRow = Selectable<CallTable>
/** A call to insert: the columns that an insert writes. */
export type NewCall = Omit<Pick<Insertable<CallTable>, (typeof COLUMNS)[number]>, 'updated_at'>

/** Columns of a call on which nothing has happened yet. */
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

const EMPTY_ROW = {
  ...NOTHING_YET,
  account_sid: null,
  parent_call_sid: null,
  trunk_id: null,
  carrier_id: null,
  number_id: null,
  application_id: null,
  sip_call_id: null,
  source_ip: null,
  foreign_caller: null,
  pdd_ms: null,
  request: null,
  node_id: null,
} as const satisfies Partial<CallRow>

/** Returns the row that an insert creates. */
export const rowOf = (call: NewCall, position: number, now_ms: number): CallRow =>
  // V8 takes ten times as long for a literal in which a spread follows other properties.
  Object.assign({ ...EMPTY_ROW }, call, { position, updated_at: iso(now_ms) })

/** Columns that callbacks and events report. */
const REPORTED = [
  ...(['sid', 'project_id', 'account_sid', 'parent_call_sid', 'direction', 'from_number', 'to_number'] as const),
  ...(['status', 'number_id', 'request', 'sip_call_id', 'foreign_caller', 'sip_code', 'duration_seconds'] as const),
] as const
export type ReportedCall = Pick<CallRow, (typeof REPORTED)[number]>

// Without the decision, which is longer than all other columns together.
const RECORDED = [
  ...REPORTED,
  ...(['origin', 'trunk_id', 'carrier_id', 'queued_at', 'initiated_at', 'answered_at', 'ended_at'] as const),
  ...(['ringing_at', 'reason', 'ended_by', 'application_id'] as const),
] as const
export type RecordedCall = Pick<CallRow, (typeof RECORDED)[number]>

const COLUMNS = [...RECORDED, ...(['source_ip', 'node_id', 'decision_trace', 'updated_at'] as const)] as const
const insertRow = inserting('call', COLUMNS, 'returning position')
const insertRowAt = inserting('call', ['position', ...COLUMNS])

/** Inserts a call. Returns its position. */
export function insertCallRow(query: Query, call: NewCall, now_ms: number): number {
  const row = { ...call, updated_at: iso(now_ms) }
  const position = query.position('call')
  if (position === null) return numberOf(insertRow(query, row)[0] ?? {}, 'position')
  insertRowAt(query, { ...row, position })
  return position
}

const FIND = `select ${RECORDED.join(', ')} from call where sid = ?`

export const findCallRow = (query: Query, sid: string): RecordedCall | undefined => query<RecordedCall>(FIND, sid)[0]

/** Updates a call, whether or not it has ended. */
export const changeCall = updating('call', 'sid = ?')

const changeRunning = updating('call', 'sid = ? and ended_at is null')

/** Updates a call that has not ended, and returns it. `known` is its row before. */
export function changeRunningCall(
  query: Query,
  known: RecordedCall,
  changes: Readonly<Record<string, Value | undefined>>,
  now_ms: number,
): ReportedCall {
  const { sid } = known
  const change = <R extends object>(sql: string, ...values: readonly Value[]): R[] => {
    query.must(`the call ${sid}`, 1, sql, ...values)
    return []
  }
  changeRunning(change, { ...changes, updated_at: iso(now_ms) }, sid)
  const given = Object.entries(changes).filter(([, value]) => value !== undefined)
  return { ...known, ...Object.fromEntries(given) }
}

import type { Insertable, Selectable } from 'kysely'
import { iso } from '../../runtime/clock.ts'
import { inserting, type Query, updating } from '../admission/steps.ts'
import type { CallTable } from '../index.ts'

/** The rows of calls that run, as the procedures write them (decision 0531). */

export type CallRow = Selectable<CallTable>
export type NewCall = Omit<Insertable<CallTable>, 'position' | 'updated_at'>

const insertRow = inserting(
  'call',
  [
    ...(['sid', 'project_id', 'account_sid', 'parent_call_sid', 'origin', 'direction', 'from_number'] as const),
    ...(['to_number', 'status', 'trunk_id', 'carrier_id', 'number_id', 'application_id', 'sip_call_id'] as const),
    ...(['request', 'node_id', 'queued_at', 'initiated_at', 'ringing_at', 'answered_at', 'ended_at'] as const),
    ...(['duration_seconds', 'sip_code', 'reason', 'ended_by', 'decision_trace', 'updated_at'] as const),
  ],
  'returning *',
)

export function insertCall(query: Query, call: NewCall, now_ms: number): CallRow {
  const [row] = insertRow(query, { ...call, updated_at: iso(now_ms) })
  return row as unknown as CallRow
}

export const findCall = (query: Query, sid: string): CallRow | undefined =>
  query('select * from call where sid = ?', sid)[0] as unknown as CallRow | undefined

/** Changes a call, whether it has ended or not. */
export const changeCall = updating('call', 'sid = ?')

const changeRunning = updating('call', 'sid = ? and ended_at is null returning *')

/** Changes a call that has not ended; undefined when it has. */
export const changeRunningCall = (
  query: Query,
  sid: string,
  changes: Readonly<Record<string, string | number | null | undefined>>,
  now_ms: number,
): CallRow | undefined =>
  changeRunning(query, { ...changes, updated_at: iso(now_ms) }, sid)[0] as unknown as CallRow | undefined

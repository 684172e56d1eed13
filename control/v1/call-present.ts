import type { HistoryRow } from '../../core/state/calls/call-history.ts'
import { listFactsOf } from '../../core/state/calls/call-list-facts.ts'
import type { Db } from '../../core/state/index.ts'
import { Count64, Instant, nullable, oneOf, resource, type Static, Type } from '../http/schema.ts'

const Text = Type.String()
const TextOrNull = nullable(Text)
const InstantOrNull = nullable(Instant)
export const Status = oneOf('queued', 'ringing', 'in-progress', 'completed', 'busy', 'no-answer', 'canceled', 'failed')
export const CallDirection = oneOf('inbound', 'outbound-api', 'outbound-dial', 'outbound')

/** The fields that every representation of a call has. */
export const callFields = {
  id: Text,
  account_sid: TextOrNull,
  application_id: TextOrNull,
  direction: CallDirection,
  duration_seconds: nullable(Count64),
  ended_at: InstantOrNull,
  ended_by: nullable(oneOf('caller', 'called', 'platform', 'api')),
  from: Text,
  number_id: TextOrNull,
  origin: oneOf('carrier', 'trunk', 'client', 'rest', 'dial', 'test'),
  parent_call_id: TextOrNull,
  queued_at: Instant,
  reason: TextOrNull,
  sip_code: nullable(Type.Integer()),
  start_time: InstantOrNull,
  status: Status,
  to: Text,
  trunk_id: TextOrNull,
}

/** A call of a list, with what people look for in lists. */
export const ListedCall = resource('ListedCall', {
  ...callFields,
  codec: TextOrNull,
  mos: nullable(Type.Number()),
  price_minor: nullable(Count64),
  trunk_name: TextOrNull,
})

export async function presentListed(db: Db, rows: readonly HistoryRow[]): Promise<Static<typeof ListedCall>[]> {
  const factsOf = await listFactsOf(db, rows)
  return rows.map(row => ({ ...presentCall(row), ...factsOf(row.sid) }))
}

export const CallSummary = resource('CallSummary', callFields)
export const presentCall = (row: HistoryRow): Static<typeof CallSummary> => ({
  id: row.sid,
  account_sid: row.account_sid,
  application_id: row.application_id,
  direction: row.direction,
  duration_seconds: row.ended_at === null ? null : row.duration_seconds,
  ended_at: row.ended_at,
  ended_by: row.ended_by,
  from: row.from_number,
  number_id: row.number_id,
  origin: row.origin,
  parent_call_id: row.parent_call_sid,
  queued_at: row.queued_at,
  reason: row.reason,
  sip_code: row.sip_code,
  start_time: row.answered_at,
  status: row.status,
  to: row.to_number,
  trunk_id: row.trunk_id,
})

import type { Ending } from '../../../domain/calls/endings.ts'
import { iso } from '../../../runtime/clock.ts'
import { ceilings } from '../ceilings/index.ts'
import { settledPrice } from '../ceilings/settle.ts'
import { inserting, type Query } from '../query.ts'
import { tellStatus } from './callbacks.ts'
import { countsOfEndedCall } from './counts.ts'
import { queueProjectEvent } from './events.ts'
import { changeCall, findCallRow, type RecordedCall } from './rows.ts'

export interface FinalFacts {
  readonly ending: Ending
  readonly ended_ms: number
  /**
   * Seconds since the answer by the monotonic clock of the node that ran the call. Omitted when that node is lost: wall
   * times then give the duration.
   */
  readonly duration_seconds?: number
  /** Post-dial delay of the leg that reached the network, for the last callback. */
  readonly pdd_ms: number | null
  /** JSON of both legs' codecs and quality; null when there was no media. */
  readonly media: string | null
  /** Further parameters of the last callback. */
  readonly extra?: Readonly<Record<string, string>>
}

interface Finished {
  readonly row: RecordedCall
  /** Number of callbacks and events queued. */
  readonly queued: number
}

const insertCdr = inserting('cdr', [
  ...(['call_sid', 'project_id', 'trunk_id', 'carrier_id', 'origin', 'direction', 'from_number'] as const),
  ...(['to_number', 'status', 'sip_code', 'reason', 'ended_by', 'started_at', 'answered_at', 'ended_at'] as const),
  ...(['duration_seconds', 'pdd_ms', 'media'] as const),
])

interface LostEnd {
  readonly sid: string
  readonly facts: FinalFacts
  readonly node_id: string
}

/** Ends a call of a node that is lost. Returns false when the node has registered again, or the call has ended. */
export function endLost(query: Query, { sid, facts, node_id }: LostEnd): boolean {
  const lost = query('select id from node where id = ? and lost_at is not null', node_id)
  return lost.length > 0 && finish(query, sid, facts) !== null
}

/**
 * Ends a call: slots, money, final status, CDR, last callback. Returns null when it has already ended; its slots and
 * money are released in any case.
 */
export function finish(query: Query, sid: string, facts: FinalFacts): Finished | null {
  const known = findCallRow(query, sid)
  if (!known || known.ended_at !== null) {
    const answered = (known?.answered_at ?? null) !== null
    const duration_seconds = known?.duration_seconds ?? 0
    ceilings.release(query, { call_sid: sid, duration_seconds, answered, now_ms: facts.ended_ms })
    return null
  }
  const { project_id, direction, from_number, to_number, answered_at } = known
  const { ended_at, duration_seconds } = lengthOf(known, facts)
  const released = { call_sid: sid, duration_seconds, answered: answered_at !== null, carrier_id: known.carrier_id }
  ceilings.release(query, { ...released, now_ms: facts.ended_ms })
  const { status, sip_code, reason, ended_by } = facts.ending
  const { pdd_ms } = facts
  const measured = { ended_at, duration_seconds, pdd_ms }
  const changes = { status, sip_code, reason, ended_by, ...measured, updated_at: iso(facts.ended_ms) }
  const row = { ...known, ...changes }
  changeCall(query, changes, sid)
  const record = {
    call_sid: sid,
    project_id,
    trunk_id: row.trunk_id,
    carrier_id: row.carrier_id,
    origin: row.origin,
    direction,
    from_number,
    to_number,
    status,
    sip_code,
    reason,
    ended_by,
    started_at: row.initiated_at ?? row.queued_at,
    answered_at,
    ended_at,
    duration_seconds,
    pdd_ms,
    media: facts.media,
  }
  insertCdr(query, record)
  for (const { sql, parameters } of countsOfEndedCall({ ...record, application_id: row.application_id }))
    query(sql, ...parameters)
  const { trunk_id } = row
  const ended = { status, duration_seconds, ended_at, ended_by, reason, sip_code }
  const data = () => ({
    sid,
    direction,
    from: from_number,
    to: to_number,
    trunk_id,
    ...ended,
    price: settledPrice(query, sid),
  })
  const heard = queueProjectEvent(query, { project_id, kind: 'call.ended', data }, facts.ended_ms)
  query(
    "update call_attempt set ended_at = ?, result = 'canceled' where call_sid = ? and ended_at is null",
    ended_at,
    sid,
  )
  query(
    "update call_command set done_at = ?, outcome = 'call_ended' where call_sid = ? and done_at is null",
    ended_at,
    sid,
  )
  const callback = { now_ms: facts.ended_ms, ...(facts.extra ? { extra: facts.extra } : {}) }
  return { row, queued: heard + tellStatus(query, row, 'completed', callback) }
}

function lengthOf({ answered_at, queued_at }: RecordedCall, facts: FinalFacts) {
  const answered_ms = answered_at === null ? null : Date.parse(answered_at)
  // The wall clock may have jumped during the call: its end must not precede its beginning (threats §2.10).
  const least_ms = answered_ms === null ? Date.parse(queued_at) : answered_ms + (facts.duration_seconds ?? 0) * 1000
  const ended_ms = Math.max(facts.ended_ms, least_ms)
  const by_wall = answered_ms === null ? 0 : Math.floor((ended_ms - answered_ms) / 1000)
  const duration_seconds = answered_ms === null ? 0 : (facts.duration_seconds ?? by_wall)
  return { ended_at: iso(ended_ms), duration_seconds }
}

import { hash as digest } from 'node:crypto'
import { shownCallId } from '../../../domain/calls/foreign.ts'
import { type CallbackEvent, type CallFacts, callbackParameters } from '../../../domain/calls/parameters.ts'
import { type CallRequest, readCallRequest } from '../../../domain/calls/request.ts'
import { shownParameters } from '../../../domain/calls/typed.ts'
import { DEFAULT_COUNTRY } from '../../../domain/numbers/default-country.ts'
import { parseNumber } from '../../../domain/numbers/parse.ts'
import { iso } from '../../../runtime/clock.ts'
import type { OutboxTable } from '../../db.ts'
import { inserting, numberOf, type Query, textOf } from '../query.ts'
import type { ReportedCall } from './rows.ts'

/** Rows of the outbox, written in the transaction of the change that they report. */

export const callFactsOf = (row: ReportedCall, request: CallRequest = readCallRequest(row.request)): CallFacts => ({
  sid: row.sid,
  account_sid: row.account_sid ?? '',
  parent_call_sid: row.parent_call_sid,
  direction: row.direction,
  from: row.from_number,
  to: row.to_number,
  status: row.status,
  number_sid: row.number_id,
  from_country: countryOf(row.from_number),
  to_country: countryOf(row.to_number),
  forwarded_from: request.forwarded_from ?? null,
  caller_name: request.caller_name ?? null,
  sip: request.sip ?? null,
})

/** The ISO code of a number's country; null for SIP URIs, clients and global codes. */
const countryOf = (given: string): string | null =>
  /^\+?\d/.test(given) ? (parseNumber(given, DEFAULT_COUNTRY)?.country ?? null) : null

export interface Enqueued {
  readonly kind: OutboxTable['kind']
  readonly call_sid: string
  /** Subject of the ordering key, in place of the call. */
  readonly ordering?: string
  readonly project_id: string
  readonly url: string
  readonly method: 'GET' | 'POST'
  readonly parameters: Readonly<Record<string, string>>
  readonly now_ms: number
}

const insertOutbox = inserting('outbox', [
  ...(['ordering_key', 'project_id', 'kind', 'call_sid', 'url', 'method', 'parameters', 'event_id'] as const),
  ...(['attempts', 'next_attempt_at', 'delivered', 'given_up', 'created_at'] as const),
])

/** Rows are found by the key, and an index of PostgreSQL has no room for a longer text. */
const LONG_URL = 500

/** Queues a request in the outbox. Requests about one call to one URL leave in order. */
export function enqueueCallback(query: Query, wanted: Enqueued): void {
  const { kind, call_sid, project_id, url, method } = wanted
  const now = iso(wanted.now_ms)
  insertOutbox(query, {
    kind,
    call_sid,
    project_id,
    url,
    method,
    ordering_key: `${wanted.ordering ?? call_sid} ${url.length > LONG_URL ? digest('sha256', url) : url}`,
    parameters: JSON.stringify(shownParameters(wanted.parameters)),
    event_id: query.uuid(),
    attempts: 0,
    delivered: 0,
    given_up: 0,
    next_attempt_at: now,
    created_at: now,
  })
}

/**
 * Marks a status callback of a call. Conferences and streams of the call may report to the same URL and have their own
 * sequence numbers. Customers' text cannot contain it: JSON escapes quotes.
 */
export const PROGRESS_MARK = '"CallbackSource":"call-progress-events"'

const SENT = `select url, count(*) as count from outbox where call_sid = ? and kind = 'status_callback'
    and parameters like '%${PROGRESS_MARK}%' group by url`

/**
 * Queues a callback of `event` to the call's status callback URL, if it has one that subscribes to the event. Returns
 * the number of rows inserted.
 */
export function tellStatus(
  query: Query,
  row: ReportedCall,
  event: CallbackEvent,
  facts: { readonly now_ms: number; readonly extra?: Readonly<Record<string, string>> },
): number {
  const request = readCallRequest(row.request)
  const url = request.status_callback
  if (!url || !(request.status_callback_events ?? ['completed']).includes(event)) return 0
  const sent = query(SENT, row.sid).find(count => textOf(count, 'url') === url)
  const parameters = callbackParameters(callFactsOf(row, request), {
    event,
    status: event === 'initiated' ? 'initiated' : row.status,
    sequence: numberOf(sent ?? {}, 'count'),
    at_ms: facts.now_ms,
    duration_seconds: row.duration_seconds ?? 0,
    sip_code: row.sip_code,
    sip_call_id: shownCallId(row),
  })
  enqueueCallback(query, {
    kind: 'status_callback',
    call_sid: row.sid,
    project_id: row.project_id,
    url,
    method: request.status_callback_method ?? 'POST',
    parameters: { ...parameters, ...facts.extra },
    now_ms: facts.now_ms,
  })
  return 1
}

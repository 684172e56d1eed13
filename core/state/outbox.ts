import type { Selectable } from 'kysely'
import {
  type CallbackEvent,
  type CallFacts,
  callbackParameters,
  type RecordingCallbackFacts,
  recordingParameters,
} from '../domain/calls/parameters.ts'
import { type CallRequest, readCallRequest } from '../domain/calls/request.ts'
import { iso } from '../runtime/clock.ts'
import { newId } from '../runtime/ids.ts'
import type { CallTable, OutboxTable, Trx } from './index.ts'

/**
 * Callbacks that nobody waits for become rows in the transaction of what they tell of; the control process delivers
 * them.
 */

export const callFactsOf = (
  row: Selectable<CallTable>,
  request: CallRequest = readCallRequest(row.request),
): CallFacts => ({
  sid: row.sid,
  account_sid: row.account_sid ?? '',
  parent_call_sid: row.parent_call_sid,
  direction: row.direction,
  from: row.from_number,
  to: row.to_number,
  status: row.status,
  number_sid: row.number_id,
  forwarded_from: request.forwarded_from ?? null,
  sip: request.sip ?? null,
})

/**
 * Tells the call's status callback URL of `event`, when there is one and the event was asked for. True when a row was
 * made.
 */
export async function enqueueStatusCallback(
  trx: Trx,
  row: Selectable<CallTable>,
  event: CallbackEvent,
  facts: { readonly now_ms: number; readonly extra?: Readonly<Record<string, string>> },
): Promise<boolean> {
  const request = readCallRequest(row.request)
  const url = request.status_callback
  if (!url || !(request.status_callback_events ?? ['completed']).includes(event)) return false
  const sent = await trx
    .selectFrom('outbox')
    .select(eb => eb.fn.countAll<number>().as('count'))
    .where('call_sid', '=', row.sid)
    .where('kind', '=', 'status_callback')
    .where('url', '=', url)
    // Conferences and streams of the call may report to the same URL; each counts for itself.
    .where('parameters', 'like', '%call-progress-events%')
    .executeTakeFirstOrThrow()
  const parameters = callbackParameters(callFactsOf(row, request), {
    event,
    status: event === 'initiated' ? 'initiated' : row.status,
    sequence: Number(sent.count),
    at_ms: facts.now_ms,
    duration_seconds: row.duration_seconds ?? 0,
    sip_code: row.sip_code,
    sip_call_id: row.sip_call_id,
  })
  await enqueue(trx, {
    kind: 'status_callback',
    call_sid: row.sid,
    project_id: row.project_id,
    url,
    method: request.status_callback_method ?? 'POST',
    parameters: { ...parameters, ...facts.extra },
    now_ms: facts.now_ms,
  })
  return true
}

export interface RecordingCallback {
  readonly url: string
  readonly method: 'GET' | 'POST'
  readonly events: readonly string[]
}

export async function enqueueRecordingCallback(
  trx: Trx,
  callback: RecordingCallback | null,
  facts: RecordingCallbackFacts & { readonly project_id: string; readonly now_ms: number },
): Promise<boolean> {
  if (!callback?.events.includes(facts.status)) return false
  await enqueue(trx, {
    kind: 'recording_callback',
    call_sid: facts.call_sid,
    project_id: facts.project_id,
    url: callback.url,
    method: callback.method,
    parameters: recordingParameters(facts),
    now_ms: facts.now_ms,
  })
  return true
}

export interface Enqueued {
  readonly kind: OutboxTable['kind']
  readonly call_sid: string
  /** What its order is of, in place of the call. */
  readonly ordering?: string
  readonly project_id: string
  readonly url: string
  readonly method: 'GET' | 'POST'
  readonly parameters: Readonly<Record<string, string>>
  readonly now_ms: number
}

/** One request of the outbox; those about one call and URL leave in order. */
export async function enqueue(trx: Trx, wanted: Enqueued): Promise<void> {
  const now = iso(wanted.now_ms)
  await trx
    .insertInto('outbox')
    .values({
      ordering_key: `${wanted.ordering ?? wanted.call_sid} ${wanted.url}`,
      project_id: wanted.project_id,
      kind: wanted.kind,
      call_sid: wanted.call_sid,
      url: wanted.url,
      method: wanted.method,
      parameters: JSON.stringify(wanted.parameters),
      event_id: newId.uuid(),
      attempts: 0,
      next_attempt_at: now,
      lease_until: null,
      delivered: 0,
      given_up: 0,
      last_status: null,
      last_error: null,
      created_at: now,
    })
    .execute()
}

import { faultWords, isFault } from '../../domain/calls/fault-words.ts'
import type { CallEventTable, Db } from '../db.ts'
import { type HistoryRow, listProjectCalls } from './call-history.ts'

/** Something that went wrong in a call. */
export interface CallFault {
  readonly id: string
  readonly at: string
  readonly call: HistoryRow
  /** A document with an error or a warning, a request to a webhook that failed, or a call that was refused. */
  readonly kind: 'document' | 'request' | 'refusal'
  readonly number: number | null
  readonly reason: string | null
  readonly sip_code: number | null
  readonly sentence: string
  readonly request: Readonly<Record<string, unknown>> | null
  readonly response: Readonly<Record<string, unknown>> | null
}

interface Page {
  readonly limit: number
  /** The position of the last call that was read. */
  readonly before?: number
}

const CALLS_A_READ = 500
/** The most calls that one page reads: a customer without faults has a long history too. */
const MOST_CALLS = 1000

/**
 * Finds what went wrong in a project's calls, the newest call first. `next` is the position of the last call that was
 * read; null when no older call exists. A page ends with a whole call, so it may be longer than its limit by the faults
 * of one call, of which the first hundred are shown.
 */
export async function callFaults(
  db: Db,
  project_id: string,
  of: { readonly subaccount_id?: string },
  page: Page,
): Promise<{ readonly found: CallFault[]; readonly next: number | null }> {
  const found: CallFault[] = []
  let { before } = page
  for (let read = 0; read < MOST_CALLS; read += CALLS_A_READ) {
    const position = before === undefined ? {} : { before }
    const calls = await listProjectCalls(db, project_id, of, { limit: CALLS_A_READ, ...position })
    const events = await faultEvents(db, calls)
    for (const call of calls) {
      found.push(...faultsOf(call, events.get(call.sid) ?? []))
      before = call.position
      if (found.length >= page.limit) return { found, next: before }
    }
    if (calls.length < CALLS_A_READ) return { found, next: null }
  }
  return { found, next: before ?? null }
}

type Event = Pick<CallEventTable, 'call_sid' | 'at' | 'kind' | 'number' | 'detail'> & { readonly id: number }

/** The most faults of one call that are shown: a document in a loop has hundreds of the same. */
const MOST_OF_A_CALL = 100

async function faultEvents(db: Db, calls: readonly HistoryRow[]): Promise<ReadonlyMap<string, readonly Event[]>> {
  const found = new Map<string, Event[]>()
  if (calls.length === 0) return found
  const rows = await db
    .selectFrom('call_event')
    .selectAll()
    .where(
      'call_sid',
      'in',
      calls.map(({ sid }) => sid),
    )
    .where('number', 'is not', null)
    .where('kind', 'in', ['http', 'error', 'warning'])
    .orderBy('id', 'desc')
    .execute()
  for (const row of rows) {
    const list = found.get(row.call_sid) ?? []
    found.set(row.call_sid, list)
    if (list.length < MOST_OF_A_CALL) list.push(row)
  }
  return found
}

interface Exchanged {
  readonly request?: Readonly<Record<string, unknown>>
  readonly response?: Readonly<Record<string, unknown>> & { readonly error_message?: string }
}

function faultsOf(call: HistoryRow, events: readonly Event[]): CallFault[] {
  const of = { call, reason: null, sip_code: null }
  const faults = events.map(({ id, ...event }): CallFault => {
    const common = { ...of, id: `event_${id}`, at: event.at, number: event.number }
    if (isFault(event))
      return { ...common, kind: 'document', sentence: faultWords(event), request: null, response: null }
    const { request = null, response = null } = JSON.parse(event.detail) as Exchanged
    const sentence = `The request failed: ${response?.error_message ?? `error ${event.number}`}.`
    return { ...common, kind: 'request', sentence: sentence.replace(/\.\.$/, '.'), request, response }
  })
  return isRefused(call) ? [refusalOf(call), ...faults] : faults
}

/** A call that no script failed, and that did not end as calls do. */
const isRefused = ({ ended_at, answered_at, sip_code, reason }: HistoryRow): boolean =>
  ended_at !== null && answered_at === null && reason !== null && sip_code !== null && sip_code >= 400

function refusalOf(call: HistoryRow): CallFault {
  const trace = call.decision_trace === null ? null : (JSON.parse(call.decision_trace) as { sentence?: string })
  const sentence = trace?.sentence ?? `The call ended with SIP ${call.sip_code}: ${call.reason?.replaceAll('_', ' ')}.`
  return {
    id: call.sid,
    at: call.ended_at ?? call.queued_at,
    call,
    kind: 'refusal',
    number: null,
    reason: call.reason,
    sip_code: call.sip_code,
    sentence,
    request: null,
    response: null,
  }
}

import type { Selectable } from 'kysely'
import type { CallRequest } from '../../domain/calls/request.ts'
import { shownParameters, shownUrl } from '../../domain/calls/typed.ts'
import { maskCards } from '../../domain/ladder/cards.ts'
import { iso } from '../../runtime/clock.ts'
import type { CallCommandTable, CallEventTable, CallStatus, Db, RecordingTable, Trx } from '../db.ts'
import { callProcedure } from '../port.ts'
import type { Placed, PlaceInput } from '../procedures/place-call.ts'
import type { CallRow } from '../procedures/running/rows.ts'
import { addCallEvent } from './call-events.ts'

/** Calls as the APIs use them: create, list, fetch, and send commands to the node that runs one. */

export type { CallRow }
export type RecordingRow = Selectable<RecordingTable>
export type CallEventRow = Selectable<CallEventTable>

/** Queues a call of the API or returns why it is refused, in one message to the state's thread. */
export const placeCall = (db: Db | Trx, input: PlaceInput): Promise<Placed> => callProcedure(db, 'place_call', input)

/** Inserts a command for the node that runs the call or will run it. */
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

/** Returns the commands of a call that are not done yet. */
export const pendingCommands = (db: Db, call_sid: string): Promise<Selectable<CallCommandTable>[]> =>
  db
    .selectFrom('call_command')
    .selectAll()
    .where('call_sid', '=', call_sid)
    .where('done_at', 'is', null)
    .orderBy('id')
    .execute()

/** Marks a call's redirects that no node has taken as replaced by a newer one. */
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
  /** Ranges of instants: `from` is inclusive, `before` exclusive. */
  readonly answered?: { readonly from?: string; readonly before?: string }
  readonly ended?: { readonly from?: string; readonly before?: string }
}

/** A window of the list, newest first: at an offset, or next to a position. */
type CallWindow =
  | { readonly offset: number }
  | { readonly older_than: number }
  /** The calls just newer than the position, still newest first. */
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

/** Returns the recordings of a call that are not deleted, newest first. */
export const listCallRecordings = (db: Db, call_sid: string): Promise<RecordingRow[]> =>
  db
    .selectFrom('recording')
    .selectAll()
    .where('call_sid', '=', call_sid)
    .where('status', 'not in', ['deleted', 'absent'])
    .orderBy('created_at', 'desc')
    .orderBy('sid')
    .execute()

export const findProjectRecording = (db: Db, project_id: string, sid: string): Promise<RecordingRow | undefined> =>
  db
    .selectFrom('recording')
    .selectAll()
    .where('sid', '=', sid)
    .where('project_id', '=', project_id)
    .where('status', 'not in', ['deleted', 'absent'])
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

/** Lists the events of a call that have a number, newest first: its errors and warnings, and failed exchanges. */
export const listNumberedEvents = (db: Db, call_sid: string, limit: number): Promise<CallEventRow[]> =>
  db
    .selectFrom('call_event')
    .selectAll()
    .where('call_sid', '=', call_sid)
    .where('number', 'is not', null)
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()

/** Replaces a call's stored request, because a redirect may name other callbacks. */
export const changeRequest = (trx: Trx, sid: string, request: CallRequest, now_ms: number): Promise<CallRow> =>
  trx
    .updateTable('call')
    .set({ request: JSON.stringify(request), updated_at: iso(now_ms) })
    .where('sid', '=', sid)
    .returningAll()
    .executeTakeFirstOrThrow()

/** An HTTP request made for a call: for a document, an action or a callback. */
interface Exchange {
  readonly call_sid: string
  readonly method: 'GET' | 'POST'
  /** The URL as sent, without user info. */
  readonly url: string
  /** Parameters, named as on the wire. */
  readonly parameters: Readonly<Record<string, string>>
  /** Names of parameters whose values are not stored, such as secret digits. */
  readonly secret?: readonly string[]
  /** The response, from core/runtime/voice-request.ts. */
  readonly reply: {
    readonly ok: boolean
    readonly status: number | null
    readonly duration_ms: number
    readonly number?: number
    readonly detail?: string
    readonly headers?: Readonly<Record<string, string>>
    readonly body?: Uint8Array
  }
}

const MAX_BODY_CHARACTERS = 4096
const MAX_PARAMETER_CHARACTERS = 1024

/** Stores an exchange, bounded in size, for `Events.json` and the console. */
export const recordExchange = (db: Db | Trx, exchange: Exchange, now_ms: number): Promise<void> =>
  addCallEvent(
    db,
    {
      call_sid: exchange.call_sid,
      kind: 'http',
      number: exchange.reply.number ?? null,
      detail: {
        request: {
          method: exchange.method,
          url: shownUrl(exchange.url),
          parameters: Object.fromEntries(
            Object.entries(shownParameters(exchange.parameters, exchange.secret)).map(([name, value]) => [
              snakeCase(name),
              value.slice(0, MAX_PARAMETER_CHARACTERS),
            ]),
          ),
        },
        response: {
          response_code: exchange.reply.status,
          request_duration: Math.round(exchange.reply.duration_ms),
          content_type: exchange.reply.headers?.['content-type'] ?? null,
          response_body: maskCards(new TextDecoder().decode(exchange.reply.body ?? new Uint8Array())).slice(
            0,
            MAX_BODY_CHARACTERS,
          ),
          ...(exchange.reply.detail === undefined ? {} : { error_message: exchange.reply.detail }),
        },
      },
    },
    now_ms,
  )

/** Converts a parameter's name to the resource's case: `CallSid` to `call_sid`. */
const snakeCase = (name: string): string => name.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase()

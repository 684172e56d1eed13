import {
  attemptsOf,
  endOrHangUp,
  findProjectCall,
  type HistoryFilter,
  type HistoryRow,
  listProjectCalls,
} from '../../core/state/call-history.ts'
import type { Db } from '../../core/state/index.ts'
import { mediaQualityOf } from '../../core/state/media-quality.ts'
import { explainCall } from '../../core/state/reservations.ts'
import { findTrunk } from '../../core/state/trunks.ts'
import type { Caller } from '../http/caller.ts'
import { cursorOf, pageQuery, readCursor } from '../http/paging.ts'
import { isRefusal, notFound, refuse } from '../http/reply.ts'
import {
  Count64,
  Instant,
  list,
  listOf,
  nullable,
  oneOf,
  optional,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'
import { route } from './route.ts'

const Text = Type.String()
const TextOrNull = nullable(Text)
const InstantOrNull = nullable(Instant)
const Status = oneOf('queued', 'ringing', 'in-progress', 'completed', 'busy', 'no-answer', 'canceled', 'failed')
const Direction = oneOf('inbound', 'outbound-api', 'outbound-dial', 'outbound')

const fields = {
  id: Text,
  account_sid: TextOrNull,
  application_id: TextOrNull,
  direction: Direction,
  duration_seconds: nullable(Count64),
  ended_at: InstantOrNull,
  ended_by: nullable(oneOf('caller', 'called', 'platform', 'api')),
  from: Text,
  number_id: TextOrNull,
  origin: oneOf('carrier', 'trunk', 'rest', 'dial', 'test'),
  parent_call_id: TextOrNull,
  queued_at: Instant,
  reason: TextOrNull,
  sip_code: nullable(Type.Integer()),
  start_time: InstantOrNull,
  status: Status,
  to: Text,
  trunk_id: TextOrNull,
}

const CallSummary = resource('CallSummary', fields)
const CallDetail = resource('CallDetail', {
  ...fields,
  initiated_at: InstantOrNull,
  ringing_at: InstantOrNull,
  sip_call_id: TextOrNull,
  attempts: list(
    resource('CallAttempt', {
      sequence: Type.Integer(),
      target: Text,
      address: TextOrNull,
      transport: Text,
      started_at: Instant,
      provisional_at: InstantOrNull,
      ended_at: InstantOrNull,
      sip_code: nullable(Type.Integer()),
      result: nullable(oneOf('answered', 'refused', 'failed', 'canceled', 'no_answer')),
      reason: TextOrNull,
    }),
  ),
  price_explanation: nullable(list(Text)),
})

const present = (row: HistoryRow): Static<typeof CallSummary> => ({
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

const DEFAULT_PAGE = 50
const MAX_PAGE = 200
const CallPage = Type.Object(
  { data: Type.Array(CallSummary), next_cursor: optional(Text) },
  { additionalProperties: false },
)

const query = Type.Object(
  {
    ...pageQuery(MAX_PAGE),
    status: optional(Status),
    direction: optional(Direction),
    trunk_id: optional(Type.String({ maxLength: 64 })),
    number: optional(Type.String({ pattern: '^\\+?[0-9]{1,15}$' })),
    from: optional(Instant),
    to: optional(Instant),
  },
  { additionalProperties: false },
)

/** A call that the caller may see: within a restricted key's subaccount, those of its trunks. */
async function seenCall(db: Db, project_id: string, caller: Caller, sid: string): Promise<HistoryRow | undefined> {
  const row = await findProjectCall(db, project_id, sid)
  if (!row || caller.subaccount_id === null) return row
  const trunk = row.trunk_id === null ? undefined : await findTrunk(db, project_id, row.trunk_id)
  return trunk?.subaccount_id === caller.subaccount_id ? row : undefined
}

const noCall = (sid: string) => notFound(`call ${sid.slice(0, 60)}`)

export const calls = [
  route({
    method: 'get',
    path: '/calls',
    summary: 'Call history, newest first',
    scope: 'call_history:read',
    restricted_keys: true,
    query,
    replies: { 200: CallPage },
    async run({ db, project, caller, query: asked }) {
      const { limit = DEFAULT_PAGE, cursor, from, to, ...rest } = asked
      const position = readCursor(cursor, ['number'])
      if (isRefusal(position)) return position
      const filter: HistoryFilter = {
        ...rest,
        ...(from ? { from: new Date(from).toISOString() } : {}),
        ...(to ? { to: new Date(to).toISOString() } : {}),
        ...(caller.subaccount_id === null ? {} : { subaccount_id: caller.subaccount_id }),
      }
      const before = position ? { before: position[0] } : {}
      const rows = await listProjectCalls(db, project.id, filter, { limit: limit + 1, ...before })
      const shown = rows.slice(0, limit)
      const last = shown.at(-1)
      const more = last && rows.length > limit ? { next_cursor: cursorOf([last.position]) } : {}
      return { status: 200, body: { data: shown.map(present), ...more } }
    },
  }),

  route({
    method: 'get',
    path: '/calls/{call_id}',
    summary: 'Read a call with every attempt at a target and what its price is made of',
    scope: 'call_history:read',
    restricted_keys: true,
    replies: { 200: CallDetail },
    async run({ db, project, caller, params }) {
      const row = await seenCall(db, project.id, caller, params.call_id)
      if (!row) return noCall(params.call_id)
      const attempts = (await attemptsOf(db, row.sid)).map(({ id: _id, call_sid: _sid, ...attempt }) => attempt)
      const body: Static<typeof CallDetail> = {
        ...present(row),
        initiated_at: row.initiated_at,
        ringing_at: row.ringing_at,
        sip_call_id: row.sip_call_id,
        attempts,
        price_explanation: await explainCall(db, row.sid),
      }
      return { status: 200, body }
    },
  }),

  route({
    method: 'get',
    path: '/calls/{call_id}/decision',
    summary: 'The admission decision of a call, check by check, also when it was admitted',
    scope: 'call_diagnostics:read',
    restricted_keys: true,
    replies: { 200: resource('CallDecision', { decision: Type.Unknown() }) },
    async run({ db, project, caller, params }) {
      const row = await seenCall(db, project.id, caller, params.call_id)
      if (!row) return noCall(params.call_id)
      return { status: 200, body: { decision: row.decision_trace === null ? null : JSON.parse(row.decision_trace) } }
    },
  }),

  route({
    method: 'get',
    path: '/calls/{call_id}/media',
    summary: 'Media quality of the legs of a call over its time',
    scope: 'call_diagnostics:read',
    restricted_keys: true,
    replies: {
      200: listOf(
        resource('MediaSample', { leg_id: Text, at: Instant, stats: Type.Record(Type.String(), Type.Unknown()) }),
      ),
    },
    async run({ db, project, caller, params }) {
      const row = await seenCall(db, project.id, caller, params.call_id)
      if (!row) return noCall(params.call_id)
      const samples = await mediaQualityOf(db, row.sid)
      const data = samples.map(({ leg_id, at, stats }) => ({ leg_id, at, stats: JSON.parse(stats) }))
      return { status: 200, body: { data } }
    },
  }),

  route({
    method: 'get',
    path: '/live-calls',
    summary: 'Calls in progress, newest first',
    scope: 'live_calls:read',
    restricted_keys: true,
    replies: { 200: listOf(CallSummary) },
    async run({ db, project, caller }) {
      const filter = { live: true, ...(caller.subaccount_id === null ? {} : { subaccount_id: caller.subaccount_id }) }
      const rows = await listProjectCalls(db, project.id, filter, { limit: 1000 })
      return { status: 200, body: { data: rows.map(present) } }
    },
  }),

  route({
    method: 'post',
    path: '/live-calls/{call_id}/hang-up',
    summary: 'Ask for the end of a call in progress; the answer may come before the end',
    scope: 'service_configuration:write',
    restricted_keys: true,
    audit: { kind: 'trunks', action: 'call.hung_up' },
    replies: { 200: CallSummary },
    refusals: ['call_not_live'],
    async run({ db, project, caller, params, services }) {
      const row = await seenCall(db, project.id, caller, params.call_id)
      if (!row) return noCall(params.call_id)
      if (row.ended_at !== null) return refuse('call_not_live', { value: row.sid, limit: row.status })
      await endOrHangUp(db, row, services.clock.now())
      const shown = present((await findProjectCall(db, project.id, row.sid)) ?? row)
      const resource = {
        type: 'call',
        id: row.sid,
        name: `${row.from_number} to ${row.to_number}`,
        href: `/v1/calls/${row.sid}`,
      }
      const change = { resource, summary: `Hung up ${row.sid}`, before: null, after: null, trunk_id: row.trunk_id }
      return { status: 200, body: shown, change, wake: [['commands', row.sid] as const] }
    },
  }),
]

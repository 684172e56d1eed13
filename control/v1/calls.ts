import { iso } from '../../core/runtime/clock.ts'
import { type HistoryFilter, listProjectCalls } from '../../core/state/calls/call-history.ts'
import type { Caller } from '../http/caller.ts'
import { pageOf, pageQuery, positionOf } from '../http/paging.ts'
import { isRefusal } from '../http/reply.ts'
import { described, Instant, optional, pageSchema, type Static, Type } from '../http/schema.ts'
import { CallDirection, ListedCall, presentListed, Status } from './call-present.ts'
import { route } from './route.ts'

const DEFAULT_PAGE = 50
const MAX_PAGE = 200
const CallPage = pageSchema(ListedCall)

const Dialled = Type.String({ pattern: '^\\+?[0-9]{1,15}$', description: 'Digits, with or without the plus.' })

const Id = Type.String({ minLength: 1, maxLength: 64 })

/** What the history and exports of calls filter by. */
export const CALL_FILTER = {
  status: optional(Status),
  direction: optional(CallDirection),
  trunk_id: optional(Id),
  application_id: optional(Id),
  from: optional(Dialled),
  to: optional(Dialled),
  number: optional(Dialled),
  reason: optional(Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$' })),
  call_id: optional(Type.String({ pattern: '^CA[0-9a-f]{0,32}$' })),
  since: optional(Instant),
  before: optional(Instant),
  ended_since: optional(described(Instant, 'Only calls that ended at this instant or later.')),
  ended_before: optional(described(Instant, 'Only calls that ended before this instant.')),
  parent_call_id: optional(described(Id, 'Only calls that this call made.')),
}

type AskedFilter = { readonly [Name in keyof typeof CALL_FILTER]?: Static<(typeof CALL_FILTER)[Name]> }

/** Returns the filter as the state takes it. A restricted key only reads the calls of its subaccount. */
export const historyFilter = (
  { since, before, ended_since, ended_before, parent_call_id: parent_call_sid, ...rest }: AskedFilter,
  { subaccount_id }: Pick<Caller, 'subaccount_id'>,
): HistoryFilter => ({
  ...rest,
  ...(since === undefined ? {} : { since: iso(Date.parse(since)) }),
  ...(before === undefined ? {} : { before: iso(Date.parse(before)) }),
  ...(ended_since === undefined ? {} : { ended_since: iso(Date.parse(ended_since)) }),
  ...(ended_before === undefined ? {} : { ended_before: iso(Date.parse(ended_before)) }),
  ...(parent_call_sid === undefined ? {} : { parent_call_sid }),
  ...(subaccount_id === null ? {} : { subaccount_id }),
})

const query = Type.Object({ ...pageQuery(MAX_PAGE), ...CALL_FILTER }, { additionalProperties: false })

export const calls = [
  route({
    method: 'get',
    path: '/calls',
    summary: 'Call history, newest first',
    scope: 'call_history:read',
    restricted_keys: true,
    description:
      'Running calls too. `number` is the calling or the called one; `call_id` may be the first part of one; `since` (included) and `before` (not included) bound `queued_at`, `ended_since` and `ended_before` likewise `ended_at`.',
    query,
    replies: { 200: CallPage },
    async run({ db, project, caller, query: asked }) {
      const { limit = DEFAULT_PAGE, cursor, ...rest } = asked
      const position = positionOf(cursor)
      if (isRefusal(position)) return position
      const filter = historyFilter(rest, caller)
      const rows = await listProjectCalls(db, project.id, filter, { limit: limit + 1, ...position })
      const { shown, more } = pageOf(rows, limit, row => [row.position])
      return { status: 200, body: { data: await presentListed(db, shown), ...more } }
    },
  }),
]

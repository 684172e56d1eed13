import { iso } from '../../core/runtime/clock.ts'
import { type HistoryFilter, listProjectCalls } from '../../core/state/calls/call-history.ts'
import { pageOf, pageQuery, positionOf } from '../http/paging.ts'
import { isRefusal } from '../http/reply.ts'
import { Instant, optional, pageSchema, Type } from '../http/schema.ts'
import { CallSummary, Direction, presentCall, Status } from './call-present.ts'
import { route } from './route.ts'

const DEFAULT_PAGE = 50
const MAX_PAGE = 200
const CallPage = pageSchema(CallSummary)

const Dialled = Type.String({ pattern: '^\\+?[0-9]{1,15}$', description: 'Digits, with or without the plus.' })

const query = Type.Object(
  {
    ...pageQuery(MAX_PAGE),
    status: optional(Status),
    direction: optional(Direction),
    trunk_id: optional(Type.String({ minLength: 1, maxLength: 64 })),
    from: optional(Dialled),
    to: optional(Dialled),
    number: optional(Dialled),
    since: optional(Instant),
    before: optional(Instant),
  },
  { additionalProperties: false },
)

export const calls = [
  route({
    method: 'get',
    path: '/calls',
    summary: 'Call history, newest first',
    scope: 'call_history:read',
    restricted_keys: true,
    description:
      'Running calls too. `number` is the calling or the called one; `since` (included) and `before` (not included) bound `queued_at`.',
    query,
    replies: { 200: CallPage },
    async run({ db, project, caller, query: asked }) {
      const { limit = DEFAULT_PAGE, cursor, since, before, ...rest } = asked
      const position = positionOf(cursor)
      if (isRefusal(position)) return position
      const filter: HistoryFilter = {
        ...rest,
        ...(since === undefined ? {} : { since: iso(Date.parse(since)) }),
        ...(before === undefined ? {} : { before: iso(Date.parse(before)) }),
        ...(caller.subaccount_id === null ? {} : { subaccount_id: caller.subaccount_id }),
      }
      const rows = await listProjectCalls(db, project.id, filter, { limit: limit + 1, ...position })
      const { shown, more } = pageOf(rows, limit, row => [row.position])
      return { status: 200, body: { data: shown.map(presentCall), ...more } }
    },
  }),
]

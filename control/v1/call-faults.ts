import { type CallFault, callFaults } from '../../core/state/calls/call-faults.ts'
import { cursorOf, pageQuery, positionOf } from '../http/paging.ts'
import { isRefusal } from '../http/reply.ts'
import { Count64, Instant, nullable, oneOf, pageSchema, resource, type Static, Type } from '../http/schema.ts'
import { route } from './route.ts'

const DEFAULT_PAGE = 50
const MAX_PAGE = 200

const Text = Type.String()
const TextOrNull = nullable(Text)
const Facts = Type.Record(Text, Type.Unknown())

const Fault = resource('CallFault', {
  id: Text,
  at: Instant,
  call_id: Text,
  from: Text,
  to: Text,
  kind: oneOf('document', 'request', 'refusal'),
  number: nullable(Count64),
  reason: TextOrNull,
  request: nullable(Facts),
  response: nullable(Facts),
  sentence: Text,
  sip_code: nullable(Type.Integer()),
})

const present = ({ call, ...fault }: CallFault): Static<typeof Fault> => ({
  ...fault,
  call_id: call.sid,
  from: call.from_number,
  to: call.to_number,
})

export const faults = [
  route({
    method: 'get',
    path: '/call-faults',
    summary: 'What went wrong in calls: documents, requests to webhooks, and refused calls, of the newest calls first',
    description:
      'A page reads a bounded number of calls, so it may have fewer faults than `limit`, or none, and still a `next_cursor`.',
    scope: 'call_diagnostics:read',
    restricted_keys: true,
    query: Type.Object(pageQuery(MAX_PAGE), { additionalProperties: false }),
    replies: { 200: pageSchema(Fault) },
    async run({ db, project, caller, query: { cursor, limit = DEFAULT_PAGE } }) {
      const position = positionOf(cursor)
      if (isRefusal(position)) return position
      const of = caller.subaccount_id === null ? {} : { subaccount_id: caller.subaccount_id }
      const { found, next } = await callFaults(db, project.id, of, { limit, ...position })
      const more = next === null ? {} : { next_cursor: cursorOf([next]) }
      return { status: 200, body: { data: found.map(present), ...more } }
    },
  }),
]

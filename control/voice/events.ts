import { type CallEventRow, findAccountCall, listCallEvents } from '../../core/state/calls/calls.ts'
import { list, resource, Type } from '../http/schema.ts'
import { unknownCall } from './call.ts'
import { voiceRoute } from './route.ts'

const Exchange = Type.Object(
  {
    request: Type.Object({
      method: Type.String(),
      url: Type.String(),
      parameters: Type.Record(Type.String(), Type.String()),
    }),
    response: Type.Object({}, { additionalProperties: true }),
  },
  { additionalProperties: false },
)

const Events = resource('VoiceEvents', {
  events: list(Exchange),
  uri: Type.String(),
  page: Type.Integer(),
  page_size: Type.Integer(),
})

/** The most events in an answer. The number of stored events of a call is limited when they are written. */
const MAX_EVENTS = 1000

export const callEvents = [
  voiceRoute({
    method: 'GET',
    path: '/Calls/{call_sid}/Events',
    suffix: '.json',
    summary: 'The HTTP exchanges of a call, oldest first',
    replies: { 200: Events },
    async run({ account, services, params, path }) {
      const { db } = services.state
      const call = await findAccountCall(db, account.account_sid, params.call_sid)
      if (!call) return unknownCall(params.call_sid)
      const kept = account.call_event_history === 'enabled'
      const rows = kept ? await listCallEvents(db, call.sid, 'http', MAX_EVENTS) : []
      const shown = rows.map(presentExchange)
      return { status: 200, body: { events: shown, uri: path, page: 0, page_size: Math.max(1, shown.length) } }
    },
  }),
]

/** Presents a row that `recordExchange` (core/state/calls/calls.ts) wrote. The row has this shape, except the date. */
function presentExchange(row: CallEventRow) {
  const detail = JSON.parse(row.detail) as {
    readonly request?: { method?: string; url?: string; parameters?: Record<string, string> }
    readonly response?: Record<string, unknown>
  }
  const { method = '', url = '', parameters = {} } = detail.request ?? {}
  const error_code = row.number === null ? {} : { error_code: row.number }
  return {
    request: { method, url, parameters },
    response: { ...detail.response, ...error_code, date_created: row.at },
  }
}

import { type CallEventRow, findAccountCall, listNumberedEvents } from '../../core/state/calls/calls.ts'
import { oneOf, resource, type Static, Type } from '../http/schema.ts'
import { unknownCall } from './call.ts'
import { forReason, isVoiceRefusal, numbered, type VoiceRefusal } from './errors.ts'
import { pageOfAll, readRange, voicePageSchema } from './listing.ts'
import { API_VERSION, accountPath, dateText } from './present.ts'
import { type VoiceContext, voiceRoute } from './route.ts'

/** The errors and warnings of a call: what the notifications of the compatible form are. */

const Text = Type.String()

const Notification = resource('VoiceNotification', {
  sid: Text,
  account_sid: Text,
  api_version: Text,
  call_sid: Text,
  error_code: Text,
  log: oneOf('0', '1'),
  message_date: Text,
  message_text: Text,
  more_info: Text,
  request_method: Text,
  request_url: Text,
  request_variables: Text,
  response_body: Text,
  response_headers: Text,
  date_created: Text,
  date_updated: Text,
  uri: Text,
})
type Shown = Static<typeof Notification>

/** The most notifications of a call that are read. */
const MOST = 1000

/** What the events of a call hold: an exchange with a server, or a fault of a document. */
interface Detail {
  readonly request?: { readonly method: string; readonly url: string; readonly parameters: Record<string, string> }
  readonly response?: { readonly response_body?: string; readonly error_message?: string }
  readonly url?: string | null
  readonly detail?: string
}

const detailOf = (row: CallEventRow): Detail => JSON.parse(row.detail) as Detail

const sidOf = ({ id }: CallEventRow): string => `NO${id.toString(16).padStart(32, '0')}`

/** A notification: its event, whether it stopped a document, and whether an exchange still waits for its fault. */
interface Told {
  readonly row: CallEventRow
  readonly fatal: boolean
  readonly alone: boolean
}

/**
 * Joins the fault of a document with the failed exchange before it, which says more. An exchange that is no fault of a
 * document is that of a callback, which never stops one. `rows` are oldest first.
 */
function joined(rows: readonly CallEventRow[]): Told[] {
  const told: Told[] = []
  for (const row of rows) {
    const fatal = row.kind === 'error'
    const alone = row.kind === 'http'
    const before = alone ? -1 : told.findLastIndex(one => one.alone && one.row.number === row.number)
    const exchange = told[before]
    if (exchange) told[before] = { row: exchange.row, fatal, alone: false }
    else told.push({ row, fatal, alone })
  }
  return told
}

function present({ row, fatal }: Told, { account, services }: VoiceContext): Shown {
  const { request, response, url, detail } = detailOf(row)
  const at = dateText(row.at)
  return {
    sid: sidOf(row),
    account_sid: account.account_sid,
    api_version: API_VERSION,
    call_sid: row.call_sid,
    error_code: String(row.number),
    log: fatal ? '0' : '1',
    message_date: at,
    message_text: response?.error_message ?? detail ?? '',
    more_info: `${services.settings.base_url}/docs/errors/${row.number}`,
    request_method: request?.method ?? '',
    request_url: request?.url ?? url ?? '',
    request_variables: new URLSearchParams(request?.parameters).toString(),
    response_body: response?.response_body ?? '',
    response_headers: '',
    date_created: at,
    date_updated: at,
    uri: `${accountPath(account.account_sid)}/Calls/${row.call_sid}/Notifications/${sidOf(row)}.json`,
  }
}

/** Returns the notifications of a call, newest first. */
async function notificationsOf(context: VoiceContext, call_sid: string): Promise<readonly Shown[] | VoiceRefusal> {
  const { account, services } = context
  const { db } = services.state
  const call = await findAccountCall(db, account.account_sid, call_sid)
  if (!call) return unknownCall(call_sid)
  const kept = account.call_event_history === 'enabled'
  const rows = kept ? await listNumberedEvents(db, call.sid, MOST) : []
  return joined(rows.toReversed())
    .map(told => present(told, context))
    .reverse()
}

const LIST = '/Calls/{call_sid}/Notifications'

export const callNotifications = [
  voiceRoute({
    method: 'GET',
    path: LIST,
    suffix: '.json',
    extended: true,
    summary: 'List the errors and warnings of a call, newest first',
    fields: {
      Log: '0 errors, 1 warnings',
      'MessageDate, MessageDate<, MessageDate>': 'YYYY-MM-DD or ISO 8601, both ends included',
      'PageSize, Page': 'as in the list of calls',
    },
    replies: { 200: voicePageSchema('VoiceNotificationPage', 'notifications', Notification) },
    async run(context) {
      const { query, path, params } = context
      const log = query.get('Log') || null
      if (log !== null && log !== '0' && log !== '1') return numbered(20001, 'Log is neither 0 nor 1.')
      const dates = readRange(query, 'MessageDate')
      if (isVoiceRefusal(dates)) return dates
      const { from = '', before } = dates
      const all = await notificationsOf(context, params.call_sid)
      if (isVoiceRefusal(all)) return all
      const at = ({ message_date }: Shown): string => new Date(message_date).toISOString()
      const asked = all.filter(
        one => (log === null || one.log === log) && at(one) >= from && (before === undefined || at(one) < before),
      )
      const page = await pageOfAll({ query, path }, asked)
      if (isVoiceRefusal(page)) return page
      return { status: 200, body: { notifications: [...page.rows], ...page.about } }
    },
  }),
  voiceRoute({
    method: 'GET',
    path: `${LIST}/{notification_sid}`,
    suffix: '.json',
    extended: true,
    summary: 'Fetch an error or a warning of a call',
    replies: { 200: Notification },
    async run(context) {
      const { call_sid, notification_sid } = context.params
      const all = await notificationsOf(context, call_sid)
      if (isVoiceRefusal(all)) return all
      const found = all.find(({ sid }) => sid === notification_sid)
      return found
        ? { status: 200, body: found }
        : forReason('not_found', { value: `The notification ${notification_sid}` })
    },
  }),
]

import type { ActivityStart } from '../../core/domain/calls/control-commands.ts'
import { MAX_MESSAGE_BYTES } from '../../core/domain/sip/body.ts'
import { type ActivityRow, findActivity } from '../../core/state/calls/activities.ts'
import { findAccountCall } from '../../core/state/calls/calls.ts'
import { isRefusal } from '../http/reply.ts'
import { nullable, oneOf, resource, type Static, Type } from '../http/schema.ts'
import { sendMessage, startActivity, stopActivity } from '../live/activities.ts'
import { unknownCall } from './call.ts'
import { changed } from './changed.ts'
import { forReason, isVoiceRefusal, numbered, type VoiceRefusal } from './errors.ts'
import { flagOf, methodOf, oddFlag, urlOf } from './fields.ts'
import type { Form } from './form.ts'
import { accountPath, dateText } from './present.ts'
import { type VoiceContext, voiceRoute } from './route.ts'

/** Streams, recording servers, transcriptions and messages of a call that talks, beside what its document does. */

const Text = Type.String()

const Activity = resource('VoiceCallActivity', {
  sid: Text,
  account_sid: Text,
  call_sid: Text,
  name: nullable(Text),
  status: oneOf('in-progress', 'stopped'),
  date_updated: Text,
  uri: Text,
})

const Subscription = resource('VoiceMessageSubscription', {
  sid: Text,
  account_sid: Text,
  call_sid: Text,
  date_created: Text,
  uri: Text,
})

const Message = resource('VoiceUserDefinedMessage', {
  sid: Text,
  account_sid: Text,
  call_sid: Text,
  date_created: Text,
})

type Named = Exclude<ActivityRow['kind'], 'subscription'>

/** The segment of the path for each kind. */
const PLACES = { stream: 'Streams', siprec: 'Siprec', transcription: 'Transcriptions' } as const
const SUBSCRIPTIONS = 'UserDefinedMessageSubscriptions'

const unknownActivity = (named: string): VoiceRefusal =>
  forReason('not_found', { value: `The activity ${named.slice(0, 60)} of the call` })

const present = (row: ActivityRow & { readonly kind: Named }, account_sid: string): Static<typeof Activity> => ({
  sid: row.sid,
  account_sid,
  call_sid: row.call_sid,
  name: row.name,
  status: row.status,
  date_updated: dateText(row.updated_at),
  uri: `${accountPath(account_sid)}/Calls/${row.call_sid}/${PLACES[row.kind]}/${row.sid}.json`,
})

const MAX_NAME = 64

type Asking = VoiceContext & { readonly form: Form; readonly params: { readonly call_sid: string } }

/** Starts what the fields describe, and answers with its row. */
async function begin<A>(
  context: Asking,
  start: ActivityStart | VoiceRefusal,
  shown: (row: ActivityRow, account_sid: string) => A,
): Promise<{ readonly status: 201; readonly body: A; readonly wake: readonly ['commands'] } | VoiceRefusal> {
  if (isVoiceRefusal(start)) return start
  const { account, form, params } = context
  const name = form.text('Name') ?? null
  if (name !== null && name.length > MAX_NAME) return numbered(20001, `Name has more than ${MAX_NAME} characters.`)
  return changed(context, async asked => {
    const call = await findAccountCall(asked.trx, account.account_sid, params.call_sid)
    if (!call) return unknownCall(params.call_sid)
    const row = await startActivity(asked, call, start, name)
    return isRefusal(row) ? row : { status: 201 as const, body: shown(row, account.account_sid) }
  })
}

/** Finds an activity of a call of the account, and stops it. */
const end = <A extends object>(
  context: VoiceContext & { readonly params: { readonly call_sid: string } },
  { kind, named }: { readonly kind: ActivityRow['kind']; readonly named: string },
  answer: (row: ActivityRow, account_sid: string) => A,
) =>
  changed(context, async asked => {
    const { account, params } = context
    const call = await findAccountCall(asked.trx, account.account_sid, params.call_sid)
    if (!call) return unknownCall(params.call_sid)
    const row = await findActivity(asked.trx, { call_sid: call.sid, kind, named })
    if (!row) return unknownActivity(named)
    return answer(await stopActivity(asked, call, row), account.account_sid)
  })

const TRACKS = ['inbound_track', 'outbound_track', 'both_tracks'] as const

function trackOf(form: Form, usual: (typeof TRACKS)[number]): (typeof TRACKS)[number] | VoiceRefusal {
  const text = form.text('Track') ?? usual
  const known = TRACKS.find(track => track === text)
  return known ?? numbered(20001, `Track ${text.slice(0, 60)} is not one of ${TRACKS.join(', ')}.`)
}

const MAX_PARAMETERS = 99
const MAX_PARAMETER = 500

/** Reads `Parameter1.Name` and `Parameter1.Value` to `Parameter99.…`. */
function parametersOf(form: Form): Record<string, string> | VoiceRefusal {
  const parameters: Record<string, string> = {}
  for (let at = 1; at <= MAX_PARAMETERS; at++) {
    const [name, value = ''] = [form.text(`Parameter${at}.Name`), form.text(`Parameter${at}.Value`)]
    if (name === undefined) continue
    if (name.length + value.length > MAX_PARAMETER)
      return numbered(20001, `Name and value of Parameter${at} have more than ${MAX_PARAMETER} characters.`)
    parameters[name] = value
  }
  return parameters
}

/** Reads the URL of a WebSocket. */
function socketOf(form: Form): string | VoiceRefusal {
  const text = form.text('Url')
  if (text === undefined) return numbered(21205, 'Url is required.')
  const { protocol, hostname } = URL.canParse(text) ? new URL(text) : { protocol: '', hostname: '' }
  if ((protocol === 'wss:' || protocol === 'ws:') && hostname !== '') return text
  return numbered(21205, `Url ${text.slice(0, 60)} is not a wss:// or ws:// URL.`)
}

function callbackOf(form: Form, name: string) {
  const url = urlOf(form, name)
  if (url === null || isVoiceRefusal(url)) return url
  return { url, method: methodOf(form, 'StatusCallbackMethod') }
}

/** Reads what streams and recording servers have in common. */
function sentOf(form: Form, usual: (typeof TRACKS)[number]) {
  const track = trackOf(form, usual)
  if (isVoiceRefusal(track)) return track
  const parameters = parametersOf(form)
  if (isVoiceRefusal(parameters)) return parameters
  const callback = callbackOf(form, 'StatusCallback')
  return isVoiceRefusal(callback) ? callback : { track, parameters, callback }
}

function streamOf(form: Form): ActivityStart | VoiceRefusal {
  const url = socketOf(form)
  if (isVoiceRefusal(url)) return url
  const sent = sentOf(form, 'inbound_track')
  return isVoiceRefusal(sent) ? sent : { kind: 'stream', url, ...sent }
}

function siprecOf(form: Form): ActivityStart | VoiceRefusal {
  const sent = sentOf(form, 'both_tracks')
  return isVoiceRefusal(sent) ? sent : { kind: 'siprec', connector: form.text('ConnectorName') ?? null, ...sent }
}

const LANGUAGE = /^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*$/
const MAX_HINTS = 500

function transcriptionOf({ form, services }: Asking): ActivityStart | VoiceRefusal {
  const track = trackOf(form, 'both_tracks')
  if (isVoiceRefusal(track)) return track
  const odd = oddFlag(form, ['PartialResults', 'ProfanityFilter', 'EnableAutomaticPunctuation'])
  if (odd) return odd
  const callback = callbackOf(form, 'StatusCallbackUrl')
  if (isVoiceRefusal(callback)) return callback
  const language = form.text('LanguageCode') ?? 'en-US'
  if (!LANGUAGE.test(language)) return numbered(20001, `LanguageCode ${language.slice(0, 60)} is not a language tag.`)
  const label = (name: string): string | null => form.text(name)?.slice(0, 128) ?? null
  const named = form.text('TranscriptionEngine')
  const chosen = services.settings.stt_choices.find(({ engine }) => engine === named)
  const hints = (form.text('Hints') ?? '').split(',').map(hint => hint.trim().slice(0, 100))
  return {
    kind: 'transcription',
    track,
    language,
    inbound_label: label('InboundTrackLabel'),
    outbound_label: label('OutboundTrackLabel'),
    partial_results: flagOf(form, 'PartialResults') ?? false,
    model: label('SpeechModel'),
    hints: hints.filter(hint => hint !== '').slice(0, MAX_HINTS),
    profanity_filter: flagOf(form, 'ProfanityFilter') ?? true,
    punctuation: flagOf(form, 'EnableAutomaticPunctuation') ?? true,
    engine: chosen?.engine ?? null,
    callback,
  }
}

const SENT = {
  Name: `at most ${MAX_NAME} characters, unique among those that run; stands for the sid in paths`,
  Track: TRACKS.join(', '),
}
const CALLBACK = { 'StatusCallback, StatusCallbackMethod': 'gets its start, its end and its errors' }
const PARAMETERS = { 'Parameter1.Name, Parameter1.Value': 'to Parameter99: given to the other side' }

const STARTS: Readonly<
  Record<
    Named,
    {
      readonly summary: string
      readonly fields: Readonly<Record<string, string>>
      readonly example: Readonly<Record<string, string>>
      start(context: Asking): ActivityStart | VoiceRefusal
    }
  >
> = {
  stream: {
    summary: 'Stream the media of an answered call to a WebSocket',
    fields: { Url: 'required, wss:// or ws://', ...SENT, ...PARAMETERS, ...CALLBACK },
    example: { Url: 'wss://app.example.com/media', Name: 'analysis', Track: 'both_tracks' },
    start: ({ form }) => streamOf(form),
  },
  siprec: {
    summary: 'Send the media of an answered call to a SIP recording server; needs the recording consent of the project',
    fields: { ConnectorName: 'a configured recording server, default the first', ...SENT, ...PARAMETERS, ...CALLBACK },
    example: { Name: 'compliance', Track: 'both_tracks' },
    start: ({ form }) => siprecOf(form),
  },
  transcription: {
    summary: 'Transcribe an answered call',
    fields: {
      ...SENT,
      'StatusCallbackUrl, StatusCallbackMethod': 'gets what is said, the start, the end and errors',
      'LanguageCode, TranscriptionEngine, SpeechModel, Hints': 'as of <Transcription>',
      'InboundTrackLabel, OutboundTrackLabel': 'as of <Transcription>',
      'PartialResults, ProfanityFilter, EnableAutomaticPunctuation': 'true or false',
    },
    example: { StatusCallbackUrl: 'https://app.example.com/said', Name: 'notes' },
    start: transcriptionOf,
  },
}

const OF_CALL = '/Calls/{call_sid}'
const KINDS = Object.keys(STARTS) as Named[]

const presentSubscription = (row: ActivityRow, account_sid: string): Static<typeof Subscription> => ({
  sid: row.sid,
  account_sid,
  call_sid: row.call_sid,
  date_created: dateText(row.created_at),
  uri: `${accountPath(account_sid)}/Calls/${row.call_sid}/${SUBSCRIPTIONS}/${row.sid}.json`,
})

function subscriptionOf(form: Form): ActivityStart | VoiceRefusal {
  const url = urlOf(form, 'Callback')
  if (isVoiceRefusal(url)) return url
  if (url === null) return numbered(21205, 'Callback is required.')
  return { kind: 'subscription', callback: { url, method: methodOf(form, 'Method') } }
}

function contentOf(form: Form): string | VoiceRefusal {
  const content = form.text('Content')
  if (content === undefined) return numbered(20001, 'Content is required.')
  if (Buffer.byteLength(content) > MAX_MESSAGE_BYTES)
    return numbered(20001, `Content has more than ${MAX_MESSAGE_BYTES} bytes.`)
  try {
    JSON.parse(content)
    return content
  } catch {
    return numbered(20001, 'Content is not JSON.')
  }
}

export const activities = [
  ...KINDS.flatMap(kind => {
    const { start, ...about } = STARTS[kind]
    const place = `${OF_CALL}/${PLACES[kind]}` as const
    const shown = (row: ActivityRow, account_sid: string) => present({ ...row, kind }, account_sid)
    return [
      voiceRoute({
        method: 'POST',
        path: place,
        suffix: '.json',
        extended: true,
        ...about,
        replies: { 201: Activity },
        run: context => begin(context, start(context), shown),
      }),
      voiceRoute({
        method: 'POST',
        path: `${place}/{activity}`,
        suffix: '.json',
        extended: true,
        summary: `Stop what POST …/${PLACES[kind]} or the document has begun, by its sid or its name`,
        fields: { Status: 'required, stopped' },
        example: { Status: 'stopped' },
        replies: { 200: Activity },
        async run(context) {
          const { form, params } = context
          if (form.text('Status') !== 'stopped') return numbered(20001, 'Status is required: stopped.')
          return end(context, { kind, named: params.activity }, (row, account_sid) => ({
            status: 200 as const,
            body: shown(row, account_sid),
          }))
        },
      }),
    ]
  }),
  voiceRoute({
    method: 'POST',
    path: `${OF_CALL}/UserDefinedMessages`,
    suffix: '.json',
    extended: true,
    summary: 'Send JSON to the client of an answered call, as a SIP MESSAGE within the call',
    fields: { Content: `required, JSON of at most ${MAX_MESSAGE_BYTES} bytes` },
    example: { Content: '{"seat": 12}' },
    replies: { 201: Message },
    async run(context) {
      const { account, form, params, now_ms } = context
      const content = contentOf(form)
      if (isVoiceRefusal(content)) return content
      return changed(context, async asked => {
        const call = await findAccountCall(asked.trx, account.account_sid, params.call_sid)
        if (!call) return unknownCall(params.call_sid)
        const sid = await sendMessage(asked, call, content)
        if (isRefusal(sid)) return sid
        const date_created = dateText(new Date(now_ms).toISOString())
        const body = { sid, account_sid: account.account_sid, call_sid: call.sid, date_created }
        return { status: 201 as const, body }
      })
    },
  }),
  voiceRoute({
    method: 'POST',
    path: `${OF_CALL}/${SUBSCRIPTIONS}`,
    suffix: '.json',
    extended: true,
    summary: 'Receive the JSON that the client of a call sends as SIP MESSAGE within the call',
    fields: { 'Callback, Method': 'required, where; GET or POST' },
    example: { Callback: 'https://app.example.com/messages' },
    replies: { 201: Subscription },
    run: context => begin(context, subscriptionOf(context.form), presentSubscription),
  }),
  voiceRoute({
    method: 'DELETE',
    path: `${OF_CALL}/${SUBSCRIPTIONS}/{subscription_sid}`,
    suffix: '.json',
    extended: true,
    summary: 'End a subscription',
    replies: { 204: null },
    run: context =>
      end(context, { kind: 'subscription', named: context.params.subscription_sid }, () => ({ status: 204 as const })),
  }),
]

import { listAccountCalls } from '../../core/state/calls/calls.ts'
import { createCall } from './create.ts'
import { isVoiceRefusal } from './errors.ts'
import { readFilter, voicePageOf, voicePageSchema } from './listing.ts'
import { presentVoiceCall, VoiceCall } from './present.ts'
import { voiceRoute } from './route.ts'

const CallPage = voicePageSchema('VoiceCallPage', 'calls', VoiceCall)

const listRoute = voiceRoute({
  method: 'GET',
  path: '/Calls',
  suffix: '.json',
  summary: 'List the calls of the account, most recent first',
  fields: {
    PageSize: '1 to 100, default 50; clamped; also `page_size`',
    Page: '0 and up, default 0; also `page`',
    'To, From, Status, ParentCallSid': 'exact',
    'StartTime, StartTime<, StartTime>, EndTime, EndTime<, EndTime>': 'YYYY-MM-DD or ISO 8601, both ends included',
  },
  example: { Status: 'completed', PageSize: '20' },
  replies: { 200: CallPage },
  async run({ account, services, query, path }) {
    const filter = readFilter(query)
    if (isVoiceRefusal(filter)) return filter
    const page = await voicePageOf({ query, path }, (window, limit) =>
      listAccountCalls(services.state.db, account.account_sid, filter, window, limit),
    )
    if (isVoiceRefusal(page)) return page
    return { status: 200, body: { calls: page.rows.map(presentVoiceCall), ...page.about } }
  },
})

const createRoute = voiceRoute({
  method: 'POST',
  path: '/Calls',
  suffix: '.json',
  summary: 'Originate an outbound call',
  fields: {
    To: 'required, `^\\+?[0-9]{7,15}$`',
    From: 'required, same pattern, a number of the project',
    Url: 'absolute http(s) URL of the document; one of Url and the inline markup is required',
    'Twiml, InlineMarkup': 'inline markup, at most 4000 characters; ignored when Url is given',
    'Method, FallbackUrl, FallbackMethod': 'how the document is fetched, and from where when that fails',
    'StatusCallback, StatusCallbackMethod, StatusCallbackEvent': 'initiated, ringing, answered, completed',
    Timeout: 'seconds to ring, 1 to 600, default 60',
    CallerId: 'a number of the project to present in place of From',
    TimeLimit: 'seconds from answer',
    SendDigits: 'at most 32 of 0-9 A-D # * w W, after the answer',
    'Record, RecordingChannels, RecordingTrack, Trim': 'record the whole call',
    'RecordingStatusCallback, RecordingStatusCallbackMethod, RecordingStatusCallbackEvent':
      'in-progress, completed, absent',
    'MachineDetection, MachineDetectionTimeout, MachineDetectionSpeechThreshold': 'answering-machine detection',
  },
  example: { From: '$FROM_NUMBER', To: '+2348030000001', Twiml: '<Response><Say>Hello.</Say></Response>' },
  replies: { 201: VoiceCall },
  run: createCall,
})

export const calls = [listRoute, createRoute]

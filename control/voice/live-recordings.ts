import { iso } from '../../core/runtime/clock.ts'
import { findAccountCall, findProjectRecording, type RecordingRow } from '../../core/state/calls/calls.ts'
import { findConference } from '../../core/state/calls/conferences.ts'
import { listProjectRecordings, type RecordingFilter } from '../../core/state/calls/recording-list.ts'
import type { Trx } from '../../core/state/index.ts'
import { isRefusal } from '../http/reply.ts'
import { changeRecording, type RecordingAct, removeRecording, running, startRecording } from '../live/recordings.ts'
import { unknownCall } from './call.ts'
import { changed } from './changed.ts'
import { unknownConference } from './conferences.ts'
import { readRecording } from './create.ts'
import { isVoiceRefusal, numbered, type VoiceRefusal } from './errors.ts'
import type { Form } from './form.ts'
import { readRange, voicePageBy, voicePageSchema } from './listing.ts'
import { presentVoiceRecording, VoiceRecording } from './present.ts'
import { unknownRecording } from './recordings.ts'
import { type VoiceContext, voiceRoute } from './route.ts'

/** Recordings of calls and conferences that run: list, start, pause, resume, stop, delete. */

const RecordingPage = voicePageSchema('VoiceRecordingPage', 'recordings', VoiceRecording)
const PAGES = { 'PageSize, Page': 'as in the list of calls' }
const OF_CALL = '/Calls/{call_sid}/Recordings'
const OF_CONFERENCE = '/Conferences/{conference}/Recordings'

/** The place of a recording in its list. It is known without the row, which may be gone when the next page is read. */
const BY_BIRTH = {
  textOf: ({ created_at, sid }: Pick<RecordingRow, 'created_at' | 'sid'>) => `${Date.parse(created_at)}-${sid}`,
  read(text: string) {
    const [, ms, sid] = /^([0-9]{1,15})-(RE[0-9a-f]{32})$/.exec(text) ?? []
    return sid === undefined ? undefined : { created_at: iso(Number(ms)), sid }
  },
}

async function list({ account, services, query, path }: VoiceContext, filter: RecordingFilter) {
  const page = await voicePageBy(BY_BIRTH, { query, path }, (window, limit) =>
    listProjectRecordings(services.state.db, account.project_id, filter, { limit, ...window }),
  )
  if (isVoiceRefusal(page)) return page
  const recordings = page.rows.map(row => presentVoiceRecording(row, account.account_sid))
  return { status: 200 as const, body: { recordings, ...page.about } }
}

/** The recording that a path names: one of the call, or of the conference. */
type Named = { readonly call_sid: string } | { readonly conference: string }

async function find(
  trx: Trx,
  project_id: string,
  of: Named & { readonly call_recording: string },
): Promise<RecordingRow | VoiceRefusal> {
  const named = of.call_recording
  const current = named === 'Twilio.CURRENT' && 'call_sid' in of ? (await running(trx, of.call_sid))[0] : undefined
  const row = current ?? (await findProjectRecording(trx, project_id, named))
  const owner = 'call_sid' in of ? row?.call_sid === of.call_sid : row?.conference_sid === of.conference
  return row && owner && row.project_id === project_id ? row : unknownRecording(named)
}

function readAct(form: Form): RecordingAct | VoiceRefusal {
  const behavior = form.text('PauseBehavior') ?? 'silence'
  if (behavior !== 'silence' && behavior !== 'skip')
    return numbered(20001, `PauseBehavior ${behavior.slice(0, 60)} is neither skip nor silence.`)
  const status = form.text('Status')
  if (status === 'stopped') return { act: 'stop' }
  if (status === 'paused') return { act: 'pause', behavior }
  if (status === 'in-progress') return { act: 'resume' }
  return numbered(20001, 'Status is required: stopped, paused or in-progress.')
}

const UPDATE = {
  fields: {
    Status: 'required, stopped, paused or in-progress',
    PauseBehavior: 'silence (default): the file has as much silence; skip: it has nothing of the pause',
  },
  example: { Status: 'paused', PauseBehavior: 'skip' },
} as const

async function update(
  context: VoiceContext & { readonly form: Form },
  of: Named & { readonly call_recording: string },
) {
  const { account, form } = context
  const wanted = readAct(form)
  if (isVoiceRefusal(wanted)) return wanted
  return changed(context, async asked => {
    const found = await find(asked.trx, account.project_id, of)
    if (isVoiceRefusal(found)) return found
    const row = await changeRecording(asked, found, wanted)
    return isRefusal(row) ? row : { status: 200 as const, body: presentVoiceRecording(row, account.account_sid) }
  })
}

const remove = (context: VoiceContext, of: Named & { readonly call_recording: string }) =>
  changed(context, async asked => {
    const found = await find(asked.trx, context.account.project_id, of)
    if (isVoiceRefusal(found)) return found
    return (await removeRecording(asked, found)) ?? { status: 204 as const }
  })

async function fetch({ account, services }: VoiceContext, of: Named & { readonly call_recording: string }) {
  const row = await services.state.transaction(trx => find(trx, account.project_id, of))
  return isVoiceRefusal(row) ? row : { status: 200 as const, body: presentVoiceRecording(row, account.account_sid) }
}

export const liveRecordings = [
  voiceRoute({
    method: 'GET',
    path: '/Recordings',
    suffix: '.json',
    extended: true,
    summary: 'List the recordings of the account, newest first',
    fields: {
      'CallSid, ConferenceSid': 'exact',
      'DateCreated, DateCreated<, DateCreated>': 'YYYY-MM-DD or ISO 8601, both ends included',
      ...PAGES,
    },
    replies: { 200: RecordingPage },
    async run(context) {
      const { query } = context
      const created = readRange(query, 'DateCreated')
      if (isVoiceRefusal(created)) return created
      const [call_id, conference_id] = [query.get('CallSid'), query.get('ConferenceSid')]
      return list(context, {
        ...(call_id ? { call_id } : {}),
        ...(conference_id ? { conference_id } : {}),
        ...(created.from === undefined ? {} : { since: created.from }),
        ...(created.before === undefined ? {} : { before: created.before }),
      })
    },
  }),
  voiceRoute({
    method: 'DELETE',
    path: '/Recordings/{recording_sid}',
    suffix: '.json',
    extended: true,
    summary: 'Delete a finished recording; its audio is gone for good',
    replies: { 204: null },
    run: context =>
      changed(context, async asked => {
        const { account, params } = context
        const row = await findProjectRecording(asked.trx, account.project_id, params.recording_sid)
        if (!row) return unknownRecording(params.recording_sid)
        return (await removeRecording(asked, row)) ?? { status: 204 as const }
      }),
  }),
  voiceRoute({
    method: 'POST',
    path: OF_CALL,
    suffix: '.json',
    extended: true,
    summary: 'Start a recording of an answered call; needs the recording consent of the project',
    fields: {
      'RecordingChannels, RecordingTrack, Trim': 'mono or dual; inbound, outbound or both; trim-silence, do-not-trim',
      'RecordingStatusCallback, RecordingStatusCallbackMethod, RecordingStatusCallbackEvent':
        'in-progress, completed, absent',
    },
    example: { RecordingChannels: 'dual' },
    replies: { 201: VoiceRecording },
    async run(context) {
      const { account, form, params } = context
      const wish = readRecording(form)
      if (isVoiceRefusal(wish)) return wish
      return changed(context, async asked => {
        const call = await findAccountCall(asked.trx, account.account_sid, params.call_sid)
        if (!call) return unknownCall(params.call_sid)
        const row = await startRecording(asked, call, wish)
        return isRefusal(row) ? row : { status: 201 as const, body: presentVoiceRecording(row, account.account_sid) }
      })
    },
  }),
  voiceRoute({
    method: 'GET',
    path: `${OF_CALL}/{call_recording}`,
    suffix: '.json',
    extended: true,
    summary: 'Fetch a recording of a call',
    replies: { 200: VoiceRecording },
    run: context => fetch(context, context.params),
  }),
  voiceRoute({
    method: 'POST',
    path: `${OF_CALL}/{call_recording}`,
    suffix: '.json',
    extended: true,
    summary: 'Pause, resume or stop a recording of a call',
    ...UPDATE,
    replies: { 200: VoiceRecording },
    run: context => update(context, context.params),
  }),
  voiceRoute({
    method: 'DELETE',
    path: `${OF_CALL}/{call_recording}`,
    suffix: '.json',
    extended: true,
    summary: 'Delete a finished recording of a call',
    replies: { 204: null },
    run: context => remove(context, context.params),
  }),
  voiceRoute({
    method: 'GET',
    path: OF_CONFERENCE,
    suffix: '.json',
    extended: true,
    summary: 'List the recordings of a conference, newest first',
    fields: PAGES,
    replies: { 200: RecordingPage },
    async run(context) {
      const { account, services, params } = context
      const row = await findConference(services.state.db, account.project_id, params.conference)
      return row ? list(context, { conference_id: row.sid }) : unknownConference(params.conference)
    },
  }),
  voiceRoute({
    method: 'GET',
    path: `${OF_CONFERENCE}/{call_recording}`,
    suffix: '.json',
    extended: true,
    summary: 'Fetch a recording of a conference',
    replies: { 200: VoiceRecording },
    run: context => fetch(context, context.params),
  }),
  voiceRoute({
    method: 'POST',
    path: `${OF_CONFERENCE}/{call_recording}`,
    suffix: '.json',
    extended: true,
    summary: 'Pause, resume or stop a recording of a conference',
    ...UPDATE,
    replies: { 200: VoiceRecording },
    run: context => update(context, context.params),
  }),
  voiceRoute({
    method: 'DELETE',
    path: `${OF_CONFERENCE}/{call_recording}`,
    suffix: '.json',
    extended: true,
    summary: 'Delete a finished recording of a conference',
    replies: { 204: null },
    run: context => remove(context, context.params),
  }),
]

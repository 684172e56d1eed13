import { findAccountCall, findProjectRecording, listCallRecordings } from '../../core/state/calls/calls.ts'
import { list, resource, Type } from '../http/schema.ts'
import { recordingAudio, recordingMp3 } from './audio.ts'
import { unknownCall } from './call.ts'
import { forReason, type VoiceRefusal } from './errors.ts'
import { presentVoiceRecording, VoiceRecording } from './present.ts'
import { voiceRoute } from './route.ts'

const Recordings = resource('VoiceRecordings', {
  recordings: list(VoiceRecording),
  uri: Type.String(),
  page: Type.Integer(),
  page_size: Type.Integer(),
})

export const unknownRecording = (sid: string): VoiceRefusal => forReason('not_found', { value: `The recording ${sid}` })

export const recordings = [
  voiceRoute({
    method: 'GET',
    path: '/Calls/{call_sid}/Recordings',
    suffix: '.json',
    summary: 'Every recording of a call, newest first; not paginated',
    replies: { 200: Recordings },
    async run({ account, services, params, path }) {
      const { db } = services.state
      const call = await findAccountCall(db, account.account_sid, params.call_sid)
      if (!call) return unknownCall(params.call_sid)
      const rows = await listCallRecordings(db, call.sid)
      const shown = rows.map(row => presentVoiceRecording(row, account.account_sid))
      // The pager of the stock library requires a page: all recordings are on one.
      return { status: 200, body: { recordings: shown, uri: path, page: 0, page_size: Math.max(1, shown.length) } }
    },
  }),
  voiceRoute({
    method: 'GET',
    path: '/Recordings/{recording_sid}',
    suffix: '.json',
    summary: 'Fetch the metadata of a recording',
    replies: { 200: VoiceRecording },
    async run({ account, services, params }) {
      const row = await findProjectRecording(services.state.db, account.project_id, params.recording_sid)
      if (!row) return unknownRecording(params.recording_sid)
      return { status: 200, body: presentVoiceRecording(row, account.account_sid) }
    },
  }),
  voiceRoute({
    method: 'GET',
    path: '/Recordings/{recording_sid}',
    suffix: '.wav',
    summary: 'Download the audio of a finished recording; one range at a time',
    replies: { 200: null, 206: null, 416: null },
    async run({ account, services, params, request }) {
      const row = await findProjectRecording(services.state.db, account.project_id, params.recording_sid)
      const audio = row?.status === 'completed' ? await recordingAudio(services, row, request) : null
      return audio ?? unknownRecording(params.recording_sid)
    },
  }),
  voiceRoute({
    method: 'GET',
    path: '/Recordings/{recording_sid}',
    suffix: '.mp3',
    extended: true,
    summary: 'Download the audio of a finished recording as MP3; one range at a time',
    replies: { 200: null, 206: null, 416: null },
    async run({ account, services, params, request }) {
      const row = await findProjectRecording(services.state.db, account.project_id, params.recording_sid)
      const audio = row?.status === 'completed' ? await recordingMp3(services, row, request) : null
      return audio ?? unknownRecording(params.recording_sid)
    },
  }),
]

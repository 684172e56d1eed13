import type { RecordingRow } from '../../core/state/calls/calls.ts'
import { listProjectRecordings, partiesOf } from '../../core/state/calls/recording-list.ts'
import type { Trx } from '../../core/state/index.ts'
import { pageOf, pageQuery, readCursor } from '../http/paging.ts'
import { type Change, isRefusal, notFound } from '../http/reply.ts'
import { described, Instant, input, oneOf, optional, pageSchema, Type } from '../http/schema.ts'
import { changeRecording, removeRecording, startRecording } from '../live/recordings.ts'
import { recordingAudio, recordingMp3 } from '../voice/audio.ts'
import { presentRecording, Recording, RecordingStatus } from './recording-present.ts'
import { route } from './route.ts'

const DEFAULT_PAGE = 50
const MAX_PAGE = 200

const RecordingPage = pageSchema(Recording)

const query = Type.Object(
  {
    ...pageQuery(MAX_PAGE),
    call_id: optional(Type.String({ minLength: 1, maxLength: 64 })),
    status: optional(RecordingStatus),
    since: optional(Instant),
    before: optional(Instant),
  },
  { additionalProperties: false },
)

const Behavior = described(
  oneOf('silence', 'skip'),
  '`silence` (default): the audio has as much silence. `skip`: it has nothing of the pause.',
)

/** Presents a recording before and after a change, for the trail; `after` null: it is deleted. */
async function changeOf(db: Trx, row: RecordingRow, summary: string, after: RecordingRow | null): Promise<Change> {
  const parties = await partiesOf(db, row.call_sid)
  return {
    resource: { type: 'recording', id: row.sid, name: `Recording of ${row.call_sid}`, href: null },
    summary,
    before: presentRecording(row, parties),
    after: after && presentRecording(after, parties),
  }
}

/** Declares a change of a recording that runs. */
const change = (act: 'stop' | 'resume', summary: string) =>
  route({
    method: 'post',
    path: `/recordings/{recording_id}/${act}`,
    summary,
    scope: 'recordings:manage',
    audit: { kind: 'trunks', action: `recording.${act === 'stop' ? 'stopped' : 'resumed'}` },
    replies: { 200: Recording },
    refusals: ['state_conflict'],
    async run({ db, project, recording, services }) {
      const asked = { trx: db, services, project_id: project.id, now_ms: services.clock.now() }
      const row = await changeRecording(asked, recording, { act })
      if (isRefusal(row)) return row
      const change = await changeOf(db, recording, `Asked ${recording.sid} to ${act}`, row)
      const body = presentRecording(row, await partiesOf(db, row.call_sid))
      return { status: 200, body, change, wake: ['commands'] as const }
    },
  })

export const recordings = [
  route({
    method: 'get',
    path: '/recordings',
    summary: 'Recordings of the project, newest first',
    description: '`since` (included) and `before` (not included) bound `created_at`.',
    scope: 'recordings:manage',
    restricted_keys: true,
    query,
    replies: { 200: RecordingPage },
    async run({ db, project, caller, query: asked }) {
      const { limit = DEFAULT_PAGE, cursor, since, before, ...rest } = asked
      const position = readCursor(cursor, ['string', 'string'])
      if (isRefusal(position)) return position
      const filter = {
        ...rest,
        ...(since === undefined ? {} : { since: new Date(since).toISOString() }),
        ...(before === undefined ? {} : { before: new Date(before).toISOString() }),
        ...(caller.subaccount_id === null ? {} : { subaccount_id: caller.subaccount_id }),
      }
      const older_than = position ? { older_than: { created_at: position[0], sid: position[1] } } : {}
      const rows = await listProjectRecordings(db, project.id, filter, { limit: limit + 1, ...older_than })
      const { shown, more } = pageOf(rows, limit, row => [row.created_at, row.sid])
      return { status: 200, body: { data: shown.map(row => presentRecording(row, row)), ...more } }
    },
  }),

  route({
    method: 'get',
    path: '/recordings/{recording_id}',
    summary: 'Read a recording',
    scope: 'recordings:manage',
    replies: { 200: Recording },
    async run({ db, recording }) {
      return { status: 200, body: presentRecording(recording, await partiesOf(db, recording.call_sid)) }
    },
  }),

  route({
    method: 'get',
    path: '/recordings/{recording_id}.wav',
    summary: 'Download the audio of a finished recording; one range at a time',
    scope: 'recordings:manage',
    produces: 'audio/wav',
    replies: { 200: null, 206: null, 416: null },
    async run({ recording, services, request }) {
      const audio = recording.status === 'completed' ? await recordingAudio(services, recording, request) : null
      return audio ?? notFound(`recording ${recording.sid}`)
    },
  }),

  route({
    method: 'get',
    path: '/recordings/{recording_id}.mp3',
    summary: 'Download the audio of a finished recording as MP3; one range at a time',
    description: 'Recordings of at most four hours, and at most four downloads of a project at once.',
    scope: 'recordings:manage',
    produces: 'audio/mpeg',
    replies: { 200: null, 206: null, 416: null },
    refusals: ['limit_reached', 'rate_limited'],
    async run({ recording, services, request }) {
      const audio = recording.status === 'completed' ? await recordingMp3(services, recording, request) : null
      return audio ?? notFound(`recording ${recording.sid}`)
    },
  }),

  route({
    method: 'delete',
    path: '/recordings/{recording_id}',
    summary: 'Delete a finished recording; its audio is gone for good',
    scope: 'recordings:manage',
    audit: { kind: 'trunks', action: 'recording.deleted' },
    replies: { 204: null },
    refusals: ['state_conflict'],
    async run({ db, recording, services }) {
      const refused = await removeRecording({ trx: db, now_ms: services.clock.now() }, recording)
      if (refused) return refused
      const change = await changeOf(db, recording, `Deleted ${recording.sid}`, null)
      return { status: 204, change, wake: ['jobs'] as const }
    },
  }),

  route({
    method: 'post',
    path: '/live-calls/{call_id}/recordings',
    summary: 'Start a recording of an answered call; needs the recording consent of the project',
    description: 'With two channels the left one is what the call says, and the right one what it hears.',
    scope: 'recordings:manage',
    audit: { kind: 'trunks', action: 'recording.started' },
    body: input('StartRecordingRequest', {
      channels: optional(described(Type.Integer({ minimum: 1, maximum: 2 }), '1 (a mix) or 2 (default).')),
      track: optional(described(oneOf('both', 'inbound', 'outbound'), '`inbound`: what the call says. Default: both.')),
      trim: optional(described(Type.Boolean(), 'Cut the silence at its beginning and end. Default: false.')),
    }),
    replies: { 201: Recording },
    refusals: ['call_not_live', 'recording_consent_required', 'limit_reached'],
    example: { channels: 2 },
    async run({ db, project, call, body, services }) {
      const { channels = 2, track = 'both', trim = false } = body
      const asked = { trx: db, services, project_id: project.id, now_ms: services.clock.now() }
      const wish = { channels: channels === 1 ? 1 : 2, track, trim, callback: null } as const
      const row = await startRecording(asked, call, wish)
      if (isRefusal(row)) return row
      const shown = presentRecording(row, call)
      const began = await changeOf(db, row, `Began to record ${call.sid}`, row)
      const change = { ...began, before: null, trunk_id: call.trunk_id }
      const headers = { Location: `/v1/recordings/${row.sid}` }
      return { status: 201, headers, body: shown, change, wake: ['commands'] as const }
    },
  }),

  route({
    method: 'post',
    path: '/recordings/{recording_id}/pause',
    summary: 'Pause a recording in progress',
    scope: 'recordings:manage',
    audit: { kind: 'trunks', action: 'recording.paused' },
    body: input('PauseRecordingRequest', { behavior: optional(Behavior) }),
    replies: { 200: Recording },
    refusals: ['state_conflict'],
    example: { behavior: 'silence' },
    async run({ db, project, recording, body: wanted, services }) {
      const { behavior = 'silence' } = wanted
      const asked = { trx: db, services, project_id: project.id, now_ms: services.clock.now() }
      const row = await changeRecording(asked, recording, { act: 'pause', behavior })
      if (isRefusal(row)) return row
      const change = await changeOf(db, recording, `Paused ${recording.sid}: ${behavior}`, row)
      const body = presentRecording(row, await partiesOf(db, row.call_sid))
      return { status: 200, body, change, wake: ['commands'] as const }
    },
  }),

  change('resume', 'Resume a recording that is paused'),
  change('stop', 'Stop a recording that runs; it is then completed'),
]

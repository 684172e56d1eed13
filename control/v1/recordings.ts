import type { RecordingRow } from '../../core/state/calls/calls.ts'
import { deleteRecording, listProjectRecordings, partiesOf } from '../../core/state/calls/recording-list.ts'
import { pageOf, pageQuery, readCursor } from '../http/paging.ts'
import { isRefusal, notFound, refuse } from '../http/reply.ts'
import { Instant, optional, pageSchema, Type } from '../http/schema.ts'
import { recordingAudio } from '../voice/audio.ts'
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

/** The statuses of recordings that have ended. The others are still being written. */
const FINISHED: readonly RecordingRow['status'][] = ['completed', 'absent']

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
    method: 'delete',
    path: '/recordings/{recording_id}',
    summary: 'Delete a finished recording; its audio is gone for good',
    scope: 'recordings:manage',
    audit: { kind: 'trunks', action: 'recording.deleted' },
    replies: { 204: null },
    refusals: ['state_conflict'],
    async run({ db, recording, now }) {
      if (!FINISHED.includes(recording.status))
        return refuse('state_conflict', { name: `recording ${recording.sid}`, value: recording.status })
      await deleteRecording(db, recording.sid, now)
      const resource = { type: 'recording', id: recording.sid, name: `Recording of ${recording.call_sid}`, href: null }
      const before = presentRecording(recording, await partiesOf(db, recording.call_sid))
      const change = { resource, summary: `Deleted ${recording.sid}`, before, after: null }
      return { status: 204, change, wake: ['jobs'] as const }
    },
  }),
]

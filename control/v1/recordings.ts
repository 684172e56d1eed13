import { findProjectRecording, type RecordingRow } from '../../core/state/calls.ts'
import type { Db } from '../../core/state/index.ts'
import { deleteRecording, listProjectRecordings } from '../../core/state/recording-list.ts'
import type { Caller } from '../http/caller.ts'
import { pageOf, pageQuery, readCursor } from '../http/paging.ts'
import { isRefusal, notFound, refuse, wakeJobs } from '../http/reply.ts'
import { Instant, optional, pageSchema, Type } from '../http/schema.ts'
import { recordingAudio } from '../voice/audio.ts'
import { seenCall } from './call-present.ts'
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

/** Recordings whose end has been told: the others are still being written. */
const FINISHED: readonly RecordingRow['status'][] = ['completed', 'absent']

/** A recording that the caller may have: a key restricted to a subaccount, those of the calls of its trunks. */
export async function seenRecording(db: Db, project_id: string, caller: Caller, sid: string) {
  const row = await findProjectRecording(db, project_id, sid)
  if (!row || caller.subaccount_id === null) return row
  return (await seenCall(db, project_id, caller, row.call_sid)) ? row : undefined
}

export const noRecording = (sid: string) => notFound(`recording ${sid.slice(0, 60)}`)

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
      return { status: 200, body: { data: shown.map(presentRecording), ...more } }
    },
  }),

  route({
    method: 'get',
    path: '/recordings/{recording_id}',
    summary: 'Read a recording',
    scope: 'recordings:manage',
    restricted_keys: true,
    replies: { 200: Recording },
    async run({ db, project, caller, params }) {
      const row = await seenRecording(db, project.id, caller, params.recording_id)
      if (!row || row.status === 'deleted') return noRecording(params.recording_id)
      return { status: 200, body: presentRecording(row) }
    },
  }),

  route({
    method: 'get',
    path: '/recordings/{recording_id}.wav',
    summary: 'Download the audio of a finished recording; one range at a time',
    scope: 'recordings:manage',
    restricted_keys: true,
    produces: 'audio/wav',
    replies: { 200: null, 206: null, 416: null },
    async run({ db, project, caller, params, services, request }) {
      const row = await seenRecording(db, project.id, caller, params.recording_id)
      const audio = row?.status === 'completed' ? await recordingAudio(services, row, request) : null
      return audio ?? noRecording(params.recording_id)
    },
  }),

  route({
    method: 'delete',
    path: '/recordings/{recording_id}',
    summary: 'Delete a finished recording; its audio is gone for good',
    scope: 'recordings:manage',
    restricted_keys: true,
    audit: { kind: 'trunks', action: 'recording.deleted' },
    replies: { 204: null },
    refusals: ['state_conflict'],
    async run({ db, project, caller, params, now }) {
      const row = await seenRecording(db, project.id, caller, params.recording_id)
      if (!row) return noRecording(params.recording_id)
      if (!FINISHED.includes(row.status))
        return refuse('state_conflict', { name: `recording ${row.sid}`, value: row.status })
      await deleteRecording(db, row.sid, now)
      const resource = { type: 'recording', id: row.sid, name: `Recording of ${row.call_sid}`, href: null }
      const change = { resource, summary: `Deleted ${row.sid}`, before: presentRecording(row), after: null }
      return { status: 204, change, wake: wakeJobs(row.sid) }
    },
  }),
]

import { counted } from '../../core/domain/text/counted.ts'
import { newId } from '../../core/runtime/ids.ts'
import { partiesOf } from '../../core/state/calls/recording-list.ts'
import {
  countKeptRecordings,
  findRetentionJob,
  insertRetentionJob,
  listRetentionJobs,
  type RetentionJobRow,
  setRetention,
} from '../../core/state/calls/retention-jobs.ts'
import { pageBefore, pageQuery } from '../http/paging.ts'
import { notFound, refuse } from '../http/reply.ts'
import { Count64, Instant, input, nullable, oneOf, pageSchema, resource, type Static, Type } from '../http/schema.ts'
import { presentRecording, Recording } from './recording-present.ts'
import { route } from './route.ts'

/** `RecordingRetentionDays` of the specification. */
const RetentionDays = Type.Unsafe<30 | 90 | 365>({ type: 'integer', enum: [30, 90, 365] })

const RetentionJob = resource('RetentionJob', {
  id: Type.String(),
  state: oneOf('running', 'completed'),
  retention_days: RetentionDays,
  total: Count64,
  done: Count64,
  begun_by: Type.String(),
  created_at: Instant,
  updated_at: Instant,
  finished_at: nullable(Instant),
})

const present = (row: RetentionJobRow): Static<typeof RetentionJob> => ({
  id: row.id,
  state: row.state,
  retention_days: row.retention_days as 30 | 90 | 365,
  total: row.total,
  done: row.done,
  begun_by: row.begun_by,
  created_at: row.created_at,
  updated_at: row.updated_at,
  finished_at: row.finished_at,
})

const RetentionRequest = input('RetentionRequest', { retention_days: RetentionDays })
const MAX_PAGE = 200

export const retention = [
  route({
    method: 'put',
    path: '/recordings/{recording_id}/retention',
    summary: 'Keep a finished recording for a number of days from when it was made',
    scope: 'recordings:manage',
    audit: { kind: 'trunks', action: 'recording.retention_changed' },
    body: RetentionRequest,
    replies: { 200: Recording },
    refusals: ['state_conflict'],
    example: { retention_days: 90 },
    async run({ db, recording, body, now }) {
      if (recording.status !== 'completed')
        return refuse('state_conflict', { name: `recording ${recording.sid}`, value: recording.status })
      const expires_at = await setRetention(db, recording, body.retention_days, now)
      const parties = await partiesOf(db, recording.call_sid)
      const before = presentRecording(recording, parties)
      const after = presentRecording({ ...recording, expires_at, updated_at: now }, parties)
      const resource = { type: 'recording', id: recording.sid, name: `Recording of ${recording.call_sid}`, href: null }
      const change = {
        resource,
        summary: `Keeps ${recording.sid} for ${counted(body.retention_days, 'day')}`,
        before,
        after,
      }
      return { status: 200, body: after, change, wake: ['jobs'] as const }
    },
  }),

  route({
    method: 'get',
    path: '/recordings/retention-jobs',
    summary: 'List the retention jobs of the project, newest first',
    scope: 'recordings:manage',
    query: Type.Object(pageQuery(MAX_PAGE), { additionalProperties: false }),
    replies: { 200: pageSchema(RetentionJob) },
    run: ({ db, project, query }) =>
      pageBefore(query, { read: window => listRetentionJobs(db, project.id, window), present }),
  }),

  route({
    method: 'post',
    path: '/recordings/retention-jobs',
    summary: 'Keep every finished recording of the project for a number of days; a background job does it',
    scope: 'recordings:manage',
    idempotent: true,
    audit: { kind: 'trunks', action: 'recording.retention_changed' },
    body: RetentionRequest,
    replies: { 201: RetentionJob },
    example: { retention_days: 30 },
    async run({ db, project, caller, body, now }) {
      const row = await insertRetentionJob(db, {
        id: `ret_${newId.uuid()}`,
        project_id: project.id,
        state: 'running',
        retention_days: body.retention_days,
        total: await countKeptRecordings(db, project.id),
        done: 0,
        begun_by: caller.actor.name,
        after_created_at: '',
        after_sid: '',
        created_at: now,
        updated_at: now,
        finished_at: null,
      })
      const href = `/v1/recordings/retention-jobs/${row.id}`
      const resource = { type: 'retention_job', id: row.id, name: 'Retention of recordings', href }
      const summary = `Keeps recordings for ${counted(body.retention_days, 'day')}`
      const shown = present(row)
      return {
        status: 201,
        headers: { Location: href },
        body: shown,
        change: { resource, summary, before: null, after: { retention_days: body.retention_days } },
        wake: ['jobs'] as const,
      }
    },
  }),

  route({
    method: 'get',
    path: '/recordings/retention-jobs/{job_id}',
    summary: 'Read the progress of a retention job',
    scope: 'recordings:manage',
    replies: { 200: RetentionJob },
    async run({ db, project, params }) {
      const row = await findRetentionJob(db, project.id, params.job_id)
      return row ? { status: 200, body: present(row) } : notFound(`retention job ${params.job_id.slice(0, 60)}`)
    },
  }),
]

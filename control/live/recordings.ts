import type { RecordingCommand, Sound } from '../../core/domain/calls/control-commands.ts'
import type { PauseBehavior } from '../../core/domain/calls/recording-pauses.ts'
import { iso } from '../../core/runtime/clock.ts'
import { newId } from '../../core/runtime/ids.ts'
import { insertCommand, type RecordingRow } from '../../core/state/calls/calls.ts'
import { findRecordingConsent } from '../../core/state/calls/recording-consent.ts'
import { deleteRecording } from '../../core/state/calls/recording-list.ts'
import { hasRoomForRecording } from '../../core/state/calls/recording-storage.ts'
import { insertRecording, recordingFile, updateRecording } from '../../core/state/calls/recordings.ts'
import { type Refusal, refuse } from '../http/reply.ts'
import type { LiveRequest } from './asked.ts'

/** How a call is to be recorded. */
export interface RecordingRequest {
  readonly channels: 1 | 2
  readonly track: 'both' | 'inbound' | 'outbound'
  readonly trim: boolean
  readonly callback: (Sound & { readonly events: readonly string[] }) | null
}

type Unable = 'call_not_live' | 'recording_consent_required' | 'limit_reached'

/** The most recordings of one call at a time. */
const MAX_AT_ONCE = 10

/** Begins to record a call that talks. The row is written before the answer; a node then records. */
export async function startRecording(
  { trx, services, project_id, now_ms }: LiveRequest,
  call: { readonly sid: string; readonly status: string },
  wish: RecordingRequest,
): Promise<RecordingRow | Refusal<Unable>> {
  if (call.status !== 'in-progress') return refuse('call_not_live', { value: call.sid, limit: call.status })
  if (!(await findRecordingConsent(trx, project_id))) return refuse('recording_consent_required', { name: project_id })
  const quota = services.settings.recordings_quota_bytes
  if (!(await hasRoomForRecording(trx, project_id, quota)))
    return refuse('limit_reached', { name: 'the recordings of the project', value: 'all their bytes', limit: quota })
  const { length } = await running(trx, call.sid)
  if (length >= MAX_AT_ONCE)
    return refuse('limit_reached', { name: `call ${call.sid}`, value: length, limit: MAX_AT_ONCE })
  const sid = newId.recording()
  const file = recordingFile(sid, now_ms)
  const channels = wish.track === 'both' ? wish.channels : 1
  const row = await insertRecording(
    trx,
    {
      sid,
      call_sid: call.sid,
      project_id,
      source: 'StartCallRecordingAPI',
      channels,
      track: wish.track,
      file,
      expires_at: null,
    },
    now_ms,
  )
  await send(trx, row, { act: 'start', sid, file, ...wish }, now_ms)
  return row
}

const RUNNING: readonly RecordingRow['status'][] = ['in-progress', 'paused']

/** Returns the recordings of a call that run, the latest first. */
export const running = (trx: LiveRequest['trx'], call_sid: string): Promise<RecordingRow[]> =>
  trx
    .selectFrom('recording')
    .selectAll()
    .where('call_sid', '=', call_sid)
    .where('status', 'in', RUNNING)
    .orderBy('created_at', 'desc')
    .orderBy('sid')
    .execute()

/** What a running recording is to do. */
export type RecordingAct =
  | { readonly act: 'stop' | 'resume' }
  | { readonly act: 'pause'; readonly behavior: PauseBehavior }

const STATUS = { stop: 'stopped', resume: 'in-progress', pause: 'paused' } as const

/**
 * Stops, pauses or resumes a recording. Returns its row as it will be. One that is so already stays as it is; but a
 * pause of a document, or while a secret is typed, becomes the requester's, so that it does not end with theirs.
 */
export async function changeRecording(
  { trx, now_ms }: LiveRequest,
  row: RecordingRow,
  wanted: RecordingAct,
): Promise<RecordingRow | Refusal<'state_conflict'>> {
  const status = STATUS[wanted.act]
  if (!RUNNING.includes(row.status))
    return refuse('state_conflict', { name: `recording ${row.sid}`, value: row.status })
  if (row.status === status && wanted.act !== 'pause') return row
  await send(trx, row, { ...wanted, sid: row.sid }, now_ms)
  return (await updateRecording(trx, row.sid, { status }, now_ms)) ?? row
}

/** The statuses of recordings that have ended. The others are still being written. */
const FINISHED: readonly RecordingRow['status'][] = ['completed', 'absent']

/** Deletes a finished recording. Its audio is gone for good. */
export async function removeRecording(
  { trx, now_ms }: Pick<LiveRequest, 'trx' | 'now_ms'>,
  row: RecordingRow,
): Promise<Refusal<'state_conflict'> | null> {
  if (!FINISHED.includes(row.status))
    return refuse('state_conflict', { name: `recording ${row.sid}`, value: row.status })
  await deleteRecording(trx, row.sid, iso(now_ms))
  return null
}

const send = (
  trx: LiveRequest['trx'],
  { call_sid }: RecordingRow,
  command: RecordingCommand,
  now_ms: number,
): Promise<void> => insertCommand(trx, call_sid, 'recording', command, now_ms)

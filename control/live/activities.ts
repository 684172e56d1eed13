import type { ActivityCommand, ActivityStart } from '../../core/domain/calls/control-commands.ts'
import { newId } from '../../core/runtime/ids.ts'
import {
  type ActivityRow,
  countActivities,
  endActivity,
  insertActivity,
  listRunningActivities,
} from '../../core/state/calls/activities.ts'
import { type CallRow, insertCommand } from '../../core/state/calls/calls.ts'
import { findRecordingConsent } from '../../core/state/calls/recording-consent.ts'
import { invalid, type Refusal, refuse } from '../http/reply.ts'
import type { LiveRequest } from './asked.ts'

/** What a program starts on a call beside its document, and the messages to the call's client. */

const PREFIXES = { stream: 'MZ', siprec: 'SR', transcription: 'GT', subscription: 'ZY' } as const
/** Of one kind, on one call, at a time. */
const MAX_AT_ONCE = 10
/** On one call, in all its time: each leaves a row. */
const MAX_IN_ALL = 500

type Unable = 'call_not_live' | 'recording_consent_required' | 'limit_reached' | 'state_conflict' | 'validation_failed'

/** Starts an activity of a call that talks. The row is written before the answer; a node then starts it. */
export async function startActivity(
  { trx, project_id, now_ms }: LiveRequest,
  call: CallRow,
  start: ActivityStart,
  name: string | null,
): Promise<ActivityRow | Refusal<Unable>> {
  if (call.status !== 'in-progress') return notLive(call)
  if (start.kind === 'siprec' && !(await findRecordingConsent(trx, project_id)))
    return refuse('recording_consent_required', { name: project_id })
  if (start.kind === 'subscription' && !isOfClient(call)) return notOfClient(call)
  const running = await listRunningActivities(trx, call.sid, start.kind)
  if (running.length >= MAX_AT_ONCE || (await countActivities(trx, call.sid)) >= MAX_IN_ALL)
    return refuse('limit_reached', { name: `call ${call.sid}`, value: running.length, limit: MAX_AT_ONCE })
  if (name !== null && running.some(other => other.name === name))
    return refuse('state_conflict', { name, value: `the name of a ${start.kind} that runs` })
  const sid = newId.sid(PREFIXES[start.kind])
  const row = await insertActivity(trx, { sid, call_sid: call.sid, project_id, kind: start.kind, name }, now_ms)
  await send(trx, call, { ...start, act: 'start', sid, name }, now_ms)
  return row
}

/** Stops an activity. Returns its row as it will be. One that is over stays as it is. */
export async function stopActivity(
  { trx, now_ms }: LiveRequest,
  call: CallRow,
  row: ActivityRow,
): Promise<ActivityRow> {
  if (!isRunning(call, row)) return { ...row, status: 'stopped' }
  await send(trx, call, { act: 'stop', sid: row.sid }, now_ms)
  await endActivity(trx, row.sid, now_ms)
  return { ...row, status: 'stopped' }
}

/** An activity is over with its call, whoever wrote the end of the call. */
const isRunning = (call: CallRow, row: ActivityRow): boolean => row.status === 'in-progress' && call.ended_at === null

/** Sends a message to the client of a call that talks. Returns the sid of the message. */
export async function sendMessage(
  { trx, now_ms }: LiveRequest,
  call: CallRow,
  content: string,
): Promise<string | Refusal<Unable>> {
  if (call.status !== 'in-progress') return notLive(call)
  // Messages go to clients of the project alone: no carrier and no trunk gets what a program writes.
  if (!isOfClient(call)) return notOfClient(call)
  const sid = newId.sid('KX')
  await send(trx, call, { act: 'message', sid, content }, now_ms)
  return sid
}

/** The call's own leg is a telephone in a browser that the project has signed in. */
const isOfClient = (call: CallRow): boolean => call.origin === 'client' || call.to_number.startsWith('client:')

const notLive = (call: CallRow): Refusal<'call_not_live'> =>
  refuse('call_not_live', { value: call.sid, limit: call.status })

const notOfClient = (call: CallRow): Refusal<'validation_failed'> =>
  invalid('/call_id', `${call.sid} is not a call of a client`)

const send = (trx: LiveRequest['trx'], { sid }: CallRow, command: ActivityCommand, now_ms: number): Promise<void> =>
  insertCommand(trx, sid, 'activity', command, now_ms)

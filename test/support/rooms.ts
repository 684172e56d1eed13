import { iso } from '../../core/runtime/clock.ts'
import { newId } from '../../core/runtime/ids.ts'
import { type ActivityRow, insertActivity } from '../../core/state/calls/activities.ts'
import { addParticipant, openConference } from '../../core/state/calls/conferences.ts'
import { addMember, ensureQueue } from '../../core/state/calls/queues.ts'
import type { ControlPlane } from './control-plane.ts'

/** Adds a running conference with a call in it, as a signaling node does. Returns its sid. */
export async function addConference(w: ControlPlane, call_sid: string, name = 'board'): Promise<string> {
  const now_ms = w.clock.now()
  const { project_id, account_sid } = w.demo
  const sid = newId.conference()
  await w.state.transaction(async trx => {
    await openConference(trx, { sid, project_id, account_sid, friendly_name: name, node_id: 'node_1' }, now_ms)
    const here = { conference_sid: sid, call_sid, project_id, label: null, coached_call_sid: null }
    await addParticipant(trx, { ...here, muted: 0, start_on_enter: 1, end_on_exit: 0, joined_at: iso(now_ms) }, now_ms)
  })
  return sid
}

/** Adds a queue in which the call waits, as a signaling node does. Returns its sid. */
export async function addQueue(w: ControlPlane, name: string, call_sid: string | null): Promise<string> {
  const { project_id } = w.demo
  const queue = await w.state.transaction(async trx => {
    const row = await ensureQueue(trx, { project_id, friendly_name: name, max_size: null }, w.clock.now())
    if (call_sid !== null) await addMember(trx, row, call_sid, w.clock.now())
    return row
  })
  return queue.sid
}

/** Adds something that runs on a call, as a signaling node does. Returns its sid. */
export async function addActivity(
  w: ControlPlane,
  call_sid: string,
  kind: ActivityRow['kind'],
  name: string | null = null,
): Promise<string> {
  const sid = newId.sid({ stream: 'MZ', siprec: 'SR', transcription: 'GT', subscription: 'ZY' }[kind])
  const { project_id } = w.demo
  await w.state.transaction(trx => insertActivity(trx, { sid, call_sid, project_id, kind, name }, w.clock.now()))
  return sid
}

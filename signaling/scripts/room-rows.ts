import { iso } from '../../core/runtime/clock.ts'
import { endOrHangUp } from '../../core/state/calls/call-history.ts'
import {
  addParticipant,
  callsOnTheirWay,
  changeConference,
  changeParticipant,
  openConference,
  saveSpeaking,
} from '../../core/state/calls/conferences.ts'
import type { Trx } from '../../core/state/index.ts'
import type { Participant, Room } from './room.ts'
import type { ScriptServices } from './services.ts'

// Writes what happens in a room as rows, for the APIs. The rows keep the order of the room.

/** How long who speaks is held back, so that a lively room writes rarely. */
const SPEAKING_MS = 250

function write(room: Room, { host }: Participant, work: (trx: Trx, now_ms: number) => Promise<unknown>): void {
  const { call } = host
  const now_ms = call.clock.now()
  room.telling = room.telling.then(() => call.persist(trx => work(trx, now_ms)))
}

export function saveJoined({ node_id }: Pick<ScriptServices, 'node_id'>, room: Room, participant: Participant): void {
  const { host, command } = participant
  const { call } = host
  const { project_id } = call
  const conference = {
    sid: room.sid,
    project_id,
    account_sid: call.facts.account_sid,
    friendly_name: room.name,
    node_id,
  }
  write(room, participant, async (trx, now_ms) => {
    await openConference(trx, conference, now_ms)
    const joining = {
      conference_sid: room.sid,
      call_sid: call.sid,
      project_id,
      label: command.label,
      muted: command.muted ? 1 : 0,
      coached_call_sid: command.coach,
      start_on_enter: command.start_on_enter ? 1 : 0,
      end_on_exit: command.end_on_exit ? 1 : 0,
      joined_at: iso(now_ms),
    } as const
    await addParticipant(trx, joining, now_ms)
  })
}

export const saveStarted = (room: Room, by: Participant): void =>
  write(room, by, (trx, now_ms) => changeConference(trx, room.sid, { started_at: iso(now_ms) }, now_ms))

export function saveLeft(room: Room, participant: Participant): void {
  const left = { conference_sid: room.sid, call_sid: participant.host.call.sid }
  write(room, participant, (trx, now_ms) => changeParticipant(trx, left, { left_at: iso(now_ms) }, now_ms))
}

/**
 * Saves the end of a room. A call that the API has added and that has not joined yet is ended, because it would wait
 * alone. Several such calls go on, unless a moderator or the API has ended the room: they meet each other.
 */
export function saveEnded(
  { bus }: Pick<ScriptServices, 'bus'>,
  room: Room,
  by: Participant,
  reason_ended: string,
): void {
  const { sid, project_id } = by.host.call
  let ends_calls = false
  write(room, by, async (trx, now_ms) => {
    const coming = await callsOnTheirWay(trx, project_id, room.name)
    ends_calls = coming.length === 1 || (coming.length > 0 && room.ended_by !== null)
    if (ends_calls) for (const call of coming) await endOrHangUp(trx, call, now_ms)
    await changeConference(trx, room.sid, { ended_at: iso(now_ms), reason_ended, call_sid_ending: sid }, now_ms)
  })
  room.telling = room.telling.then(() => {
    if (ends_calls) bus.ring('commands')
  })
}

/** Saves who speaks, a little later and all at once. */
export function saveVoice({ state }: Pick<ScriptServices, 'state'>, room: Room, { host, speaking }: Participant): void {
  const { call } = host
  const first = room.unsaved.size === 0
  room.unsaved.set(call.sid, speaking)
  if (!first) return
  call.clock.after(SPEAKING_MS, () => {
    const changed = new Map(room.unsaved)
    room.unsaved.clear()
    saveSpeaking(state.db, room.sid, changed).catch(err => call.log.debug({ err }, 'the current speaker was not saved'))
  })
}

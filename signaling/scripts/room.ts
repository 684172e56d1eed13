import type { Sound } from '../../core/domain/calls/control-commands.ts'
import { newId } from '../../core/runtime/ids.ts'
import type { Event, JoinConference } from '../../markup/interpreter/types.ts'
import { MediaRefusal } from '../b2bua/media.ts'
import type { CallRecorder } from './recorder.ts'
import type { SharedScript } from './shared-script.ts'

/** A conference of this node, and what can be said of it without changing it. */

export interface Participant {
  readonly script: SharedScript
  readonly host: SharedScript['host']
  readonly command: JoinConference
  readonly emit: (event: Event) => void
  /** Whether the participant is in the mix. It waits until the room starts. */
  mixed: boolean
  speaking: boolean
  muted: boolean
  /** A participant on hold neither hears the others nor is heard. */
  hold: boolean
  /** What it hears meanwhile; null is the usual music. */
  hold_sound: Sound | null
  /** The announcements that are being played to it. */
  announcements: number
  /** The call of the only participant who hears this one. */
  coach: string | null
  end_on_exit: boolean
  beep: JoinConference['beep']
}

/** The recording of the mix. It belongs to the room and ends with it, whoever leaves. */
interface Recording {
  readonly by: CallRecorder
  readonly id: string
}

export interface Room {
  readonly sid: string
  readonly key: string
  readonly name: string
  readonly participants: Participant[]
  started: boolean
  sequence: number
  /** The callback of the first participant that names one (voice-compat.md §11, Conference). */
  callback: JoinConference['status_callback']
  ended_by: { readonly participant: Participant; readonly reason: string } | null
  /** The participant whose document wants the room recorded, decided when the room starts. */
  recorded_for: Participant | null
  recording: Recording | null
  /** Resolves when the last callback is queued and the last row is written, in the order of the room. */
  telling: Promise<void>
  /** Who began or stopped to speak since that was last saved. */
  readonly unsaved: Map<string, boolean>
}

/** A conference begins with its first participant. A call that the API added knows the sid that the API gave it. */
export function newRoom(key: string, { call }: SharedScript['host'], name: string): Room {
  const { conference } = call.request
  return {
    sid: conference?.friendly_name === name ? conference.sid : newId.conference(),
    key,
    name,
    participants: [],
    started: false,
    sequence: 0,
    callback: null,
    ended_by: null,
    recorded_for: null,
    recording: null,
    telling: Promise.resolve(),
    unsaved: new Map(),
  }
}

export const newParticipant = (
  script: SharedScript,
  command: JoinConference,
  emit: (event: Event) => void,
): Participant => ({
  script,
  host: script.host,
  command,
  emit,
  mixed: false,
  speaking: false,
  muted: command.muted,
  hold: false,
  hold_sound: null,
  announcements: 0,
  coach: command.coach,
  end_on_exit: command.end_on_exit,
  beep: command.beep,
})

/** Reports whether a participant's coming or going is announced with a beep. */
export const beepsOn = ({ beep }: Participant, what: 'onEnter' | 'onExit'): boolean => beep === 'true' || beep === what

export const participantParameters = (participant: Participant): Record<string, string> => {
  const { host, command, coach } = participant
  return {
    CallSid: host.call.sid,
    Muted: String(participant.muted),
    Hold: String(participant.hold),
    Coaching: String(coach !== null),
    ...(coach === null ? {} : { CallSidToCoach: coach }),
    EndConferenceOnExit: String(participant.end_on_exit),
    StartConferenceOnEnter: String(command.start_on_enter),
    ...(command.label === null ? {} : { ParticipantLabel: command.label }),
  }
}

/** The number of a full room (voice-compat.md §15). */
const FULL = 16020

/** Why a room refuses a participant: the number of an error, and a sentence. */
export interface RoomRefusal {
  readonly number: number
  readonly detail: string
}

/** The number of a room that another machine keeps, which does not let a call in. */
export const ELSEWHERE = 16090

/** Returns the refusal of the media worker that has a number. */
export const refusedBy = (error: unknown): RoomRefusal | null =>
  error instanceof MediaRefusal && error.reason === 'conference_full' ? { number: FULL, detail: error.detail } : null

export function roomRefusalOf(room: Room, command: JoinConference): RoomRefusal | null {
  const { participants } = room
  if (command.label !== null && participants.some(other => other.command.label === command.label))
    return { number: 16025, detail: `the label "${command.label}" is in use in this conference` }
  const most = Math.min(command.max_participants, ...participants.map(other => other.command.max_participants))
  if (participants.length >= most) return { number: FULL, detail: `the conference is full with ${participants.length}` }
  if (command.coach !== null && !participants.some(other => other.host.call.sid === command.coach))
    return { number: 13240, detail: `${command.coach} is not in this conference` }
  return null
}

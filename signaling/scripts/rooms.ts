import { rfc2822 } from '../../core/domain/calls/parameters.ts'
import { newId } from '../../core/runtime/ids.ts'
import type { Event, JoinConference } from '../../markup/interpreter/types.ts'
import { MediaRefusal } from '../b2bua/media.ts'
import type { ScriptHost } from '../b2bua/script-host.ts'
import { hold } from './hold.ts'
import { Recorder } from './recorder.ts'
import type { Script } from './script.ts'
import { tell } from './tell.ts'

/** The conferences of this node: participants, start and callbacks. The media worker mixes the audio. */

interface Participant {
  readonly script: Script
  readonly host: ScriptHost
  readonly command: JoinConference
  readonly emit: (event: Event) => void
  /** Whether the participant is in the mix. It waits until the room starts. */
  mixed: boolean
  speaking: boolean
}

/** The recording of the mix. It belongs to the room and ends with it, whoever leaves. */
interface Recording {
  readonly by: Recorder
  readonly id: string
}

interface Room {
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
  /** Resolves when the last callback is queued. Callbacks of several calls are queued in the order of the room. */
  telling: Promise<void>
}

/** The number of a full room (voice-compat.md §15). */
const FULL = 16020

export class Rooms {
  readonly #rooms = new Map<string, Room>()

  get size(): number {
    return this.#rooms.size
  }

  join(script: Script, command: JoinConference, emit: (event: Event) => void): void {
    const { host } = script
    const { account_sid } = host.call.facts
    const key = `${account_sid} ${command.name}`
    const room: Room = this.#rooms.get(key) ?? {
      sid: `CF${newId.uuid().replaceAll('-', '')}`,
      key,
      name: command.name,
      participants: [],
      started: false,
      sequence: 0,
      callback: null,
      ended_by: null,
      recorded_for: null,
      recording: null,
      telling: Promise.resolve(),
    }
    const refusal = refusalOf(room, command)
    if (refusal) {
      emit({ type: 'conference_left', id: command.id, ...refusal })
      return
    }
    this.#rooms.set(key, room)
    const participant: Participant = { script, host, command, emit, mixed: false, speaking: false }
    room.participants.push(participant)
    room.callback ??= command.status_callback
    emit({ type: 'conference_joined', id: command.id, conference_sid: room.sid })
    this.#tell(room, 'participant-join', 'join', participant)
    if (!room.started && room.participants.length >= 2 && room.participants.some(other => other.command.start_on_enter))
      this.#start(room)
    else if (room.started) this.#mix(room, participant)
    else this.#wait(room, participant)
    if (room.started && (command.beep === 'true' || command.beep === 'onEnter')) beep(room, participant)
  }

  /** Takes a script out of its room, by command or because its leg has ended. */
  leave(script: Script, reason = 'participant_left'): void {
    for (const room of this.#rooms.values()) {
      const participant = room.participants.find(other => other.script === script)
      if (participant) this.#out(room, participant, reason)
    }
  }

  /** Reports that a participant has started or stopped speaking. */
  voice(script: Script, speaking: boolean): void {
    for (const room of this.#rooms.values()) {
      const participant = room.participants.find(other => other.script === script)
      if (participant?.mixed && !participant.command.muted && participant.speaking !== speaking) {
        participant.speaking = speaking
        this.#tell(room, `participant-speech-${speaking ? 'start' : 'stop'}`, 'speaker', participant)
      }
    }
  }

  #start(room: Room): void {
    room.started = true
    this.#tell(room, 'conference-start', 'start', null)
    room.recorded_for = room.participants.find(other => other.command.record) ?? null
    for (const participant of room.participants) this.#mix(room, participant)
  }

  /** Records the mix once it has its first participant, when somebody wants it. */
  #record(room: Room): void {
    const wanted = room.recorded_for
    if (!wanted || room.recording || this.#rooms.get(room.key) !== room) return
    const { command, host } = wanted
    // No verb of the script waits for the events of the recording.
    const by = new Recorder(host, () => undefined)
    room.recording = { by, id: `${command.id}-recording` }
    const { trim, recording_callback: callback } = command
    by.startRoom(room.recording.id, room.sid, command.record_channels === 2 ? host.leg : null, { trim, callback })
  }

  #mix(room: Room, participant: Participant): void {
    const { leg, call } = participant.host
    participant.script.waiting.stop()
    const { muted, coach } = participant.command
    const coached = room.participants.find(other => other.host.call.sid === coach)
    leg.session.hub
      .request('conference.join', {
        conference_id: room.sid,
        leg_id: leg.id,
        muted,
        deaf: false,
        heard_by: coached?.host.leg.id ?? null,
      })
      .then(
        () => {
          participant.mixed = true
          this.#record(room)
          if (room.callback?.events.includes('speaker')) listen(participant, true)
        },
        err => {
          if (leg.ended) return
          call.log.warn({ err }, 'a leg could not join its conference')
          this.#out(room, participant, 'participant_left', refusedBy(err))
        },
      )
  }

  #wait(room: Room, participant: Participant): void {
    const { wait } = participant.command
    if (wait === 'silence') return
    const parameters = (): Record<string, string> => ({ ConferenceSid: room.sid, FriendlyName: room.name })
    if (wait === 'default') participant.script.waiting.hear(hold)
    else
      participant.script.waiting.run({
        kind: 'conference_wait',
        target: wait,
        parameters,
        again: false,
        done: () => undefined,
      })
  }

  #out(room: Room, participant: Participant, reason: string, refused: Refused | null = null): void {
    const { leg, call } = participant.host
    const at = room.participants.indexOf(participant)
    if (at < 0) return
    room.participants.splice(at, 1)
    participant.script.waiting.stop()
    if (participant.mixed && !leg.ended) {
      if (room.callback?.events.includes('speaker')) listen(participant, false)
      leg.session.hub
        .request('conference.leave', { leg_id: leg.id })
        .catch(err => call.log.debug({ err }, 'conference.leave'))
    }
    this.#tell(room, 'participant-leave', 'leave', participant, {
      ReasonParticipantLeft: leg.ended ? 'participant_hung_up' : reason,
      ParticipantCallStatus: call.facts.status,
    })
    const { number, detail } = refused ?? { number: null, detail: null }
    participant.emit({ type: 'conference_left', id: participant.command.id, number, detail })
    if (room.started && (participant.command.beep === 'true' || participant.command.beep === 'onExit'))
      beep(room, participant)
    if (participant.command.end_on_exit) {
      room.ended_by ??= { participant, reason: 'participant-with-end-conference-on-exit-left' }
      for (const other of [...room.participants]) this.#out(room, other, 'moderator_ended_conference')
    }
    if (room.participants.length > 0) return
    const { participant: last, reason: why } = room.ended_by ?? { participant, reason: 'last-participant-left' }
    this.#close(room, last, why)
  }

  #close(room: Room, last: Participant, reason: string): void {
    if (this.#rooms.get(room.key) !== room) return
    this.#rooms.delete(room.key)
    if (room.recording) room.recording.by.stop(room.recording.id)
    const { host, command } = last
    const ended_by = {
      CallSidEndingConference: host.call.sid,
      ...(command.label === null ? {} : { ParticipantLabelEndingConference: command.label }),
      ReasonConferenceEnded: reason,
    }
    this.#tell(room, 'conference-end', 'end', null, ended_by, last)
  }

  #tell(
    room: Room,
    event: string,
    selected: string,
    about: Participant | null,
    extra: Readonly<Record<string, string>> = {},
    by: Participant | undefined = about ?? room.participants[0],
  ): void {
    const { callback } = room
    if (!callback?.events.includes(selected) || !by) return
    const { call } = by.host
    const parameters = {
      AccountSid: call.facts.account_sid,
      ConferenceSid: room.sid,
      FriendlyName: room.name,
      SequenceNumber: String(room.sequence++),
      Timestamp: rfc2822(call.ctx.clock.now()),
      StatusCallbackEvent: event,
      ...(about ? participantParameters(about) : {}),
      ...extra,
    }
    // Callbacks keep the order of the room across its calls.
    room.telling = room.telling.then(() => tell(call, callback, parameters, room.sid))
  }
}

function listen({ host: { leg, call } }: Participant, enabled: boolean): void {
  leg.session.hub
    .request('voice.detect', { leg_id: leg.id, enabled })
    .catch(err => call.log.debug({ err }, 'voice.detect'))
}

const participantParameters = ({ host, command }: Participant): Record<string, string> => ({
  CallSid: host.call.sid,
  Muted: String(command.muted),
  Hold: 'false',
  Coaching: String(command.coach !== null),
  ...(command.coach === null ? {} : { CallSidToCoach: command.coach }),
  EndConferenceOnExit: String(command.end_on_exit),
  StartConferenceOnEnter: String(command.start_on_enter),
  ...(command.label === null ? {} : { ParticipantLabel: command.label }),
})

/** Why a room refuses a participant: the number of an error, and a sentence. */
interface Refused {
  readonly number: number
  readonly detail: string
}

/** Returns the refusal of the media worker that has a number. */
const refusedBy = (error: unknown): Refused | null =>
  error instanceof MediaRefusal && error.reason === 'conference_full' ? { number: FULL, detail: error.detail } : null

function refusalOf(room: Room, command: JoinConference): Refused | null {
  const { participants } = room
  if (command.label !== null && participants.some(other => other.command.label === command.label))
    return { number: 16025, detail: `the label "${command.label}" is in use in this conference` }
  const most = Math.min(command.max_participants, ...participants.map(other => other.command.max_participants))
  if (participants.length >= most) return { number: FULL, detail: `the conference is full with ${participants.length}` }
  if (command.coach !== null && !participants.some(other => other.host.call.sid === command.coach))
    return { number: 13240, detail: `${command.coach} is not in this conference` }
  return null
}

const BEEP = { kind: 'tone' as const, hz: [800], on_ms: 150, off_ms: 0, total_ms: 150 }

/** Plays a beep to all other participants in the mix. */
function beep(room: Room, about: Participant): void {
  for (const { host, mixed } of room.participants) {
    if (!mixed || host === about.host || host.leg.ended) continue
    host.leg.session.hub
      .request('play.start', {
        leg_id: host.leg.id,
        play_id: `${host.leg.id}-beep-${newId.uuid()}`,
        sources: [BEEP],
        loop: 1,
      })
      .catch(err => host.call.log.debug({ err }, 'no beep'))
  }
}

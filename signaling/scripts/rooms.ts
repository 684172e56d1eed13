import { rfc2822 } from '../../core/domain/calls/parameters.ts'
import { iso } from '../../core/runtime/clock.ts'
import { newId } from '../../core/runtime/ids.ts'
import { changeConference, claimConference, keeperOfConference } from '../../core/state/calls/conferences.ts'
import type { Event, JoinConference } from '../../markup/interpreter/types.ts'
import { hold } from './hold.ts'
import { CallRecorder } from './recorder.ts'
import {
  beepsOn,
  newParticipant,
  newRoom,
  type Participant,
  participantParameters,
  type Room,
  type RoomRefusal,
  refusedBy,
  roomRefusalOf,
} from './room.ts'
import { saveEnded, saveJoined, saveLeft, saveStarted, saveVoice } from './room-rows.ts'
import type { ScriptServices } from './services.ts'
import type { Away, SharedScript } from './shared-script.ts'
import { queueCallback } from './tell.ts'

/**
 * The conferences of this node: participants, start and callbacks. The media worker mixes the audio. A node claims the
 * name of a conference before its first participant enters it: the APIs may begin the same one at that moment. Where
 * several machines share the state, calls of the other machines are its guests (`away`).
 */

/** Why a participant left whom the API took out, as `ReasonParticipantLeft` has it. */
export const KICKED = 'participant_updated_via_api'

export class Rooms {
  readonly #services: ScriptServices
  readonly #rooms = new Map<string, Room>()
  /** Claims that are being written, by key of the room. */
  readonly #claims = new Map<string, Promise<string | null>>()
  /** Who waits for a claim. */
  readonly #coming = new Map<SharedScript, { readonly key: string; readonly left: () => void }>()

  constructor(services: ScriptServices) {
    this.#services = services
  }

  get size(): number {
    return this.#rooms.size
  }

  /** `away` is called when another machine keeps the conference. */
  join(script: SharedScript, command: JoinConference, emit: (event: Event) => void, away: Away): void {
    const { host } = script
    const { account_sid } = host.call.facts
    const key = `${account_sid} ${command.name}`
    const room = this.#rooms.get(key)
    if (room) this.#take(room, script, command, emit)
    else void this.#come(key, script, command, emit, away)
  }

  /** Brings a script into a room that this node must claim first. It may leave meanwhile. */
  async #come(
    key: string,
    script: SharedScript,
    command: JoinConference,
    emit: (event: Event) => void,
    away: Away,
  ): Promise<void> {
    const left = (): void => emit({ type: 'conference_left', id: command.id, number: null, detail: null })
    this.#coming.set(script, { key, left })
    const keeper = await this.#claim(key, script, command.name)
    const room = this.#rooms.get(key)
    if (this.#coming.delete(script)) {
      if (keeper !== null && !room) away(keeper)
      else this.#take(room ?? newRoom(key, script.host, command.name), script, command, emit)
    } else if (room) this.#forget(room)
  }

  /** Makes a room of this node, or returns the machine that keeps it. */
  #claim(key: string, { host }: SharedScript, name: string): Promise<string | null> {
    const running = this.#claims.get(key)
    if (running) return running
    const { state, clock, node_id, config } = this.#services
    const room = newRoom(key, host, name)
    const { project_id, facts, log } = host.call
    const about = { sid: room.sid, project_id, account_sid: facts.account_sid, friendly_name: name, node_id }
    const shared = config.database_url !== null
    const claimed = state
      .transaction(async trx => {
        const keeper = shared ? await keeperOfConference(trx, about, clock.now()) : null
        return { keeper, sid: keeper === null ? await claimConference(trx, about, clock.now()) : room.sid }
      })
      .catch(err => {
        // Callers meet on their machine at least.
        log.warn({ err, conference: name }, 'a conference could not be claimed')
        return { keeper: null, sid: room.sid }
      })
      .then(({ keeper, sid }) => {
        this.#claims.delete(key)
        if (keeper === null) this.#rooms.set(key, { ...room, sid })
        return keeper
      })
    this.#claims.set(key, claimed)
    return claimed
  }

  /** Ends a room that everybody left before entering it. */
  #forget(room: Room): void {
    if (room.participants.length > 0 || [...this.#coming.values()].some(({ key }) => key === room.key)) return
    this.#rooms.delete(room.key)
    const { state, clock } = this.#services
    const now_ms = clock.now()
    const ended = { ended_at: iso(now_ms), reason_ended: 'last-participant-left' }
    // Its claim is void after a minute anyway.
    void state.transaction(trx => changeConference(trx, room.sid, ended, now_ms)).catch(() => undefined)
  }

  #take(room: Room, script: SharedScript, command: JoinConference, emit: (event: Event) => void): void {
    const { key } = room
    const refusal = roomRefusalOf(room, command)
    if (refusal) {
      emit({ type: 'conference_left', id: command.id, ...refusal })
      return
    }
    this.#rooms.set(key, room)
    const participant = newParticipant(script, command, emit)
    room.participants.push(participant)
    room.callback ??= command.status_callback
    saveJoined(this.#services, room, participant)
    emit({ type: 'conference_joined', id: command.id, conference_sid: room.sid })
    this.tell(room, 'participant-join', 'join', participant)
    if (!room.started && room.participants.length >= 2 && room.participants.some(other => other.command.start_on_enter))
      this.#start(room, participant)
    else if (room.started) this.#enter(room, participant)
    else this.wait(room, participant)
    if (room.started && beepsOn(participant, 'onEnter')) beep(room, participant)
  }

  /** Takes a script out of its room, by command or because its leg has ended. */
  leave(script: SharedScript, reason = 'participant_left'): void {
    const coming = this.#coming.get(script)
    this.#coming.delete(script)
    coming?.left()
    for (const room of this.#rooms.values()) {
      const participant = room.participants.find(other => other.script === script)
      if (participant) this.out(room, participant, reason)
    }
  }

  /** Reports that a participant has started or stopped speaking. */
  voice(script: SharedScript, speaking: boolean): void {
    for (const room of this.#rooms.values()) {
      const participant = room.participants.find(other => other.script === script)
      if (participant?.mixed && !participant.muted && !participant.hold && participant.speaking !== speaking) {
        participant.speaking = speaking
        saveVoice(this.#services, room, participant)
        this.tell(room, `participant-speech-${speaking ? 'start' : 'stop'}`, 'speaker', participant)
      }
    }
  }

  #start(room: Room, by: Participant): void {
    room.started = true
    saveStarted(room, by)
    this.tell(room, 'conference-start', 'start', null)
    room.recorded_for = room.participants.find(other => other.command.record) ?? null
    for (const participant of room.participants) this.#enter(room, participant)
  }

  /** Records the mix once it has its first participant, when somebody wants it. */
  #record(room: Room): void {
    const wanted = room.recorded_for
    if (!wanted || room.recording || this.#rooms.get(room.key) !== room) return
    const { command, host } = wanted
    // No verb of the script waits for the events of the recording.
    const by = new CallRecorder(this.#services, host, () => undefined)
    room.recording = { by, id: `${command.id}-recording` }
    const { trim, recording_callback: callback } = command
    by.startRoom(room.recording.id, room.sid, command.record_channels === 2 ? host.leg : null, { trim, callback })
  }

  /** Puts a participant into the mix. One that the API has put on hold meanwhile keeps its music. */
  #enter(room: Room, participant: Participant): void {
    if (!participant.hold) participant.script.waiting.stop()
    this.#mix(room, participant).then(
      () => {
        participant.mixed = true
        const { sid } = participant.host.call
        for (const other of room.participants) if (other.mixed && other.coach === sid) this.remix(room, other)
        this.#record(room)
        listen(participant, true)
      },
      err => {
        const { leg, call } = participant.host
        if (leg.ended) return
        call.log.warn({ err }, 'a leg could not join its conference')
        this.out(room, participant, 'participant_left', refusedBy(err))
      },
    )
  }

  /** Tells the media worker what has changed about a participant in the mix. */
  remix(room: Room, participant: Participant): void {
    const { leg, call } = participant.host
    this.#mix(room, participant).catch(err => {
      if (leg.ended) return
      call.log.warn({ err }, 'a participant could not be changed')
      this.out(room, participant, 'participant_left')
    })
  }

  /** Tells the media worker how a participant takes part. A coach is mute once the coached participant has left. */
  #mix(room: Room, { host: { leg }, muted, hold: held, coach }: Participant): Promise<unknown> {
    const coached = room.participants.find(other => other.host.call.sid === coach)
    return leg.session.hub.request('conference.join', {
      conference_id: room.sid,
      leg_id: leg.id,
      muted: muted || held || (coach !== null && !coached),
      deaf: held,
      heard_by: coached?.host.leg.id ?? null,
    })
  }

  /** Plays what a participant hears until the room starts. */
  wait(room: Room, participant: Participant): void {
    const { wait } = participant.command
    if (wait === 'silence') return
    const parameters = (): Record<string, string> => ({ ConferenceSid: room.sid, FriendlyName: room.name })
    if (wait === 'default') participant.script.waiting.hear(hold)
    else
      participant.script.waiting.run({
        kind: 'conference_wait',
        entry: { kind: 'request', ...wait },
        parameters,
        again: false,
        done: () => undefined,
      })
  }

  /** Takes a participant out of its room, which ends with its last one, and with one that ends it. */
  out(room: Room, participant: Participant, reason: string, refused: RoomRefusal | null = null): void {
    const { leg, call } = participant.host
    const at = room.participants.indexOf(participant)
    if (at < 0) return
    room.participants.splice(at, 1)
    saveLeft(room, participant)
    participant.script.waiting.stop()
    if (participant.mixed && !leg.ended) {
      listen(participant, false)
      leg.session.hub
        .request('conference.leave', { leg_id: leg.id })
        .catch(err => call.log.debug({ err }, 'a leg did not leave its conference'))
    }
    this.tell(room, 'participant-leave', 'leave', participant, {
      ReasonParticipantLeft: leg.ended ? 'participant_hung_up' : reason,
      ParticipantCallStatus: call.facts.status,
    })
    const { number, detail } = refused ?? { number: null, detail: null }
    participant.emit({ type: 'conference_left', id: participant.command.id, number, detail })
    if (room.started && beepsOn(participant, 'onExit')) beep(room, participant)
    const kicked = reason === KICKED ? 'kicked' : 'left'
    if (participant.end_on_exit) {
      room.ended_by ??= { participant, reason: `participant-with-end-conference-on-exit-${kicked}` }
      this.empty(room, 'moderator_ended_conference')
    }
    if (room.participants.length > 0) return
    const { participant: last, reason: why } = room.ended_by ?? { participant, reason: `last-participant-${kicked}` }
    this.#close(room, last, why)
  }

  /** Takes everybody out. */
  empty(room: Room, reason: string): void {
    for (const participant of [...room.participants]) this.out(room, participant, reason)
  }

  /** Returns the conference of a sid; undefined when it does not run on this node. */
  find(sid: string): Room | undefined {
    return [...this.#rooms.values()].find(room => room.sid === sid)
  }

  #close(room: Room, last: Participant, reason: string): void {
    if (this.#rooms.get(room.key) !== room) return
    this.#rooms.delete(room.key)
    saveEnded(this.#services, room, last, reason)
    if (room.recording) room.recording.by.stop(room.recording.id)
    const { host, command } = last
    const ended_by = {
      CallSidEndingConference: host.call.sid,
      ...(command.label === null ? {} : { ParticipantLabelEndingConference: command.label }),
      ReasonConferenceEnded: reason,
    }
    this.tell(room, 'conference-end', 'end', null, ended_by, last)
  }

  /** Queues a callback of the room when its document selects the event. */
  tell(
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
      Timestamp: rfc2822(call.clock.now()),
      StatusCallbackEvent: event,
      ...(about ? participantParameters(about) : {}),
      ...extra,
    }
    // Callbacks keep the order of the room across its calls.
    room.telling = room.telling.then(() => queueCallback(call, callback, parameters, room.sid))
  }
}

/** The media worker reports when the participant begins and stops speaking. */
function listen({ host: { leg, call } }: Participant, enabled: boolean): void {
  leg.session.hub
    .request('voice.detect', { leg_id: leg.id, enabled })
    .catch(err => call.log.debug({ err }, 'the voice detection of a participant was not changed'))
}

const BEEP = { kind: 'tone' as const, hz: [800], on_ms: 150, off_ms: 0, total_ms: 150 }

/** Plays a beep to all others who hear the mix. It would end the music on hold, or an announcement. */
function beep(room: Room, about: Participant): void {
  for (const { host, mixed, hold: held, announcements } of room.participants) {
    if (!mixed || held || announcements > 0 || host === about.host || host.leg.ended) continue
    host.leg.session.hub
      .request('play.start', {
        leg_id: host.leg.id,
        play_id: `${host.leg.id}-beep-${newId.uuid()}`,
        sources: [BEEP],
        loop: 1,
      })
      .catch(err => host.call.log.debug({ err }, 'a beep was not played'))
  }
}

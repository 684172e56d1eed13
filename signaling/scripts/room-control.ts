import type { ConferenceCommand, Sound } from '../../core/domain/calls/control-commands.ts'
import { escapeXml } from '../../core/domain/text/xml.ts'
import { createCookieJar } from '../../core/domain/webhooks/cookies.ts'
import type { Entry } from '../../markup/interpreter/types.ts'
import type { ScriptContext } from './context.ts'
import { type DocumentRequester, fetchDocument } from './documents.ts'
import { hold } from './hold.ts'
import type { Participant, Room } from './room.ts'
import { saveVoice } from './room-rows.ts'
import { KICKED, type Rooms } from './rooms.ts'

/** How long the document of an announcement may take. */
const ANNOUNCE_MS = 15_000

type Change = Extract<ConferenceCommand, { readonly act: 'change' }>

/** Carries out what the APIs ask of a conference. Returns the outcome for the command's row. */
export function controlRoom(ctx: ScriptContext, command: ConferenceCommand): string {
  const { rooms } = ctx
  const room = rooms.find(command.conference_sid)
  if (!room) return 'not_live'
  if (command.act === 'end') {
    end(rooms, room)
    return 'done'
  }
  const { call_sid } = command
  const participants = room.participants.filter(({ host }) => call_sid === null || host.call.sid === call_sid)
  const [first] = participants
  if (!first) return 'not_live'
  if (command.act === 'kick') rooms.out(room, first, KICKED)
  else if (command.act === 'announce') void announce(ctx, room, participants, command.sound)
  else change(ctx, room, first, command)
  return 'done'
}

function end(rooms: Rooms, room: Room): void {
  const [participant] = room.participants
  if (participant) room.ended_by ??= { participant, reason: 'conference-ended-via-api' }
  rooms.empty(room, KICKED)
}

function change(ctx: ScriptContext, room: Room, participant: Participant, wanted: Change): void {
  const { rooms } = ctx
  const before = { muted: participant.muted, hold: participant.hold }
  participant.muted = wanted.muted ?? before.muted
  participant.hold = wanted.hold ?? before.hold
  participant.end_on_exit = wanted.end_on_exit ?? participant.end_on_exit
  if (wanted.coached_call_sid !== undefined) participant.coach = wanted.coached_call_sid
  if (wanted.beep_on_exit !== undefined) participant.beep = beepOf(participant, wanted.beep_on_exit)
  if (wanted.hold === true) {
    participant.hold_sound = wanted.hold_sound ?? null
    hear(room, participant)
  }
  if (!participant.hold && before.hold) {
    participant.script.waiting.stop()
    hearAgain(rooms, room, participant)
  }
  if ((participant.muted || participant.hold) && participant.speaking) {
    participant.speaking = false
    saveVoice(ctx, room, participant)
  }
  if (participant.mixed) rooms.remix(room, participant)
  const tell = (event: string, selected: string): void =>
    rooms.tell(room, `participant-${event}`, selected, participant)
  if (participant.muted !== before.muted) tell(participant.muted ? 'mute' : 'unmute', 'mute')
  if (participant.hold !== before.hold) tell(participant.hold ? 'hold' : 'unhold', 'hold')
  const modified = wanted.coached_call_sid ?? wanted.end_on_exit ?? wanted.beep_on_exit
  if (modified !== undefined || wanted.coached_call_sid === null) tell('modify', 'modify')
}

/** The moments of beeps, with or without the one of the exit. */
function beepOf({ beep }: Participant, on_exit: boolean): Participant['beep'] {
  const on_enter = beep === 'true' || beep === 'onEnter'
  if (on_enter) return on_exit ? 'true' : 'onEnter'
  return on_exit ? 'onExit' : 'false'
}

/** Plays music to a participant on hold, until the hold ends. */
function hear(room: Room, { script, hold_sound }: Participant): void {
  script.waiting.stop()
  if (hold_sound === null) {
    script.waiting.hear(hold)
    return
  }
  script.waiting.run({
    kind: 'conference_wait',
    entry: { kind: 'request', ...hold_sound },
    parameters: () => about(room),
    again: true,
    done: () => undefined,
  })
}

/** Goes on with what a participant hears beside the mix, or before it begins. */
function hearAgain(rooms: Rooms, room: Room, participant: Participant): void {
  if (!room.participants.includes(participant)) return
  if (participant.hold) hear(room, participant)
  else if (!room.started) rooms.wait(room, participant)
}

const about = ({ sid, name }: Room): Record<string, string> => ({ ConferenceSid: sid, FriendlyName: name })

/** Plays a document or a sound once to each participant. One request fetches it for all of them. */
async function announce(ctx: ScriptContext, room: Room, hearers: readonly Participant[], sound: Sound): Promise<void> {
  const { rooms } = ctx
  const [first] = hearers
  if (!first) return
  const found = await entryOf(ctx, first, room, sound)
  const parameters = { AnnounceUrl: sound.url }
  if ('failed' in found) {
    first.host.call.event('warning', found.number, { detail: `an announcement failed: ${found.failed}` })
    const why = { ReasonAnnouncementFailed: found.failed }
    rooms.tell(
      room,
      'announcement-fail',
      'announcement',
      hearers.length > 1 ? null : first,
      { ...parameters, ...why },
      first,
    )
    return
  }
  const present = hearers.filter(participant => room.participants.includes(participant))
  await Promise.all(present.map(participant => play(rooms, room, participant, found.entry)))
  const one = present.length > 1 ? null : (present[0] ?? null)
  rooms.tell(room, 'announcement-end', 'announcement', one, parameters, present[0] ?? first)
}

/** Resolves when the participant has heard the entry, or has left. */
function play(rooms: Rooms, room: Room, participant: Participant, entry: Entry): Promise<void> {
  const { waiting } = participant.script
  return new Promise(resolve => {
    const replaced = (): void => {
      participant.announcements--
      resolve()
    }
    const done = (): void => {
      hearAgain(rooms, room, participant)
      replaced()
    }
    waiting.stop()
    participant.announcements++
    waiting.run({ kind: 'whisper', entry, parameters: () => about(room), again: false, done, replaced })
  })
}

type Found = { readonly entry: Entry } | { readonly failed: string; readonly number: number }

async function entryOf(ctx: ScriptContext, { host }: Participant, room: Room, { url, method }: Sound): Promise<Found> {
  const abort = new AbortController()
  const limit = host.call.clock.after(ANNOUNCE_MS, () => abort.abort())
  const requester: DocumentRequester = {
    ctx,
    call: host.call,
    cookies: createCookieJar(),
    signal: abort.signal,
    parameters: () => about(room),
  }
  const { result } = await fetchDocument(requester, {
    type: 'fetch',
    id: 'announcement',
    document: 'wait',
    url,
    method,
    parameters: {},
  })
  limit.cancel()
  if (!result.ok) return { failed: result.detail, number: result.number }
  const text = result.content_type.startsWith('audio/')
    ? `<Response><Play>${escapeXml(result.final_url)}</Play></Response>`
    : result.text
  return { entry: { kind: 'inline', text } }
}

import type { ConferenceCommand, Sound } from '../../core/domain/calls/control-commands.ts'
import { iso } from '../../core/runtime/clock.ts'
import { endOrHangUp, findProjectCall } from '../../core/state/calls/call-history.ts'
import { insertCommand } from '../../core/state/calls/calls.ts'
import {
  type ConferenceRow,
  changeConference,
  changeParticipant,
  conferenceStatus,
  findParticipant,
  listParticipants,
  type ParticipantRow,
} from '../../core/state/calls/conferences.ts'
import { invalid, notFound, type Refusal, refuse } from '../http/reply.ts'
import type { LiveRequest } from './asked.ts'

/** Ends a conference: everybody leaves it, and calls that are still on their way to it end. */
export async function endConference(
  asked: LiveRequest,
  conference: ConferenceRow,
): Promise<Refusal<'state_conflict'> | null> {
  const { trx, now_ms } = asked
  if (conferenceStatus(conference) === 'completed') return over(conference)
  const participants = await listParticipants(trx, conference.sid)
  const [inside] = participants.filter(({ joined_at }) => joined_at !== null)
  for (const { call_sid, joined_at } of participants) if (joined_at === null) await hangUp(asked, call_sid)
  if (inside) await send(asked, inside.call_sid, { act: 'end', conference_sid: conference.sid })
  else await changeConference(trx, conference.sid, { ended_at: iso(now_ms), reason_ended: ENDED_BY_API }, now_ms)
  return null
}

const ENDED_BY_API = 'conference-ended-via-api'

/** Plays a sound to everybody in a conference. */
export async function announce(
  asked: LiveRequest,
  conference: ConferenceRow,
  sound: Sound,
): Promise<Refusal<'state_conflict'> | null> {
  const [inside] = (await listParticipants(asked.trx, conference.sid)).filter(({ joined_at }) => joined_at !== null)
  if (!inside) return over(conference)
  await send(asked, inside.call_sid, { act: 'announce', conference_sid: conference.sid, call_sid: null, sound })
  return null
}

const over = ({ sid, ...row }: ConferenceRow): Refusal<'state_conflict'> =>
  refuse('state_conflict', { name: `conference ${sid}`, value: conferenceStatus({ sid, ...row }) })

/** A change of a participant. Absent members stay as they are. */
export interface ParticipantChange {
  readonly muted?: boolean
  readonly hold?: boolean
  readonly hold_sound?: Sound | null
  readonly coached_call_sid?: string | null
  readonly end_on_exit?: boolean
  readonly beep_on_exit?: boolean
  /** Played to the participant alone. */
  readonly announce?: Sound
}

/** Changes a participant. Returns its row as it will be: the node carries the change out within moments. */
export async function changeInConference(
  asked: LiveRequest,
  participant: ParticipantRow,
  { announce: sound, ...change }: ParticipantChange,
): Promise<ParticipantRow | Refusal<'state_conflict' | 'validation_failed' | 'not_found'>> {
  const { trx, now_ms } = asked
  const { conference_sid, call_sid } = participant
  if (participant.joined_at === null) return notThere(participant)
  const coached = change.coached_call_sid
  if (coached === call_sid) return notCoachable(coached)
  if (coached && !(await findParticipant(trx, conference_sid, coached))) return notCoachable(coached)
  if (Object.keys(change).length > 0) {
    const { muted, hold, end_on_exit } = change
    const columns = {
      ...(muted === undefined ? {} : { muted: asFlag(muted) }),
      ...(hold === undefined ? {} : { hold: asFlag(hold) }),
      ...(end_on_exit === undefined ? {} : { end_on_exit: asFlag(end_on_exit) }),
      ...(coached === undefined ? {} : { coached_call_sid: coached }),
    }
    await changeParticipant(trx, participant, columns, now_ms)
    await send(asked, call_sid, { act: 'change', conference_sid, call_sid, ...change })
  }
  if (sound) await send(asked, call_sid, { act: 'announce', conference_sid, call_sid, sound })
  return (await findParticipant(trx, conference_sid, call_sid)) ?? notFound(`participant ${call_sid}`)
}

export const asFlag = (on: boolean): 0 | 1 => (on ? 1 : 0)

const notCoachable = (call_sid: string): Refusal<'validation_failed'> =>
  invalid('/coached_call_id', `${call_sid.slice(0, 60)} is not another call in this conference`)

const notThere = ({ call_sid }: ParticipantRow): Refusal<'state_conflict'> =>
  refuse('state_conflict', { name: `participant ${call_sid}`, value: 'not in the conference yet' })

/** Takes a participant out of a conference. A call that is still on its way to it ends. */
export async function kick(asked: LiveRequest, { conference_sid, call_sid, joined_at }: ParticipantRow): Promise<void> {
  if (joined_at === null) await hangUp(asked, call_sid)
  else await send(asked, call_sid, { act: 'kick', conference_sid, call_sid })
}

async function hangUp({ trx, project_id, now_ms }: LiveRequest, call_sid: string): Promise<void> {
  const call = await findProjectCall(trx, project_id, call_sid)
  if (call && call.ended_at === null) await endOrHangUp(trx, call, now_ms)
}

const send = ({ trx, now_ms }: LiveRequest, call_sid: string, command: ConferenceCommand): Promise<void> =>
  insertCommand(trx, call_sid, 'conference', command, now_ms)

import type { CallRequest } from '../../core/domain/calls/request.ts'
import { problemOf } from '../../core/domain/reasons/index.ts'
import { escapeXml } from '../../core/domain/text/xml.ts'
import { newId } from '../../core/runtime/ids.ts'
import { placeCall } from '../../core/state/calls/calls.ts'
import {
  type ConferenceRow,
  conferenceStatus,
  expectParticipant,
  findParticipant,
  type ParticipantRow,
} from '../../core/state/calls/conferences.ts'
import { findOwnedNumber } from '../../core/state/configuration/numbers.ts'
import { findVoiceAccount } from '../../core/state/people/voice-accounts.ts'
import { invalid, notFound, type Refusal, refuse } from '../http/reply.ts'
import type { LiveRequest } from './asked.ts'
import { asFlag } from './conferences.ts'

/** Returns the document of a call that joins a conference. Undefined attributes of <Conference> are left out. */
export function conferenceDocument(
  attributes: Readonly<Record<string, string | undefined>>,
  friendly_name: string,
): string {
  const written = Object.entries(attributes)
    .flatMap(([name, value]) => (value === undefined ? [] : [` ${name}="${escapeXml(value)}"`]))
    .join('')
  return `<Response><Dial><Conference${written}>${escapeXml(friendly_name)}</Conference></Dial></Response>`
}

/** Who is called, and how the call joins. */
interface Invitation {
  readonly from: string
  readonly to: string
  readonly label: string | null
  readonly muted: boolean
  readonly start_on_enter: boolean
  readonly end_on_exit: boolean
  readonly timeout_seconds: number
}

/**
 * Calls a number for a conference that runs. The call is one of the voice-calls API: it passes the same admission, with
 * the project's policy, ceilings and money, and is refused by the same reasons.
 */
export async function inviteParticipant(
  { trx, project_id, now_ms }: LiveRequest,
  { sid, friendly_name, ...conference }: ConferenceRow,
  { from, to, label, muted, start_on_enter, end_on_exit, timeout_seconds }: Invitation,
): Promise<ParticipantRow | Refusal<'state_conflict' | 'validation_failed' | 'not_found'>> {
  const status = conferenceStatus({ sid, friendly_name, ...conference })
  if (status === 'completed') return refuse('state_conflict', { name: `conference ${sid}`, value: status })
  const account = await findVoiceAccount(trx, project_id)
  if (account?.status !== 'active') return notFound('voice account')
  const number = await findOwnedNumber(trx, project_id, from)
  if (!number) return invalid('/from', 'is not a number of the project')
  if (label !== null && (await findParticipant(trx, sid, label)))
    return invalid('/label', 'is in use in this conference')
  const attributes = {
    participantLabel: label ?? undefined,
    muted: String(muted),
    startConferenceOnEnter: String(start_on_enter),
    endConferenceOnExit: String(end_on_exit),
  }
  const markup = conferenceDocument(attributes, friendly_name)
  const request: CallRequest = { markup, timeout_seconds, conference: { sid, friendly_name } }
  const call_sid = newId.call()
  const placed = await placeCall(trx, {
    sid: call_sid,
    project_id,
    account_sid: account.account_sid,
    from_number: from,
    to_number: to,
    caller_id: null,
    number_id: number.id,
    application_id: number.route_kind === 'voice_application' ? number.route_id : null,
    request: JSON.stringify(request),
    conference_sid: sid,
    now_ms,
  })
  if (!('row' in placed)) return invalid('/to', `is refused: ${problemOf(placed.refused, placed.facts).detail}`)
  const expected = { conference_sid: sid, call_sid, project_id, label, coached_call_sid: null, joined_at: null }
  const flags = { muted: asFlag(muted), start_on_enter: asFlag(start_on_enter), end_on_exit: asFlag(end_on_exit) }
  return expectParticipant(trx, { ...expected, ...flags }, now_ms)
}

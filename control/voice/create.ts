import type { CallRequest, RecordRequest } from '../../core/domain/calls/request.ts'
import { newId } from '../../core/runtime/ids.ts'
import { findRecordingConsent } from '../../core/state/calls/recording-consent.ts'
import { hasRoomForRecording } from '../../core/state/calls/recording-storage.ts'
import { findOwnedNumber, type NumberRow } from '../../core/state/configuration/numbers.ts'
import type { Db, Trx } from '../../core/state/index.ts'
import type { RecordingRequest } from '../live/recordings.ts'
import { forReason, isVoiceRefusal, numbered, type VoiceRefusal } from './errors.ts'
import { flagOf, inlineMarkup, methodOf, namesOf, oddFlag, urlOf, wholeNumber, wordOf } from './fields.ts'
import type { Form } from './form.ts'
import { readMachineDetection } from './machine-detection.ts'
import { onceByKey } from './once-by-key.ts'
import { type Placing, place } from './place.ts'
import { presentVoiceCall } from './present.ts'
import type { VoiceContext } from './route.ts'

/**
 * Handles POST Calls.json. Returns the first error in the order of voice-compat.md section 3. The call is queued as a
 * row before the answer is sent; a signaling node then places it.
 */
export async function createCall(context: VoiceContext & { readonly form: Form }) {
  const queue = async (db: Db | Trx, asked: AskedCall) => {
    const row = await place(db, placingOf(context, asked))
    return isVoiceRefusal(row) ? row : presentVoiceCall(row)
  }
  const answer = await onceByKey(context, {
    prepare: () => readCall(context),
    make: queue,
    makeWithoutKey: asked => queue(context.services.state.db, asked),
  })
  // A repeat dials nothing.
  if (!isVoiceRefusal(answer) && answer.headers === undefined) context.services.bus.ring('commands')
  return answer
}

/** A call that a form asks for. */
export interface AskedCall {
  readonly parties: Parties
  readonly request: CallRequest
}

export async function readCall(context: VoiceContext & { readonly form: Form }): Promise<AskedCall | VoiceRefusal> {
  const parties = await readParties(context)
  if (isVoiceRefusal(parties)) return parties
  const request = await readRequest(context, parties)
  return isVoiceRefusal(request) ? request : { parties, request }
}

interface Parties {
  readonly to: string
  readonly from: string
  readonly number: NumberRow
  readonly caller_id: string | null
}

const NUMBER = /^\+?[0-9]{7,15}$/

async function readParties({
  form,
  account,
  services,
}: VoiceContext & { readonly form: Form }): Promise<Parties | VoiceRefusal> {
  const to = form.text('To')
  if (to === undefined) return numbered(21201, 'To is required.')
  if (!NUMBER.test(to))
    return numbered(21211, `To ${shown(to)} is not a phone number of 7 to 15 digits.${plusHint(to)}`)
  const from = form.text('From')
  if (from === undefined) return numbered(21213, 'From is required.')
  if (!NUMBER.test(from))
    return numbered(21212, `From ${shown(from)} is not a phone number of 7 to 15 digits.${plusHint(from)}`)
  const application = form.text('ApplicationSid')
  if (application !== undefined) return forReason('application_sid_unsupported', { value: shown(application) })
  const owned = (number: string) => findOwnedNumber(services.state.db, account.project_id, number)
  const number = await owned(from)
  if (!number) return notOwned('From', from)
  const caller_id = form.text('CallerId') ?? null
  if (caller_id !== null) {
    const same_format = [to, from, caller_id].every(one => one.startsWith('+') === to.startsWith('+'))
    if (!NUMBER.test(caller_id) || !same_format)
      return forReason('caller_format_mismatch', { value: shown(caller_id), limit: 'To and From' })
    if (!(await owned(caller_id))) return notOwned('CallerId', caller_id)
  }
  return { to, from, number, caller_id }
}

/** `curl -d To=+234…` sends a blank: that is what a plus sign means in a form. */
const plusHint = (value: string): string =>
  /^ +[0-9]+$/.test(value) ? ' A plus sign is written %2B in a form (curl: --data-urlencode).' : ''

const notOwned = (field: string, value: string): VoiceRefusal =>
  numbered(21210, `${field} ${value} is not a number that the project owns.`, {
    details: { reason: 'caller_not_owned' },
  })

const DEFAULT_TIMEOUT_SECONDS = 60
const MAX_TIMEOUT_SECONDS = 600
const SEND_DIGITS = /^[0-9A-Da-d#*wW]{1,32}$/
const STATUS_EVENTS = ['initiated', 'ringing', 'answered', 'completed']

async function readRequest(
  context: VoiceContext & { readonly form: Form },
  parties: Parties,
): Promise<CallRequest | VoiceRefusal> {
  const { form } = context
  const url = urlOf(form, 'Url')
  if (isVoiceRefusal(url)) return url
  // A Url makes inline markup irrelevant, even when that does not parse (spec, "Create a call").
  const markup = url === null ? inlineMarkup(form) : null
  if (isVoiceRefusal(markup)) return markup
  if (url === null && markup === null) return numbered(21205, 'One of Url and the inline markup is required.')
  const fallback_url = urlOf(form, 'FallbackUrl')
  if (isVoiceRefusal(fallback_url)) return fallback_url
  const status_callback = urlOf(form, 'StatusCallback')
  if (isVoiceRefusal(status_callback)) return status_callback
  const given_events = namesOf(form, 'StatusCallbackEvent')
  const timeout = wholeNumber(form.text('Timeout') ?? String(DEFAULT_TIMEOUT_SECONDS))
  if (timeout === null) return numbered(21208, 'Timeout is not a whole number of seconds.')
  const limit_text = form.text('TimeLimit')
  const time_limit_seconds = limit_text === undefined ? null : wholeNumber(limit_text)
  if (limit_text !== undefined && (time_limit_seconds === null || time_limit_seconds < 1))
    return numbered(13216, 'TimeLimit is not a whole number of seconds above 0.')
  const send_digits = form.text('SendDigits') ?? null
  if (send_digits !== null && !SEND_DIGITS.test(send_digits))
    return numbered(21206, 'SendDigits is at most 32 characters of 0-9, A-D, a-d, #, *, w, W.')
  const record = await readRecord(context)
  if (isVoiceRefusal(record)) return record
  const machine_detection = readMachineDetection(form)
  if (isVoiceRefusal(machine_detection)) return machine_detection
  return {
    url,
    method: methodOf(form, 'Method'),
    markup,
    fallback_url,
    fallback_method: methodOf(form, 'FallbackMethod'),
    status_callback,
    status_callback_method: methodOf(form, 'StatusCallbackMethod'),
    // Unknown names are accepted and select nothing.
    status_callback_events:
      given_events.length === 0 ? ['completed'] : STATUS_EVENTS.filter(one => given_events.includes(one)),
    timeout_seconds: Math.min(MAX_TIMEOUT_SECONDS, Math.max(1, timeout)),
    caller_id: parties.caller_id,
    time_limit_seconds,
    send_digits,
    record,
    machine_detection,
  }
}

const RECORDING_EVENTS = ['in-progress', 'completed', 'absent']

/** Reads the recording fields. `Record=true` records the whole call and requires the project's recording consent. */
async function readRecord({
  form,
  account,
  services,
}: VoiceContext & { readonly form: Form }): Promise<RecordRequest | null | VoiceRefusal> {
  const odd = oddFlag(form, ['Record'])
  if (odd) return odd
  if (!flagOf(form, 'Record')) return null
  const wish = recordRequest(form)
  if (isVoiceRefusal(wish)) return wish
  const consent = await findRecordingConsent(services.state.db, account.project_id)
  if (!consent) return forReason('recording_consent_required', { name: account.project_name })
  const { recordings_quota_bytes } = services.settings
  if (!(await hasRoomForRecording(services.state.db, account.project_id, recordings_quota_bytes)))
    return numbered(20403, 'The recordings of the project have reached their quota: delete some of them.', {
      details: { reason: 'limit_reached' },
    })
  return wish
}

/** Reads how a recording is made and whom its callbacks go to. */
function recordRequest(form: Form) {
  const status_callback = urlOf(form, 'RecordingStatusCallback')
  if (isVoiceRefusal(status_callback)) return status_callback
  const channels = wordOf(form, 'RecordingChannels', ['mono', 'dual'], 'mono')
  if (isVoiceRefusal(channels)) return channels
  const track = wordOf(form, 'RecordingTrack', ['both', 'inbound', 'outbound'], 'both')
  if (isVoiceRefusal(track)) return track
  const trim = wordOf(form, 'Trim', ['do-not-trim', 'trim-silence'], 'do-not-trim')
  if (isVoiceRefusal(trim)) return trim
  const events = namesOf(form, 'RecordingStatusCallbackEvent')
  const odd = events.find(one => !RECORDING_EVENTS.includes(one))
  if (odd !== undefined)
    return numbered(20001, `RecordingStatusCallbackEvent ${shown(odd)} is not one of ${RECORDING_EVENTS.join(', ')}.`)
  return {
    channels,
    track,
    trim: trim === 'trim-silence',
    status_callback,
    status_callback_method: methodOf(form, 'RecordingStatusCallbackMethod'),
    status_callback_events: events.length === 0 ? ['completed'] : events,
  }
}

/** Reads the fields with which a recording of a live call begins. */
export function readRecording(form: Form): RecordingRequest | VoiceRefusal {
  const wish = recordRequest(form)
  if (isVoiceRefusal(wish)) return wish
  const { channels, track, trim, status_callback: url, status_callback_method: method } = wish
  const callback = url === null ? null : { url, method, events: wish.status_callback_events }
  return { channels: channels === 'dual' ? 2 : 1, track, trim, callback }
}

/** What place() needs of a call that was asked for. */
export const placingOf = (
  { account, now_ms }: Pick<VoiceContext, 'account' | 'now_ms'>,
  { parties: { number, to, from }, request }: AskedCall,
): Placing => ({ sid: newId.call(), account, to, from, number, request, now_ms })

const shown = (text: string): string => text.slice(0, 60)

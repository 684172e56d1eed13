import type { Turn } from '../../interpreter/turn.ts'
import type { JoinConference } from '../../interpreter/types.ts'
import { choice, custom, events, flag, ignored, inert, integer, method, pattern, text, url } from '../attributes.ts'
import { RECORDING_CALLBACK, recordingCallback } from '../recording-callback.ts'
import { type Node, shape } from '../shape.ts'

const EVENTS = ['start', 'end', 'join', 'leave', 'mute', 'hold', 'modify', 'speaker', 'announcement']

const ATTRIBUTES = {
  muted: flag(false, 13230),
  beep: choice(['true', 'false', 'onEnter', 'onExit'], { default: 'true', number: 13235, caseless: true }),
  startConferenceOnEnter: flag(true, 13232),
  endConferenceOnExit: flag(false, 13231, 'document'),
  participantLabel: text({ max: 128, number: 16023, effect: 'document' }),
  /** Empty means silence; null means hold music. */
  waitUrl: custom<string | null>('URL, or empty for silence', { default: null, number: 13233 }, value =>
    value === '' ? '' : url().read(value),
  ),
  waitMethod: method(13234),
  maxParticipants: integer({ default: 250, min: 2, max: 250 }),
  record: choice(['do-not-record', 'record-from-start'], {
    default: 'do-not-record',
    number: 13217,
    aliases: { true: 'record-from-start', false: 'do-not-record' },
  }),
  trim: choice(['trim-silence', 'do-not-trim'], { default: 'trim-silence', number: 13239, effect: 'document' }),
  coach: pattern(/^CA[0-9a-f]{32}$/, 'CallSid', { default: null, number: 13240, effect: 'document' }),
  // The mixer adapts its buffers by itself.
  jitterBufferSize: inert(choice(['off', 'small', 'medium', 'large'], { default: 'large' })),
  region: ignored(),
  statusCallback: url(),
  statusCallbackMethod: method(),
  statusCallbackEvent: events(EVENTS, [], 21626),
  ...RECORDING_CALLBACK,
  eventCallbackUrl: ignored(),
}

export const conference = shape('Conference', ATTRIBUTES, {
  content: 'text',
  inspect({ text, element }, report) {
    if (text !== '' && text.length <= 128) return
    const detail = text === '' ? 'the name of the conference is missing' : 'the name of the conference is over 128 long'
    report({ rule: 'content', number: 13237, effect: 'child', detail, place: element, element: 'Conference' })
  },
})

/** Returns the command that joins the conference of this noun. `dual` records the participant apart from the mix. */
export function joinCommand(node: Node<typeof ATTRIBUTES>, id: string, turn: Turn, dual: boolean): JoinConference {
  const { attributes } = node
  const status = turn.target(attributes.statusCallback, attributes.statusCallbackMethod, 11100)
  const wait = attributes.waitUrl === '' ? null : turn.target(attributes.waitUrl, attributes.waitMethod, 13233)
  return {
    type: 'join_conference',
    id,
    name: node.text,
    muted: attributes.muted,
    beep: attributes.beep,
    start_on_enter: attributes.startConferenceOnEnter,
    end_on_exit: attributes.endConferenceOnExit,
    label: attributes.participantLabel,
    wait: attributes.waitUrl === '' ? 'silence' : (wait ?? 'default'),
    max_participants: attributes.maxParticipants,
    record: attributes.record === 'record-from-start',
    ...(dual ? { record_channels: 2 } : {}),
    trim: attributes.trim === 'trim-silence',
    coach: attributes.coach,
    status_callback: status && { ...status, events: attributes.statusCallbackEvent },
    recording_callback: recordingCallback(attributes, turn),
  }
}

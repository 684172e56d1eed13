import type { Move, Turn } from '../interpreter/turn.ts'
import type { Event, RecordEnded } from '../interpreter/types.ts'
import { choice, flag, integer, method, pattern, url } from './attributes.ts'
import { RECORDING_CALLBACK, recordingCallback } from './recording-callback.ts'
import type { Node } from './shape.ts'
import { next, stay, verb } from './verb.ts'

/** The longest recording with `transcribe`. */
const TRANSCRIBED_SECONDS = 120

const ATTRIBUTES = {
  action: url(),
  method: method(13610),
  timeout: integer({ default: 5, min: 0, max: 14_400, number: 13611 }),
  finishOnKey: pattern(/^[0-9*#]*$/, 'any of 0-9 * #, or empty', { default: '1234567890*#', number: 13613 }),
  maxLength: integer({ default: null, min: 2, max: 14_400, number: 13612 }),
  playBeep: flag(true, 13616),
  trim: choice(['trim-silence', 'do-not-trim'], { default: 'trim-silence', number: 13699 }),
  ...RECORDING_CALLBACK,
  transcribe: flag(false, 13614),
  transcribeCallback: url(13257),
}

type RecordNode = Node<typeof ATTRIBUTES>

interface RecordState {
  readonly record: string
  /** The caller has hung up: only the last request remains. */
  readonly gone: boolean
}

export const record = verb('Record', ATTRIBUTES, {
  inspect({ attributes, element }, report) {
    if (!attributes.transcribe || (attributes.maxLength ?? 0) <= TRANSCRIBED_SECONDS) return
    const detail = `with transcribe at most ${TRANSCRIBED_SECONDS} seconds are recorded`
    report({
      rule: 'bad_value',
      number: 13615,
      detail,
      place: element.attributes['maxLength'] ?? element,
      element: 'Record',
    })
  },

  begin(node, turn) {
    const { attributes } = node
    const transcribing = attributes.transcribe && turn.facts.speech.transcriber
    if (attributes.transcribe && !transcribing) turn.warn(13617, 'no transcription engine is configured')
    const longest = attributes.maxLength ?? (attributes.transcribe ? TRANSCRIBED_SECONDS : 3600)
    const id = turn.id('record')
    turn.emit({
      type: 'record',
      id,
      beep: attributes.playBeep,
      silence_seconds: attributes.timeout,
      finish_on_key: attributes.finishOnKey,
      max_seconds: attributes.transcribe ? Math.min(longest, TRANSCRIBED_SECONDS) : longest,
      trim: attributes.trim === 'trim-silence',
      callback: recordingCallback(attributes, turn),
      transcribe: transcribing ? { callback: turn.target(attributes.transcribeCallback, 'POST', 13257) } : null,
    })
    return stay({ record: id, gone: false } satisfies RecordState)
  },

  on(node, turn, state: RecordState, event: Event) {
    if (event.type !== 'record_ended' || event.id !== state.record) return undefined
    reportTranscription(node, turn, event)
    if (state.gone || event.reason === 'hangup') return farewell(node, turn, event)
    // The verbs after Record run only when nothing was recorded.
    if (event.recording === null) return next
    const { action, method } = node.attributes
    if (turn.resolve(action ?? '') === undefined) {
      // The last verb of a document ends the call in any case.
      const surprises = action !== null || node.element !== turn.document.verbs.at(-1)
      if (surprises)
        turn.warn(11100, 'the action of <Record> is relative or missing in a document without a base; the call ends')
      return { to: 'hangup' }
    }
    return { to: 'request', document: 'action', url: action, method, parameters: parametersOf(event, event.key ?? '') }
  },

  cut(_node, turn, state) {
    turn.emit({ type: 'stop_record', id: state.record })
  },

  // The recorder ends with the leg; the action is due when its file is complete.
  gone: (_node, _turn, state) => stay({ ...state, gone: true }),
})

function parametersOf({ recording }: RecordEnded, digits: string): Record<string, string> {
  if (recording === null) return { Digits: digits }
  return {
    RecordingUrl: recording.url,
    RecordingSid: recording.sid,
    RecordingDuration: String(recording.duration_seconds),
    Digits: digits,
  }
}

function farewell(node: RecordNode, turn: Turn, event: RecordEnded): Move {
  const { action, method } = node.attributes
  const url = action ?? turn.document.url
  if (event.recording !== null) turn.farewell(url, method, parametersOf(event, 'hangup'))
  return { to: 'done', outcome: 'gone' }
}

/** Reports a failed transcription to the callback when no engine is configured: its receiver must not wait forever. */
function reportTranscription(node: RecordNode, turn: Turn, { recording }: RecordEnded): void {
  const { transcribe, transcribeCallback } = node.attributes
  if (!transcribe || turn.facts.speech.transcriber || recording === null) return
  const target = turn.target(transcribeCallback, 'POST', 13257)
  if (!target) return
  turn.emit({
    type: 'callback',
    about: 'transcription',
    ...target,
    parameters: { TranscriptionStatus: 'failed', RecordingSid: recording.sid, RecordingUrl: recording.url },
  })
}

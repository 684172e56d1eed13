import type { Turn } from '../interpreter/turn.ts'
import type { Activity } from '../interpreter/types.ts'
import { ignored } from './attributes.ts'
import { namedEngine } from './engine.ts'
import { recording, siprec, transcription } from './nouns/activities.ts'
import { parametersOf } from './nouns/parameters.ts'
import { stream, streamCommand } from './nouns/stream.ts'
import { recordingCallback } from './recording-callback.ts'
import { isNode, type Node } from './shape.ts'
import { next, verb } from './verb.ts'

/** Starts background activities, which last until Stop or the end of the leg. Its action is never requested. */
export const start = verb(
  'Start',
  { action: ignored('URL'), method: ignored('GET, POST') },
  {
    nouns: [stream, recording, siprec, transcription],
    stray: 14300,
    inspect(node, report) {
      if (node.nouns.length > 0) return
      const detail = '<Start> has nothing to start'
      report({ rule: 'missing', number: 12200, detail, place: node.element, element: 'Start' })
    },
    begin(node, turn) {
      for (const noun of node.nouns) begin(noun, turn)
      return next
    },
  },
)

function begin(noun: Node, turn: Turn): void {
  const name = typeof noun.attributes['name'] === 'string' ? noun.attributes['name'] : null
  const kind = noun.shape.name as Activity['kind']
  if (name !== null && turn.activities.some(other => other.kind === kind && other.name === name)) {
    turn.warn(12200, `a ${kind} named "${name}" is already going on; this one is not started`, noun.element)
    return
  }
  const id = turn.id(kind.toLowerCase())
  if (startOne(noun, id, name, turn)) turn.activities = [...turn.activities, { id, kind, name }]
}

/** Starts an activity and returns whether it started. If not, notes the reason and reports it to the callback. */
function startOne(noun: Node, id: string, name: string | null, turn: Turn): boolean {
  if (isNode(stream, noun)) {
    const command = streamCommand(noun, id, false, turn)
    if (command) turn.emit(command)
    return command !== null
  }
  if (isNode(recording, noun)) {
    const { channels, track, trim } = noun.attributes
    turn.emit({
      type: 'start_recording',
      id,
      source: 'StartCallRecordingAPI',
      name,
      child: null,
      channels: channels === 'dual' ? 2 : 1,
      track,
      trim: trim === 'trim-silence',
      callback: recordingCallback(noun.attributes, turn),
    })
    return true
  }
  if (isNode(siprec, noun)) return startSiprec(noun, id, name, turn)
  if (isNode(transcription, noun)) return startTranscription(noun, id, name, turn)
  return false
}

function startSiprec(noun: Node<typeof siprec.attributes>, id: string, name: string | null, turn: Turn): boolean {
  const { connectorName, track, statusCallback, statusCallbackMethod } = noun.attributes
  const status_callback = turn.target(statusCallback, statusCallbackMethod, 11100)
  const connectors = turn.facts.siprec_connectors
  const connector = connectorName === null ? connectors[0] : connectors.find(known => known === connectorName)
  if (connector !== undefined) {
    const parameters = parametersOf(noun)
    turn.emit({ type: 'start_siprec', id, name, connector, track, parameters, status_callback })
    return true
  }
  const detail = `no SIP recording server ${connectorName === null ? '' : `"${connectorName}" `}is configured`
  turn.warn(12200, detail, noun.element)
  if (status_callback) {
    const parameters = { ...named('SiprecName', name), SiprecEvent: 'siprec-error', SiprecError: detail }
    turn.emit({ type: 'callback', about: 'siprec', ...status_callback, parameters })
  }
  return false
}

function startTranscription(
  noun: Node<typeof transcription.attributes>,
  id: string,
  name: string | null,
  turn: Turn,
): boolean {
  const { attributes } = noun
  const status_callback = turn.target(attributes.statusCallbackUrl, attributes.statusCallbackMethod, 11100)
  const named_engine = attributes.transcriptionEngine
  const engine = namedEngine(named_engine, 'stt', turn)
  if (named_engine !== null && engine === null && named_engine.toLowerCase() !== turn.facts.speech.providers?.stt)
    turn.warn(
      12200,
      `transcriptionEngine "${named_engine}" is not an engine of this installation, which serves instead`,
      noun.element,
    )
  // Pocketsphinx hears phrases, not what people say freely.
  if (engine === null ? turn.facts.speech.transcriber : engine !== 'pocketsphinx') {
    turn.emit({
      type: 'start_transcription',
      id,
      name,
      track: attributes.track,
      language: attributes.languageCode,
      inbound_label: attributes.inboundTrackLabel,
      outbound_label: attributes.outboundTrackLabel,
      partial_results: attributes.partialResults,
      model: attributes.speechModel,
      hints: attributes.hints,
      profanity_filter: attributes.profanityFilter,
      punctuation: attributes.enableAutomaticPunctuation,
      ...(engine === null ? {} : { engine }),
      status_callback,
    })
    return true
  }
  const detail = 'no transcription engine is configured'
  turn.warn(12200, detail, noun.element)
  if (status_callback) {
    const parameters = {
      ...named('TranscriptionName', name),
      TranscriptionEvent: 'transcription-error',
      TranscriptionError: detail,
    }
    turn.emit({ type: 'callback', about: 'transcription', ...status_callback, parameters })
  }
  return false
}

function named(parameter: string, name: string | null): Record<string, string> {
  return name === null ? {} : { [parameter]: name }
}

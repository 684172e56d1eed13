import type { Turn } from '../../interpreter/turn.ts'
import type { StartRelay } from '../../interpreter/types.ts'
import { choice, flag, hints, ignored, languageTag, socketUrl, text } from '../attributes.ts'
import { namedEngine } from '../engine.ts'
import { isNode, type Node, shape } from '../shape.ts'
import { inspectParameters, parameter, parametersOf } from './parameters.ts'

/** The number of an attribute that cannot be used. */
const UNUSABLE = 64101
const INPUTS = ['none', 'dtmf', 'speech', 'any'] as const
const provider = () => text({ max: 100, number: UNUSABLE })

const interrupts = () =>
  choice(INPUTS, { default: 'any', number: UNUSABLE, caseless: true, aliases: { true: 'any', false: 'none' } })

/** The settings that apply when the session changes to a language. */
const language = shape('Language', {
  code: languageTag({ default: null, number: UNUSABLE }),
  ttsProvider: provider(),
  voice: provider(),
  transcriptionProvider: provider(),
  speechModel: provider(),
})

const ATTRIBUTES = {
  url: socketUrl(UNUSABLE),
  welcomeGreeting: text({ number: UNUSABLE }),
  welcomeGreetingInterruptible: interrupts(),
  language: languageTag({ default: 'en-US', number: UNUSABLE }),
  ttsLanguage: languageTag({ default: null, number: UNUSABLE }),
  transcriptionLanguage: languageTag({ default: null, number: UNUSABLE }),
  ttsProvider: provider(),
  voice: provider(),
  transcriptionProvider: provider(),
  speechModel: provider(),
  interruptible: interrupts(),
  interruptSensitivity: choice(['high', 'medium', 'low'], { default: 'high', number: UNUSABLE, caseless: true }),
  dtmfDetection: flag(false, UNUSABLE),
  reportInputDuringAgentSpeech: choice(INPUTS, { default: 'none', number: UNUSABLE, caseless: true }),
  preemptible: flag(false, UNUSABLE),
  hints: hints(UNUSABLE),
  profanityFilter: flag(true, UNUSABLE),
  noiseSuppression: flag(false, UNUSABLE),
  debug: ignored(),
  elevenlabsTextNormalization: ignored(),
  intelligenceService: ignored(),
}

/** Hands the call to an application that exchanges text with the platform (voice-compat.md §12.6). */
export const conversationRelay = shape('ConversationRelay', ATTRIBUTES, {
  nouns: [language, parameter],
  inspect(node, report) {
    inspectParameters(node, report)
    const written = node.element.attributes['url']?.value.trim()
    if (node.attributes.url !== null || (written !== undefined && written !== '')) return
    const detail = '<ConversationRelay> has no url; it is not started'
    report({ rule: 'missing', number: UNUSABLE, detail, place: node.element, element: 'ConversationRelay' })
  },
})

/** Returns the command of a ConversationRelay; null when it cannot start. The document's findings include the fault. */
export function relayCommand(node: Node<typeof ATTRIBUTES>, id: string, turn: Turn): StartRelay | null {
  const { attributes } = node
  if (attributes.url === null) return null
  const languages = node.nouns.filter(noun => isNode(language, noun))
  for (const noun of [node, ...languages]) noteProviders(noun, turn)
  const engines = {
    tts_engine: namedEngine(attributes.ttsProvider, 'tts', turn),
    stt_engine: namedEngine(attributes.transcriptionProvider, 'stt', turn),
  }
  return {
    type: 'start_relay',
    id,
    url: attributes.url,
    greeting: attributes.welcomeGreeting,
    greeting_interruptible: attributes.welcomeGreetingInterruptible,
    tts_language: attributes.ttsLanguage ?? attributes.language,
    transcription_language: attributes.transcriptionLanguage ?? attributes.language,
    voice: attributes.voice ?? turn.facts.speech.default_voice,
    model: attributes.speechModel,
    languages: languages.flatMap(({ attributes: { code, voice, speechModel: model } }) =>
      code === null ? [] : [{ code, voice, model }],
    ),
    interruptible: attributes.interruptible,
    sensitivity: attributes.interruptSensitivity,
    keys: attributes.dtmfDetection,
    report: attributes.reportInputDuringAgentSpeech,
    preemptible: attributes.preemptible,
    hints: attributes.hints,
    profanity_filter: attributes.profanityFilter,
    ...(attributes.noiseSuppression ? { noise_suppression: true } : {}),
    ...(engines.tts_engine === null ? {} : { tts_engine: engines.tts_engine }),
    ...(engines.stt_engine === null ? {} : { stt_engine: engines.stt_engine }),
    parameters: parametersOf(node),
  }
}

/** A provider that is no engine of this installation is replaced by the one that serves the call. */
function noteProviders({ attributes, element }: Node, turn: Turn): void {
  const { providers } = turn.facts.speech
  const kinds = { ttsProvider: 'tts', transcriptionProvider: 'stt' } as const
  for (const [name, kind] of Object.entries(kinds)) {
    const named = attributes[name]
    if (typeof named !== 'string' || named.toLowerCase() === providers?.[kind]) continue
    if (element.name === 'ConversationRelay' && namedEngine(named, kind, turn) !== null) continue
    turn.warn(UNUSABLE, `${name} "${named}" is not the engine of this installation, which serves instead`, element)
  }
}

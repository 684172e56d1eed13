import type { Move, Turn } from '../interpreter/turn.ts'
import type { Event, PlayItem, Recognize } from '../interpreter/types.ts'
import { custom, flag, hints, ignored, integer, languageTag, method, text, url } from './attributes.ts'
import { pause } from './pause.ts'
import { play, urlItem } from './play.ts'
import { noteFailures } from './playing.ts'
import { say, speechItem } from './say.ts'
import { isNode, type Node } from './shape.ts'
import { next, stay, verb } from './verb.ts'

const ATTRIBUTES = {
  action: url(),
  method: method(13312),
  input: custom<'dtmf' | 'speech' | 'both'>('dtmf, speech, dtmf speech', { default: 'dtmf', number: 13326 }, readInput),
  timeout: custom<number | null>('seconds from 0, auto', { default: 5, number: 13313 }, readSeconds),
  finishOnKey: custom<string>('one of 0-9 # *, or empty', { default: '#', number: 13310 }, readFinishKey),
  numDigits: integer({ default: null, min: 1, number: 13314 }),
  actionOnEmptyResult: flag(false, 13338),
  speechTimeout: custom<number | null | undefined>(
    'seconds from 0, auto',
    { default: undefined, number: 13327 },
    readSeconds,
  ),
  maxSpeechTime: integer({ default: 60, min: 1, max: 600, number: 13328 }),
  language: languageTag({ default: 'en-US', number: 13331 }),
  hints: hints(13330),
  speechModel: text({ max: 100, number: 13334 }),
  enhanced: flag(false, 13334),
  profanityFilter: flag(true, 13333),
  bargeIn: flag(true, 13332),
  noiseSuppression: flag(false),
  sensitive: flag(false),
  debug: ignored(),
  partialResultCallback: url(13329),
  partialResultCallbackMethod: method(13329),
}

type GatherNode = Node<typeof ATTRIBUTES>

interface GatherState {
  /** Id of the prompt while it plays. */
  readonly play: string | null
  /** Id of the timer. It starts at the end of the prompt, or when speech stops that, and restarts with each key. */
  readonly timer: string | null
  /** Id of the recognizer while it listens. */
  readonly recognize: string | null
  /** The recognizer hears something. Its result is awaited also when the time is over. */
  readonly speaking?: boolean
  readonly keys: boolean
  readonly digits: string
  /** Id of the pause of the call's recordings while a secret is typed or said. */
  readonly hush?: string
}

/**
 * Gather's numbers for the faults of nested verbs: 13321 voice of Say, 13322 loop of Say or Play, 13325 type of Play.
 */
const NESTED: Readonly<Record<number, number>> = { 13511: 13321, 13510: 13322, 13410: 13322, 13420: 13325 }

export const gather = verb('Gather', ATTRIBUTES, {
  kinds: ['call', 'whisper', 'queue_wait'],
  nouns: [say, play, pause],
  stray: 13320,
  renumber: number => NESTED[number] ?? number,
  inspect(node, report) {
    const written = node.element.attributes['finishOnKey']
    if (written && written.value.trim().length > 1) {
      const detail = 'finishOnKey is one key; "#" is used'
      report({ rule: 'bad_value', number: 13311, detail, place: written, element: 'Gather' })
    }
    const partial = node.element.attributes['partialResultCallback']
    if (node.attributes.sensitive && partial && node.given.has('partialResultCallback')) {
      const detail = 'partialResultCallback of a sensitive <Gather> is not called'
      report({ rule: 'no_effect', number: 13329, detail, place: partial, element: 'Gather' })
    }
    for (const noun of node.nouns) {
      if (!noun.given.has('digits')) continue
      const detail = 'digits of a <Play> inside <Gather> are not sent'
      report({ rule: 'no_effect', number: 13430, detail, place: noun.element, element: 'Play' })
    }
  },

  begin(node, turn) {
    const { input } = node.attributes
    const speech = input !== 'dtmf' && turn.facts.speech.recognizer
    if (input !== 'dtmf' && !speech) {
      const instead = input === 'both' ? 'only keys are taken' : 'the next verb runs'
      turn.warn(13343, `no speech recognizer is configured; ${instead}`)
      if (input === 'speech') return next
    }
    const hush = node.attributes.sensitive ? { hush: turn.id('hush') } : {}
    if (hush.hush !== undefined) turn.emit({ type: 'pause_recordings', id: hush.hush, behavior: 'silence', by: 'key' })
    const keys = input !== 'speech'
    if (keys) turn.emit({ type: 'digits_on' })
    const items = promptItems(node, turn)
    const play = items.length > 0 ? turn.id('play') : null
    // With bargeIn="false" recognition starts after the prompt, so that speech cannot cut the prompt.
    const recognize = speech && (play === null || node.attributes.bargeIn) ? startRecognizer(node, turn) : null
    if (play !== null) turn.emit({ type: 'play', id: play, items })
    const timer = play === null ? startClock(node, turn) : null
    return stay({ play, timer, recognize, keys, digits: '', ...hush } satisfies GatherState)
  },

  on(node, turn, state: GatherState, event: Event) {
    switch (event.type) {
      case 'digit':
        return state.keys ? onKey(node, turn, state, event.digit) : undefined
      case 'play_ended':
        if (event.id !== state.play) return undefined
        noteFailures(turn, event, number => NESTED[number] ?? number)
        return stay(promptOver(node, turn, state))
      case 'timer':
        return event.id === state.timer ? timeIsOver(node, turn, { ...state, timer: null }) : undefined
      case 'speech_started':
        return event.id === state.recognize ? stay(speechBegins(node, turn, state)) : undefined
      case 'speech_result':
        if (event.id !== state.recognize) return undefined
        return event.text === '' ? onNoise(node, turn, state) : finishSpeech(node, turn, state, event)
      case 'speech_failed': {
        if (event.id !== state.recognize) return undefined
        turn.warn(13343, `speech recognition failed: ${event.detail}`)
        const silent = { ...state, recognize: null, speaking: false }
        if (!state.keys) return finish(node, turn, silent, '')
        return stay(state.play === null && state.timer === null ? { ...silent, timer: startClock(node, turn) } : silent)
      }
      default:
        return undefined
    }
  },

  cut(_node, turn, state) {
    stopAll(turn, state)
  },
})

function promptItems(node: GatherNode, turn: Turn): PlayItem[] {
  const items: PlayItem[] = []
  for (const noun of node.nouns) {
    if (isNode(say, noun)) push(items, speechItem(noun, turn))
    else if (isNode(play, noun)) push(items, urlItem(noun, turn))
    else if (isNode(pause, noun)) items.push({ kind: 'silence', ms: noun.attributes.length * 1000 })
  }
  return items
}

function push(items: PlayItem[], item: PlayItem | null): void {
  if (item) items.push(item)
}

function startRecognizer(node: GatherNode, turn: Turn): string {
  const { attributes } = node
  const id = turn.id('recognize')
  // Without speechTimeout, the pause that ends speech is as long as `timeout` (voice-compat.md §10).
  const pauseSeconds = attributes.speechTimeout === undefined ? attributes.timeout : attributes.speechTimeout
  const command: Recognize = {
    type: 'recognize',
    id,
    language: attributes.language,
    hints: attributes.hints,
    model: attributes.speechModel,
    enhanced: attributes.enhanced,
    profanity_filter: attributes.profanityFilter,
    ...(attributes.noiseSuppression ? { noise_suppression: true } : {}),
    speech_timeout_seconds: pauseSeconds,
    max_speech_seconds: attributes.maxSpeechTime,
    // Partial results go through the outbox, which would store sensitive text.
    partial: attributes.sensitive
      ? null
      : turn.target(attributes.partialResultCallback, attributes.partialResultCallbackMethod, 13329),
  }
  turn.emit(command)
  return id
}

function startClock(node: GatherNode, turn: Turn): string {
  const id = turn.id('timer')
  turn.emit({ type: 'start_timer', id, ms: (node.attributes.timeout ?? 5) * 1000 })
  return id
}

function stopPromptAndClock(turn: Turn, state: GatherState): GatherState {
  if (state.play !== null) turn.emit({ type: 'stop_play', id: state.play })
  if (state.timer !== null) turn.emit({ type: 'cancel_timer', id: state.timer })
  return { ...state, play: null, timer: null }
}

function stopAll(turn: Turn, state: GatherState): void {
  stopPromptAndClock(turn, state)
  if (state.recognize !== null) turn.emit({ type: 'stop_recognize', id: state.recognize })
  if (state.keys) turn.emit({ type: 'digits_off' })
  if (state.hush !== undefined) turn.emit({ type: 'resume_recordings', id: state.hush })
}

function promptOver(node: GatherNode, turn: Turn, state: GatherState): GatherState {
  const speech = node.attributes.input !== 'dtmf' && turn.facts.speech.recognizer
  const recognize = speech && !node.attributes.bargeIn ? startRecognizer(node, turn) : state.recognize
  return { ...state, play: null, recognize, timer: startClock(node, turn) }
}

function onKey(node: GatherNode, turn: Turn, before: GatherState, key: string): Move {
  let state = stopPromptAndClock(turn, before)
  if (state.recognize !== null) {
    // Only the kind of input that comes first counts.
    turn.emit({ type: 'stop_recognize', id: state.recognize })
    state = { ...state, recognize: null, speaking: false }
  }
  if (key === node.attributes.finishOnKey) {
    turn.key_obeyed = true
    return finish(node, turn, state, key)
  }
  state = { ...state, digits: state.digits + key }
  if (state.digits.length === node.attributes.numDigits) return finish(node, turn, state, '')
  return stay({ ...state, timer: startClock(node, turn) })
}

/** Ends the Gather after key input or without input. */
function finish(node: GatherNode, turn: Turn, state: GatherState, key: string): Move {
  stopAll(turn, state)
  if (state.digits === '' && !node.attributes.actionOnEmptyResult) return next
  if (!state.keys) return request(node, { SpeechResult: '' })
  return request(node, { Digits: state.digits, FinishedOnKey: key })
}

function timeIsOver(node: GatherNode, turn: Turn, state: GatherState): Move {
  return state.speaking ? stay(state) : finish(node, turn, state, '')
}

/** Stops the prompt. The clock runs on, because what was heard may be noise. */
function speechBegins(node: GatherNode, turn: Turn, state: GatherState): GatherState {
  if (state.play !== null) turn.emit({ type: 'stop_play', id: state.play })
  const timer = state.timer ?? (state.speaking ? null : startClock(node, turn))
  return { ...state, play: null, speaking: true, timer }
}

/** What was heard has no words. The recognizer listens on until the time is over. */
function onNoise(node: GatherNode, turn: Turn, state: GatherState): Move {
  const over = state.play === null && state.timer === null
  return over ? finish(node, turn, state, '') : stay({ ...state, speaking: false })
}

function finishSpeech(
  node: GatherNode,
  turn: Turn,
  state: GatherState,
  heard: Extract<Event, { type: 'speech_result' }>,
): Move {
  stopAll(turn, { ...state, recognize: null })
  return request(node, {
    SpeechResult: heard.text,
    Confidence: String(heard.confidence),
    ...(heard.language === null ? {} : { Language: heard.language }),
  })
}

function request(node: GatherNode, parameters: Record<string, string>): Move {
  const { action, method, sensitive } = node.attributes
  const secret = sensitive ? ['Digits', 'SpeechResult'] : []
  return { to: 'request', document: 'action', url: action, method, parameters, secret }
}

function readInput(text: string): 'dtmf' | 'speech' | 'both' | undefined {
  const words = new Set(
    text
      .toLowerCase()
      .split(/[\s,]+/)
      .filter(Boolean),
  )
  if (words.size === 0 || [...words].some(word => word !== 'dtmf' && word !== 'speech')) return undefined
  if (words.size === 2) return 'both'
  return words.has('speech') ? 'speech' : 'dtmf'
}

/** Reads the finish key. `inspect` reports more than one key as fault 13311; `#` is used then. */
function readFinishKey(key: string): string | undefined {
  if (key.length > 1) return '#'
  return /^[0-9#*]?$/.test(key) ? key : undefined
}

/** Reads seconds; null for `auto`. */
function readSeconds(text: string): number | null | undefined {
  if (text === 'auto') return null
  return /^\d{1,6}$/.test(text) ? Number(text) : undefined
}

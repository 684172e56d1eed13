import type { WebSocket } from 'ws'
import type { Clock, Timer } from '../../core/runtime/clock.ts'
import type { EngineEvent } from '../../native/index.ts'
import type { Loaded } from '../files/prompts.ts'
import type { ConnectWebSocket } from '../forks/connect.ts'
import type { EventFields, PlaySource } from '../protocol/schema.ts'
import { Recognition } from '../speech/recognition.ts'
import type { Recognizer } from '../speech/recognizer.ts'
import { AppSocket } from './app-socket.ts'
import { type AppMessage, type Manner, readMessage } from './messages.ts'
import { Phrases } from './phrases.ts'
import { type HeardTurn, Speaker } from './speaker.ts'
import { TurnClock, type TurnFigures } from './turn-clock.ts'
import { type AudioLine, includes, type RelayRequest } from './types.ts'

type Ended = EventFields<'relay.ended'>

interface RelayOptions {
  readonly request: RelayRequest
  readonly stream: AudioLine
  readonly tap_prefix: string
  readonly clock: Clock
  readonly connect: ConnectWebSocket
  /** Null when the installation has none: the application then gets keys only. */
  readonly recognizer: Recognizer | null
  load(source: PlaySource): Promise<Loaded>
  sendDigits(digits: string): void
  warned(code: number, detail: string): void
  turn(figures: TurnFigures): void
  ended(end: Omit<Ended, 'leg_id' | 'relay_id'>): void
}

const UNUSABLE = 64_101
const UNREACHABLE = 64_102
const CLOSED = 64_105
const MALFORMED = 64_107
const NO_RECOGNIZER = 13_343
/** The silence that ends what the caller says. */
const SILENCE_MS = 600
/** The voice that begins what the caller says. A click or a cough of 20 ms is shorter. */
const ONSETS_MS = { high: 40, medium: 80, low: 160 } as const
const MAX_SPEECH_MS = 60_000
/** A recogniser that fails this many times in a row is not asked again. */
const MAX_FAULTS = 3
const RETRY_MS = 1000

/**
 * A session of `<ConversationRelay>` (voice-compat.md §12.6): hears the caller, tells the application in text, and says
 * what the application answers.
 */
export class Relay {
  readonly #options: RelayOptions
  readonly #socket: AppSocket
  readonly #speaker: Speaker
  readonly #turns: TurnClock
  readonly #warned = new Set<number>()
  #recognition: Recognition | null = null
  /** Identifies the current recognition, which may end before it is returned. */
  #listening: object | null = null
  #retry: Timer | null = null
  #faults = 0
  #phrases = new Phrases()
  /** The turn of the application; the greeting is turn 0. */
  #turn = 0
  #turn_is_open = false
  /** The open turn was interrupted: its further text is dropped. */
  #dropping = false
  /** What the caller is saying began while it could not interrupt, and is not to be reported. */
  #unreported = false
  #language: { tts: string; transcription: string; voice: string; model: string | null }
  #over = false

  constructor(options: RelayOptions) {
    this.#options = options
    const { request, stream, tap_prefix, clock } = options
    const { tts_language: tts, transcription_language: transcription, voice, model } = request
    this.#language = { tts, transcription, voice, model }
    this.#turns = new TurnClock(clock, figures => options.turn(figures))
    this.#speaker = new Speaker({
      stream,
      clock,
      prefix: `${tap_prefix}r`,
      load: source => options.load(source),
      began: (turn, ready_ms) => this.#turns.heard(turn, ready_ms),
      failed: detail => this.#fault(`could not be said: ${detail}`),
      warned: detail => this.#warn(UNUSABLE, detail),
    })
    this.#socket = new AppSocket({
      clock,
      message: text => this.#receive(text),
      fault: detail => this.#malformed(detail),
      closed: detail => this.#end('failed', { code: CLOSED, detail: `the application ended without end: ${detail}` }),
    })
    if (request.greeting !== null)
      this.#say(request.greeting, { interruptible: request.greeting_interruptible, preemptible: null }, null)
    options.connect(request.url, this.#socket.signal, request.headers).then(
      connected => {
        if ('socket' in connected) this.#connected(connected.socket)
        else this.#end('failed', { code: UNREACHABLE, detail: connected.detail })
      },
      (error: Error) => this.#end('failed', { code: UNREACHABLE, detail: error.message }),
    )
  }

  /** Ends the session. The application sees its socket close. */
  stop(): void {
    this.#end('stopped')
  }

  key(digit: string): void {
    if (this.#over) return
    const { keys, report } = this.#options.request
    const heard = this.#interruptBy('dtmf') || includes(report, 'dtmf')
    if (!keys || !heard) return
    this.#send('dtmf', { digit })
    this.#answerable()
  }

  /** Handles an event of the data plane. Returns true when it belongs to this session. */
  onNative(event: EngineEvent): boolean {
    switch (event.type) {
      case 'mark':
        return this.#speaker.onMark(event.name)
      case 'tap':
        return this.#recognition?.onTap(event) ?? false
      case 'speech':
        this.#speech(event.edge, event.quiet_ms)
        return true
      case 'feed_cut':
        this.#unreported = false
        this.#interrupted(this.#speaker.onCut(event.mark, event.played_ms))
        return true
      default:
        return false
    }
  }

  #connected(socket: WebSocket): void {
    if (this.#over) {
      socket.terminate()
      return
    }
    const { setup, parameters, relay_id } = this.#options.request
    this.#socket.open(socket, { type: 'setup', sessionId: relay_id, ...setup, customParameters: parameters })
    const { stream, recognizer } = this.#options
    const { sensitivity, noise_suppression: suppress_noise = false } = this.#options.request
    if (!stream.closed) stream.watchSpeech({ onset_ms: ONSETS_MS[sensitivity], end_ms: SILENCE_MS, suppress_noise })
    if (recognizer) {
      this.#listen(recognizer)
      return
    }
    this.#warn(NO_RECOGNIZER, 'no speech recognizer is available: the application gets keys only')
    this.#fault('no speech recognizer is available')
  }

  // ------------------------------------------------------------------------------------------------ the caller

  #listen(recognizer: Recognizer): void {
    const { request, stream, tap_prefix, clock } = this.#options
    const listening = {}
    this.#listening = listening
    const { leg_id, relay_id, account_sid, call_sid, hints, profanity_filter, noise_suppression } = request
    const recognition = new Recognition({
      request: {
        leg_id,
        recognize_id: relay_id,
        account_sid,
        call_sid,
        tracks: 'inbound',
        hints,
        profanity_filter,
        ...(noise_suppression === undefined ? {} : { noise_suppression }),
        language: this.#language.transcription,
        model: this.#language.model,
        enhanced: false,
        punctuation: true,
        partial: true,
        silence_ms: SILENCE_MS,
        max_speech_ms: MAX_SPEECH_MS,
      },
      stream,
      tap_prefix,
      clock,
      recognizer,
      started: () => undefined,
      heard: ({ text, language, final }) => this.#heard(text, language, final),
      warned: detail => this.#warn(UNUSABLE, detail),
      ended: fault => this.#listening === listening && this.#recognitionEnded(fault, recognizer),
    })
    if (this.#listening === listening) this.#recognition = recognition
  }

  #recognitionEnded(fault: string | null, recognizer: Recognizer): void {
    this.#recognition = this.#listening = null
    if (this.#over || fault === null) return
    this.#fault(`speech recognition failed: ${fault}`)
    this.#warn(NO_RECOGNIZER, `speech recognition failed: ${fault}`)
    if (++this.#faults < MAX_FAULTS) this.#retry = this.#options.clock.after(RETRY_MS, () => this.#listen(recognizer))
  }

  /** Handles an edge of the caller's speech. The data plane has stopped what plays and yields to it. */
  #speech(edge: Extract<EngineEvent, { type: 'speech' }>['edge'], quiet_ms: number): void {
    if (this.#over) return
    switch (edge) {
      case 'began':
        this.#turns.voiced()
        this.#unreported = !(this.#interruptBy('speech') || includes(this.#options.request.report, 'speech'))
        break
      case 'resumed':
        this.#turns.voiced()
        if (this.#interruptBy('speech')) this.#unreported = false
        break
      case 'paused':
        this.#turns.paused(quiet_ms)
        // The agent may have come to the end of what could not be interrupted.
        if (this.#speaker.yieldsTo('speech')) this.#unreported = false
        break
      case 'ended':
        this.#turns.silent()
    }
  }

  #heard(text: string, language: string | null, final: boolean): void {
    if (this.#over) return
    if (final) this.#faults = 0
    const unreported = this.#unreported
    if (final) this.#unreported = false
    if (unreported) return
    if (final) this.#answerable()
    if (text === '') return
    if (final) this.#turns.prompted()
    this.#send('prompt', { voicePrompt: text, lang: language ?? this.#language.transcription, last: final })
  }

  /** Stops what is being said if this input may. Returns whether the input is the application's. */
  #interruptBy(input: 'dtmf' | 'speech'): boolean {
    if (!this.#speaker.yieldsTo(input)) return false
    this.#interrupted(this.#speaker.cut())
    return true
  }

  /** What the application says from now on answers the caller: it need not end a turn that was cut. */
  #answerable(): void {
    if (this.#dropping) this.#dropping = this.#turn_is_open = false
  }

  #interrupted(heard: HeardTurn | null): void {
    if (!heard) return
    this.#phrases = new Phrases()
    this.#dropping = this.#turn_is_open
    this.#send('interrupt', { utteranceUntilInterrupt: heard.text, durationUntilInterruptMs: heard.ms })
  }

  // ------------------------------------------------------------------------------------------- the application

  #receive(text: string): void {
    if (this.#over) return
    const message = readMessage(text)
    if ('fault' in message) this.#malformed(message.fault)
    else this.#obey(message)
  }

  #obey(message: AppMessage): void {
    switch (message.type) {
      case 'text':
        this.#text(message)
        break
      case 'play':
        this.#play(message)
        break
      case 'sendDigits':
        this.#options.sendDigits(message.digits)
        break
      case 'language':
        this.#changeLanguage(message)
        break
      case 'end':
        this.#end('ended', null, message.hand_off)
    }
  }

  #play({ url, loop, how }: Extract<AppMessage, { type: 'play' }>): void {
    if (this.#dropping) return
    if (!this.#turn_is_open) this.#openTurn()
    this.#add({ text: '', source: { kind: 'url', url }, loop }, how)
  }

  #text({ token, last, language, how }: Extract<AppMessage, { type: 'text' }>): void {
    if (this.#dropping) {
      if (last) this.#dropping = this.#turn_is_open = false
      return
    }
    if (!this.#turn_is_open) this.#openTurn()
    this.#turn_is_open = !last
    for (const phrase of this.#phrases.add(token)) this.#say(phrase, how, language)
    if (!last) return
    const rest = this.#phrases.end()
    if (rest !== null) this.#say(rest, how, language)
  }

  #openTurn(): void {
    this.#turn++
    this.#turns.answering(this.#turn)
    this.#speaker.preempt(this.#turn)
  }

  #say(text: string, how: Manner, language: string | null): void {
    const { tts, voice } = this.#language
    const named = this.#options.request.languages.find(({ code }) => code === language)
    const { tts_engine: engine } = this.#options.request
    const spoken = { kind: 'speech', text, voice: named?.voice ?? voice, language: language ?? tts } as const
    const source = engine === undefined ? spoken : { ...spoken, engine }
    this.#add({ text, source, loop: 1 }, how)
  }

  #add(what: { text: string; source: PlaySource; loop: number }, how: Manner): void {
    const { interruptible, preemptible } = this.#options.request
    this.#turns.ready(this.#turn)
    const taken = this.#speaker.say({
      ...what,
      turn: this.#turn,
      interruptible: how.interruptible ?? interruptible,
      preemptible: how.preemptible ?? preemptible,
    })
    if (!taken) this.#fault('too much waits to be said; this is dropped')
  }

  #changeLanguage({ tts, transcription }: Extract<AppMessage, { type: 'language' }>): void {
    const { languages, voice, model } = this.#options.request
    const settings = (code: string) => languages.find(known => known.code === code)
    if (tts !== null) this.#language = { ...this.#language, tts, voice: settings(tts)?.voice ?? voice }
    if (transcription === null || transcription === this.#language.transcription) return
    this.#language = { ...this.#language, transcription, model: settings(transcription)?.model ?? model }
    // Recognisers have one language, so another one begins.
    const before = this.#recognition
    this.#recognition = this.#listening = null
    before?.stop()
    this.#retry?.cancel()
    if (this.#options.recognizer) this.#listen(this.#options.recognizer)
  }

  // ------------------------------------------------------------------------------------------------------ faults

  #send(type: string, fields: object): void {
    this.#socket.send({ type, ...fields })
  }

  #malformed(detail: string): void {
    this.#fault(detail)
    this.#warn(MALFORMED, detail)
  }

  #fault(description: string): void {
    this.#send('error', { description: description.slice(0, 500) })
  }

  #warn(code: number, detail: string): void {
    if (this.#over || this.#warned.has(code)) return
    this.#warned.add(code)
    this.#options.warned(code, detail)
  }

  #end(reason: Ended['reason'], fault: { code: number; detail: string } | null = null, hand_off: string | null = null) {
    if (this.#over) return
    this.#over = true
    this.#retry?.cancel()
    this.#recognition?.stop()
    if (!this.#options.stream.closed) this.#options.stream.unwatchSpeech()
    this.#speaker.drop()
    this.#socket.close()
    this.#options.ended({ reason, hand_off, error_code: fault?.code ?? null, detail: fault?.detail ?? '' })
  }
}

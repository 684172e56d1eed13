import { iso, type Timer } from '../../core/runtime/clock.ts'
import { newId } from '../../core/runtime/ids.ts'
import type { Event, Recognize, StartTranscription } from '../../markup/interpreter/types.ts'
import type { MethodParams } from '../../media/protocol/schema.ts'
import { type MediaEvent, MediaRefusal } from '../b2bua/media.ts'
import type { ScriptHost } from '../b2bua/script-host.ts'
import { type EngineServices, enginesOf } from './engines.ts'
import { activityBegins, activityEnds } from './live-activity.ts'
import type { ScriptServices } from './services.ts'
import { queueCallback } from './tell.ts'

interface Listening {
  readonly kind: 'gather'
  readonly command: Recognize
  /** The latest partial result. */
  partial: { text: string; confidence: number; language: string | null } | null
  speaking: boolean
  limit: Timer | null
  sequence: number
}

interface Transcribing {
  readonly kind: 'transcription'
  readonly command: StartTranscription
  /** Set when the leg has ended and the last words are awaited. */
  limit: Timer | null
  sequence: number
}

/** The number of a speech model that the engine does not have (voice-compat.md §15). */
const UNKNOWN_MODEL = 13_334

type Result = Extract<MediaEvent, { event: 'recognize.result' }>

const TRACKS = { inbound_track: 'inbound', outbound_track: 'outbound', both_tracks: 'both' } as const
const HOUR_MS = 3_600_000
/** The media worker waits for the last words for three seconds. */
const LAST_WORDS_MS = 5000

type RecognitionServices = EngineServices & Pick<ScriptServices, 'calls'>

/** Speech recognition on one leg: for Gather, and for live transcriptions. */
export class Recognitions {
  readonly #services: RecognitionServices
  readonly #host: Pick<ScriptHost, 'call' | 'leg'>
  readonly #emit: (event: Event) => void
  /** Keyed by the media worker's `recognize_id`. */
  readonly #live = new Map<string, Listening | Transcribing>()

  constructor(services: RecognitionServices, host: Pick<ScriptHost, 'call' | 'leg'>, emit: (event: Event) => void) {
    this.#services = services
    this.#host = host
    this.#emit = emit
  }

  recognize(command: Recognize): void {
    const { speech_timeout_seconds, max_speech_seconds, language, hints, model, enhanced, profanity_filter } = command
    const recognize_id = `SR${newId.uuid().replaceAll('-', '')}`
    this.#live.set(recognize_id, { kind: 'gather', command, partial: null, speaking: false, limit: null, sequence: 0 })
    void this.#begin(recognize_id, {
      ...chosenEngine(this.#services, this.#host, null),
      ...(command.noise_suppression ? { noise_suppression: true } : {}),
      tracks: 'inbound',
      language,
      hints: [...hints],
      model,
      enhanced,
      profanity_filter,
      punctuation: true,
      partial: command.partial !== null,
      silence_ms: speech_timeout_seconds === null ? null : Math.min(HOUR_MS, speech_timeout_seconds * 1000),
      max_speech_ms: max_speech_seconds * 1000,
    })
  }

  /** `made`: the sid of a transcription that the API has begun. */
  transcribe(command: StartTranscription, made?: string): void {
    const recognize_id = made ?? newId.sid('GT')
    this.#live.set(recognize_id, { kind: 'transcription', command, limit: null, sequence: 0 })
    const about = { sid: recognize_id, kind: 'transcription', name: command.name, made: made !== undefined } as const
    activityBegins(this.#services.calls, this.#host.call, { ...about, stop: () => this.stop(command.id) })
    const { track, language, hints, model, profanity_filter, punctuation, partial_results } = command
    const begun = this.#begin(recognize_id, {
      ...chosenEngine(this.#services, this.#host, command.engine ?? null),
      tracks: TRACKS[track],
      language,
      hints: hints.map(hint => hint.slice(0, 100)),
      model,
      enhanced: false,
      profanity_filter,
      punctuation,
      partial: partial_results,
      silence_ms: null,
      max_speech_ms: 60_000,
      last_words: true,
    })
    void begun.then(ok => ok && this.#tell(recognize_id, 'transcription-started', {}))
  }

  /** Stops the recognition of a Gather that is complete, or of a Stop verb. */
  stop(id: string): void {
    for (const [recognize_id, live] of this.#live) {
      if (live.command.id !== id) continue
      if (live.kind === 'gather') this.#forget(recognize_id)
      this.#stop(recognize_id)
    }
  }

  media(event: MediaEvent): void {
    if (event.event === 'recognize.started') {
      const live = this.#live.get(event.recognize_id)
      if (live?.kind === 'gather') this.#speaking(event.recognize_id, live)
    } else if (event.event === 'recognize.result') this.#heard(event)
    else if (event.event === 'recognize.warning') this.#warned(event.recognize_id, event.detail)
    else if (event.event === 'recognize.ended') this.#ended(event.recognize_id, event.fault)
  }

  /** Forgets all recognitions, because the leg has ended. Those of transcriptions may still have the last words. */
  drop(): void {
    const { call, leg } = this.#host
    for (const [recognize_id, live] of [...this.#live]) {
      if (live.kind === 'gather') this.#forget(recognize_id)
      else if (!live.limit) {
        leg.session.hub.listen(recognize_id, event => this.media(event))
        live.limit = call.clock.after(LAST_WORDS_MS, () => this.#ended(recognize_id, null))
      }
    }
  }

  /** Starts a recognition and reports whether the worker accepted it. */
  async #begin(
    recognize_id: string,
    settings: Omit<MethodParams<'recognize.start'>, 'leg_id' | 'recognize_id' | 'account_sid' | 'call_sid'>,
  ): Promise<boolean> {
    const { call, leg } = this.#host
    const { account_sid } = call.facts
    try {
      const about = { leg_id: leg.id, recognize_id, account_sid, call_sid: call.sid }
      await leg.session.hub.request('recognize.start', { ...about, ...settings })
      return true
    } catch (error) {
      this.#ended(recognize_id, error instanceof MediaRefusal ? error.detail : String(error))
      return false
    }
  }

  #speaking(recognize_id: string, live: Listening): void {
    if (live.speaking) return
    live.speaking = true
    this.#emit({ type: 'speech_started', id: live.command.id })
    live.limit = this.#host.call.clock.after(live.command.max_speech_seconds * 1000, () => {
      const { text = '', confidence = 0, language = null } = live.partial ?? {}
      this.#result(recognize_id, live, { text, confidence, language })
    })
  }

  #heard(event: Result): void {
    const live = this.#live.get(event.recognize_id)
    if (!live) return
    const { text, confidence, language, final } = event
    if (live.kind === 'transcription') {
      if (text === '' || (!final && !live.command.partial_results)) return
      const label = event.track === 'inbound' ? live.command.inbound_label : live.command.outbound_label
      this.#tell(event.recognize_id, 'transcription-content', {
        Track: `${event.track}_track`,
        ...(label === null ? {} : { TrackLabel: label }),
        Final: String(final),
        TranscriptionData: JSON.stringify({ transcript: text, confidence }),
      })
      return
    }
    if (text !== '') this.#speaking(event.recognize_id, live)
    if (final) this.#result(event.recognize_id, live, { text, confidence, language })
    else this.#partial(event.recognize_id, live, { text, confidence, language })
  }

  /** Reports a result and ends the recognition. After noise, which has no words, the recognizer listens on. */
  #result(
    recognize_id: string,
    live: Listening,
    result: { text: string; confidence: number; language: string | null },
  ): void {
    if (result.text === '') {
      live.limit?.cancel()
      live.speaking = false
      live.partial = null
    } else {
      this.#forget(recognize_id)
      this.#stop(recognize_id)
    }
    this.#emit({ type: 'speech_result', id: live.command.id, ...result })
  }

  #partial(
    recognize_id: string,
    live: Listening,
    heard: { text: string; confidence: number; language: string | null },
  ): void {
    live.partial = heard
    const { call } = this.#host
    if (!live.command.partial) return
    void queueCallback(call, live.command.partial, {
      ...call.parameters(),
      SequenceNumber: String(live.sequence++),
      UnstableSpeechResult: heard.text,
      StableSpeechResult: '',
      Stability: String(heard.confidence),
      Language: heard.language ?? live.command.language,
      SessionId: recognize_id,
    })
  }

  #ended(recognize_id: string, fault: string | null): void {
    const live = this.#live.get(recognize_id)
    if (!live) return
    if (live.kind === 'gather') {
      this.#forget(recognize_id)
      const detail = fault ?? 'the recognizer ended'
      this.#emit({ type: 'speech_failed', id: live.command.id, detail })
      return
    }
    if (fault === null) this.#tell(recognize_id, 'transcription-stopped', {})
    else {
      this.#tell(recognize_id, 'transcription-error', { TranscriptionError: fault })
      this.#host.call.event('warning', null, { detail: `transcription ended: ${fault}` })
    }
    this.#forget(recognize_id)
    // The script of a leg that has ended waits for no activity.
    if (live.limit) return
    this.#emit({ type: 'activity_ended', id: live.command.id, number: null, detail: fault ?? 'stopped' })
  }

  #warned(recognize_id: string, detail: string): void {
    const live = this.#live.get(recognize_id)
    if (live) this.#host.call.event('warning', live.kind === 'gather' ? UNKNOWN_MODEL : null, { detail })
  }

  #forget(recognize_id: string): void {
    const live = this.#live.get(recognize_id)
    live?.limit?.cancel()
    this.#live.delete(recognize_id)
    if (live?.kind !== 'transcription') return
    this.#host.leg.session.hub.forget(recognize_id)
    activityEnds(this.#services.calls, this.#host.call, recognize_id)
  }

  #stop(recognize_id: string): void {
    const { leg, call } = this.#host
    if (leg.ended) return
    leg.session.hub
      .request('recognize.stop', { leg_id: leg.id, recognize_id })
      .catch(err => call.log.debug({ err }, 'a recognition was not stopped'))
  }

  #tell(recognize_id: string, event: string, parameters: Readonly<Record<string, string>>): void {
    const live = this.#live.get(recognize_id)
    if (live?.kind !== 'transcription' || !live.command.status_callback) return
    const { call } = this.#host
    void queueCallback(call, live.command.status_callback, {
      AccountSid: call.facts.account_sid,
      CallSid: call.sid,
      TranscriptionSid: recognize_id,
      ...(live.command.name === null ? {} : { TranscriptionName: live.command.name }),
      TranscriptionEvent: event,
      LanguageCode: live.command.language,
      SequenceId: String(++live.sequence),
      Timestamp: iso(call.clock.now()),
      ...parameters,
    })
  }
}

/** Names the engine that the document or the application chose; nothing when the operator's serves. */
function chosenEngine(
  services: EngineServices,
  { call }: Pick<ScriptHost, 'call'>,
  named: string | null,
): { engine?: string } {
  const engine = named ?? enginesOf(services, call).chosen.stt
  return engine === null ? {} : { engine }
}

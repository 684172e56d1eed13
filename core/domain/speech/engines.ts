/** The speech engines that an installation may choose (docs/speech.md), their voices and their languages. */

export const RECOGNIZERS = ['pocketsphinx', 'url', 'openai', 'deepgram'] as const
export const VOICES = ['espeak-ng', 'url', 'openai', 'elevenlabs'] as const

/** The program of the offline recogniser: Debian's `pocketsphinx`, with `pocketsphinx-en-us`. */
export const POCKETSPHINX = 'pocketsphinx_continuous'

/** An engine of another provider. */
interface Provider<E> {
  readonly engine: E
  readonly url: string
  readonly api_key: string
  /** Null: the provider's own choice. */
  readonly model: string | null
}

export type RecognizerSettings =
  | { readonly engine: 'pocketsphinx' }
  /** The operator's own, by ws(s) or http(s). */
  | { readonly engine: 'url'; readonly url: string }
  | Provider<'openai'>
  | Provider<'deepgram'>

export type VoiceSettings =
  | { readonly engine: 'espeak-ng' }
  | { readonly engine: 'url'; readonly url: string }
  | (Provider<'openai'> & { readonly voice: string })
  | (Provider<'elevenlabs'> & { readonly voice: string })

/** The engines of an installation. */
export interface SpeechEngines {
  /** The operator's choice, which serves where nobody else chooses; null: nothing hears. */
  readonly stt: RecognizerSettings | null
  readonly tts: VoiceSettings
  /** All that are ready: voice applications and documents choose among them. */
  readonly stt_choices: readonly RecognizerSettings[]
  readonly tts_choices: readonly VoiceSettings[]
}

// Voices and languages are listed for warnings about unsupported ones (voice-compat.md §10).

/**
 * Voices that espeak-ng replaces. It has one engine with variants, and chooses a female or male one by the name. `*`
 * matches any suffix.
 */
export const ESPEAK_VOICES: readonly string[] = ['man', 'woman', 'alice', 'Polly.*', 'Google.*']

/** Languages of espeak-ng 1.51 by their first BCP 47 subtag. It has other names for `zh` and `no`. */
export const ESPEAK_LANGUAGES: readonly string[] = (
  'af am an ar as az ba be bg bn bs ca cmn cs cy da de el en eo es et eu fa fi fr ga gd gn grc gu haw he hi hr ht hu ' +
  'hy ia id io is it ja ka kk kl kn ko kok ku ky la lb lt lv mi mk ml mr ms mt my nb nci ne nl no nog om or pa pap pl ' +
  'pt qu ro ru sd shn si sk sl smj sq sr sv sw ta te th tk tn tr tt ug uk ur uz vi yue zh'
).split(' ')

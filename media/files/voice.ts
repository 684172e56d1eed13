import type { SpeechEngines, VoiceSettings } from '../../core/domain/speech/engines.ts'
import type { HttpClient } from '../../core/runtime/http/index.ts'
import type { AudioThreads } from './audio-threads.ts'
import { createSpeech, type Speech } from './speech.ts'
import { httpSpeech, type SpeechAsked } from './speech-http.ts'

const OPENAI_MODEL = 'tts-1'
const ELEVENLABS_MODEL = 'eleven_flash_v2_5'
/** A format that Play supports, at a rate above what telephones carry. */
const ELEVENLABS_FORMAT = 'mp3_22050_32'
/** A voice of the compatible form: its id, with a model and settings behind it (`…-flash_v2_5-0.8_0.8_0.6`). */
const ELEVENLABS_VOICE = /^([A-Za-z0-9]{20})-.*$/

/** Returns the voices of this installation, of which each request may name one. */
export function createVoices(
  { tts, tts_choices }: Pick<SpeechEngines, 'tts' | 'tts_choices'>,
  http: Pick<HttpClient, 'request'>,
  audio: Pick<AudioThreads, 'decode'>,
): Speech {
  const made = new Map(tts_choices.map(settings => [settings.engine as string, createVoice(settings, http, audio)]))
  const own = made.get(tts.engine) ?? createVoice(tts, http, audio)
  return { speak: request => (made.get(request.engine ?? '') ?? own).speak(request) }
}

/** Returns a voice. Adding an engine is a function and a line here. */
export function createVoice(
  settings: VoiceSettings,
  http: Pick<HttpClient, 'request'>,
  audio: Pick<AudioThreads, 'decode'>,
): Speech {
  switch (settings.engine) {
    case 'espeak-ng':
      return createSpeech(audio)
    case 'url':
      return httpSpeech(own(settings.url), http, audio)
    case 'openai':
      return httpSpeech(openAi(settings), http, audio, settings.voice)
    case 'elevenlabs':
      return httpSpeech(elevenLabs(settings), http, audio, settings.voice)
  }
}

/** The operator's own engine: `{"text", "ssml", "voice", "language"}`; `ssml` is null for plain text. */
const own =
  (url: string): SpeechAsked =>
  ({ plain: text, ssml, voice, language }) => ({ url, body: { text, ssml, voice, language } })

type Provider<E> = Extract<VoiceSettings, { readonly engine: E }>

/** `POST {url}/audio/speech`, as OpenAI documents it and as many servers have it. */
const openAi =
  ({ url, api_key, model }: Provider<'openai'>): SpeechAsked =>
  ({ plain: input, voice }) => ({
    url: `${url}/audio/speech`,
    headers: { Authorization: `Bearer ${api_key}` },
    body: { model: model ?? OPENAI_MODEL, input, voice, response_format: 'wav' },
  })

/** `POST {url}/v1/text-to-speech/{voice}/stream`, as the public documentation of ElevenLabs describes it. */
const elevenLabs =
  ({ url, api_key, model }: Provider<'elevenlabs'>): SpeechAsked =>
  ({ plain: text, voice }) => {
    const id = encodeURIComponent(voice.replace(ELEVENLABS_VOICE, '$1'))
    return {
      url: `${url}/v1/text-to-speech/${id}/stream?output_format=${ELEVENLABS_FORMAT}`,
      headers: { 'xi-api-key': api_key },
      body: { text, model_id: model ?? ELEVENLABS_MODEL },
    }
  }

import {
  POCKETSPHINX,
  type RecognizerSettings,
  type SpeechEngines,
  type VoiceSettings,
} from '../domain/speech/engines.ts'
import { isInstalled } from './installed-programs.ts'
import { refuseValue } from './variable-values.ts'
import { type Environment, read, VARIABLES, type Variable } from './variables.ts'

const STT_URLS = { openai: 'https://api.openai.com/v1', deepgram: 'wss://api.deepgram.com' } as const
const TTS_URLS = { openai: 'https://api.openai.com/v1', elevenlabs: 'https://api.elevenlabs.io' } as const
const TTS_VOICES = { openai: 'alloy', elevenlabs: 'JBFqnCBsd6RMkjVDRZzb' } as const

/**
 * Reads which engines hear and speak. Without a choice, an address of the operator's own engine decides. Only the media
 * process is told the keys. The offline engines and the operator's own address stay choices beside a provider.
 */
export function speechEngines(env: Environment): SpeechEngines {
  const v = VARIABLES
  const stt = recognizer(env)
  const tts = voice(env)
  const [stt_url, tts_url] = [read(env, v.recognizer_url), read(env, v.speech_url)]
  const hears = read(env, v.stt) !== 'none'
  return {
    stt,
    tts,
    stt_choices: distinct([
      stt,
      hears && isInstalled(POCKETSPHINX) && { engine: 'pocketsphinx' },
      hears && stt_url !== null && { engine: 'url', url: stt_url },
    ]),
    tts_choices: distinct([tts, { engine: 'espeak-ng' }, tts_url !== null && { engine: 'url', url: tts_url }]),
  }
}

/** The engines of a list, each once. */
function distinct<E extends { readonly engine: string }>(engines: readonly (E | null | false)[]): E[] {
  const ready = engines.filter(one => one !== null && one !== false)
  return ready.filter((one, index) => ready.findIndex(({ engine }) => engine === one.engine) === index)
}

function recognizer(env: Environment): RecognizerSettings | null {
  const v = VARIABLES
  const own = read(env, v.recognizer_url)
  const engine = read(env, v.stt) ?? (own === null ? (isInstalled(POCKETSPHINX) ? 'pocketsphinx' : 'none') : 'url')
  if (engine === 'none') return null
  if (engine === 'pocketsphinx') return { engine }
  if (engine === 'url') return { engine, url: needed(env, v.recognizer_url) }
  const url = read(env, v.stt_url) ?? STT_URLS[engine]
  return { engine, url, api_key: read(env, v.stt_key) ?? '', model: read(env, v.stt_model) }
}

function voice(env: Environment): VoiceSettings {
  const v = VARIABLES
  const engine = read(env, v.tts) ?? (read(env, v.speech_url) === null ? 'espeak-ng' : 'url')
  if (engine === 'espeak-ng') return { engine }
  if (engine === 'url') return { engine, url: needed(env, v.speech_url) }
  const url = read(env, v.tts_url) ?? TTS_URLS[engine]
  const voice = read(env, v.tts_voice) ?? TTS_VOICES[engine]
  return { engine, url, api_key: read(env, v.tts_key) ?? '', model: read(env, v.tts_model), voice }
}

const needed = (env: Environment, variable: Variable<string | null>): string =>
  read(env, variable) ?? refuseValue(variable.name, '', 'the chosen speech engine needs it')

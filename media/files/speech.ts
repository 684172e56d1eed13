import { createHash } from 'node:crypto'
import { boundedBytes } from '../../core/domain/bounded-map.ts'
import { safeSsml, speakable } from '../../core/domain/speech/ssml.ts'
import { runBare } from '../../core/runtime/bare-child.ts'
import type { AudioThreads, Owner } from './audio-threads.ts'
import { FairQueue } from './fair-queue.ts'
import { MAX_SPEECH_SECONDS, type Pcm } from './pcm.ts'

export interface SpeechRequest {
  /** Plain text, even if it looks like markup, unless `ssml` is set. */
  readonly text: string
  readonly ssml?: boolean | undefined
  readonly voice: string
  readonly language: string
  readonly owner: Owner
  /** The engine that speaks; none or an unknown one: the operator's. */
  readonly engine?: string | undefined
}

export type Spoken =
  /** `warning` tells how it was spoken otherwise than asked. */
  { readonly pcm: Pcm; readonly warning?: string } | { readonly refused: 'speech_failed'; readonly detail: string }

export interface Speech {
  speak(request: SpeechRequest): Promise<Spoken>
}

/** One project can occupy all processes but one. */
const PROCESSES = { at_once: 3, owner_at_once: 2, owner_jobs: 50, owner_bytes: 1024 * 1024 }
const TIMEOUT_MS = 15_000
/** The output of espeak-ng: a header of 44 bytes, then 16-bit samples at 22,050 Hz. */
const MAX_BYTES = 44 + MAX_SPEECH_SECONDS * 22_050 * 2
const CACHE_BYTES = 32 * 1024 * 1024

/**
 * Synthesizes speech by espeak-ng and caches it by content. espeak-ng runs in a separate process, because it is under
 * GPL-3 and its crash must not be ours.
 */
export function createSpeech(audio: Pick<AudioThreads, 'decode'>, program = 'espeak-ng'): Speech {
  const cache = boundedBytes<string, Pcm>(CACHE_BYTES, pcm => pcm.samples.byteLength)
  const running = new Map<string, Promise<Spoken>>()
  const processes = new FairQueue(PROCESSES)

  const synthesize = async (request: SpeechRequest, key: string): Promise<Spoken> => {
    const voice = voiceName(request)
    const spoken = await run(audio, program, voice, request)
    // A text in a language that espeak-ng lacks is spoken by the English voice.
    const lacking = 'refused' in spoken && spoken.detail !== TOO_LONG.detail && voice !== 'en'
    const best = lacking ? await run(audio, program, 'en', request) : spoken
    if ('pcm' in best) cache.set(key, best.pcm)
    return best
  }

  return {
    speak(request) {
      const key = createHash('sha256')
        .update(JSON.stringify([voiceName(request), request.ssml === true, request.text]))
        .digest('hex')
      const cached = cache.get(key)
      if (cached) return Promise.resolve({ pcm: cached })
      // Each project has a turn of its own, so only its own requests share a job.
      const own = `${request.owner} ${key}`
      const shared = running.get(own)
      if (shared) return shared
      const queued = processes.run(request.owner, request.text.length, () => synthesize(request, key))
      if (!queued) return Promise.resolve(failed('too many texts of the project wait to be spoken'))
      const work = queued.finally(() => running.delete(own))
      running.set(own, work)
      return work
    },
  }
}

const failed = (detail: string) => ({ refused: 'speech_failed', detail }) as const

export const TOO_LONG = failed('the speech is longer than ten minutes')

/** Women among the voices of the compatible form, which are named after people. espeak-ng has variants of one voice. */
const WOMEN = new RegExp(
  '^(woman|alice|(polly|google)\\..*(joanna|salli|kendra|kimberly|ivy|amy|emma|olivia|nicole|raveena|aditi|' +
    'standard-[ace]))',
  'i',
)

/** Returns espeak-ng's name of a voice: its language, with a variant for women. */
export function voiceName({ voice, language }: Pick<SpeechRequest, 'voice' | 'language'>): string {
  const tag = language.toLowerCase()
  const name = /^[a-z]{2,3}(-[a-z0-9]{2,8}){0,2}$/.test(tag) ? (LANGUAGES[tag] ?? tag) : 'en-us'
  return WOMEN.test(voice) ? `${name}+f3` : name
}

/** BCP 47 tags for which espeak-ng 1.51 uses another name. */
const LANGUAGES: Readonly<Record<string, string>> = {
  'de-de': 'de',
  'es-es': 'es',
  'es-mx': 'es-419',
  'fr-fr': 'fr-fr',
  'fr-ca': 'fr-fr',
  'it-it': 'it',
  'nl-nl': 'nl',
  'pt-pt': 'pt',
  'zh-cn': 'cmn',
  'en-au': 'en-gb',
  'en-in': 'en-gb',
  'en-ng': 'en-gb',
  'en-za': 'en-gb',
  'sw-ke': 'sw',
  'af-za': 'af',
}

/** Runs espeak-ng. The text is untrusted, may be long and may begin with a dash, so it is passed on stdin. */
async function run(
  audio: Pick<AudioThreads, 'decode'>,
  program: string,
  voice: string,
  { text, ssml, owner }: SpeechRequest,
): Promise<Spoken> {
  const end = await runBare(program, ['-v', voice, ...(ssml ? ['-m'] : []), '--stdin', '--stdout'], {
    input: ssml ? safeSsml(text) : speakable(text),
    limit_ms: TIMEOUT_MS,
    max_bytes: MAX_BYTES,
  })
  if (!end.ok) return end.too_long ? TOO_LONG : failed(end.detail)
  const wav = await audio.decode(end.stdout, 'audio/wav', owner)
  return 'pcm' in wav ? { pcm: wav.pcm } : failed(wav.detail)
}

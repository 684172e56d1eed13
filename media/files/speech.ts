import { createHash } from 'node:crypto'
import { safeSsml, speakable } from '../../core/domain/speech/ssml.ts'
import { runBare } from '../../core/runtime/bare-child.ts'
import type { AudioThreads, Owner } from './audio-threads.ts'
import { FairQueue } from './fair-queue.ts'
import { Lru } from './lru.ts'
import { MAX_SPEECH_SECONDS, type Pcm } from './pcm.ts'

export interface SpeechRequest {
  /** Plain text, whatever it looks like, unless `ssml` is set. */
  readonly text: string
  readonly ssml?: boolean | undefined
  readonly voice: string
  readonly language: string
  readonly owner: Owner
}

export type Spoken = { readonly pcm: Pcm } | { readonly refused: 'speech_failed'; readonly detail: string }

export interface Speech {
  speak(request: SpeechRequest): Promise<Spoken>
}

/** One project leaves a process to the others. */
const PROCESSES = { at_once: 3, owner_at_once: 2, owner_jobs: 50, owner_bytes: 1024 * 1024 }
const TIMEOUT_MS = 15_000
/** What espeak-ng writes: 16 bits at 22,050 Hz behind a header of 44 bytes. */
const MAX_BYTES = 44 + MAX_SPEECH_SECONDS * 22_050 * 2
const CACHE_BYTES = 32 * 1024 * 1024

/**
 * Speech by espeak-ng in a process of its own (it is GPL-3, and a crash of it is no crash of ours), cached by
 * content.
 */
export function createSpeech(audio: Pick<AudioThreads, 'decode'>, program = 'espeak-ng'): Speech {
  const cache = new Lru<Pcm>(CACHE_BYTES)
  const running = new Map<string, Promise<Spoken>>()
  const processes = new FairQueue(PROCESSES)

  const synthesize = async (request: SpeechRequest, key: string): Promise<Spoken> => {
    const voice = voiceName(request)
    const spoken = await run(audio, program, voice, request)
    // A language that espeak-ng lacks is spoken in English rather than not at all.
    const lacking = 'refused' in spoken && spoken.detail !== TOO_LONG.detail && voice !== 'en'
    const best = lacking ? await run(audio, program, 'en', request) : spoken
    if ('pcm' in best) cache.set(key, best.pcm, best.pcm.samples.byteLength)
    return best
  }

  return {
    speak(request) {
      const key = createHash('sha256')
        .update(JSON.stringify([voiceName(request), request.ssml === true, request.text]))
        .digest('hex')
      const cached = cache.get(key)
      if (cached) return Promise.resolve({ pcm: cached })
      const shared = running.get(key)
      if (shared) return shared
      const queued = processes.run(request.owner, request.text.length, () => synthesize(request, key))
      if (!queued) return Promise.resolve(failed('too many texts of the project wait to be spoken'))
      const work = queued.finally(() => running.delete(key))
      running.set(key, work)
      return work
    },
  }
}

const failed = (detail: string) => ({ refused: 'speech_failed', detail }) as const

export const TOO_LONG = failed('the speech is longer than ten minutes')

/** The voices of the compatible form are names of people; espeak-ng has one engine with variants. */
const WOMEN = new RegExp(
  '^(woman|alice|(polly|google)\\..*(joanna|salli|kendra|kimberly|ivy|amy|emma|olivia|nicole|raveena|aditi|' +
    'standard-[ace]))',
  'i',
)

/** espeak-ng's name of a voice: its language, and a variant for women. */
export function voiceName({ voice, language }: Pick<SpeechRequest, 'voice' | 'language'>): string {
  const tag = language.toLowerCase()
  const name = /^[a-z]{2,3}(-[a-z0-9]{2,8}){0,2}$/.test(tag) ? (LANGUAGES[tag] ?? tag) : 'en-us'
  return WOMEN.test(voice) ? `${name}+f3` : name
}

/** BCP 47 tags that espeak-ng 1.51 knows under another name. */
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

/** The text goes in by stdin: it is a stranger's and may be of any length or begin with a dash. */
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

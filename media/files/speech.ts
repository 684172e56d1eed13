import { createHash } from 'node:crypto'
import { safeSsml, speakable } from '../../core/domain/speech/ssml.ts'
import { runBare } from '../../core/runtime/bare-child.ts'
import { Lru } from './lru.ts'
import type { Pcm } from './pcm.ts'
import { readWav } from './wav.ts'

export interface SpeechRequest {
  /** Plain text, whatever it looks like, unless `ssml` is set. */
  readonly text: string
  readonly ssml?: boolean | undefined
  readonly voice: string
  readonly language: string
}

export type Spoken = { readonly pcm: Pcm } | { readonly refused: 'speech_failed'; readonly detail: string }

export interface Speech {
  speak(request: SpeechRequest): Promise<Spoken>
}

const MAX_AT_ONCE = 2
const MAX_WAITING = 200
const TIMEOUT_MS = 15_000
const MAX_BYTES = 256 * 1024 * 1024
const CACHE_BYTES = 32 * 1024 * 1024

/**
 * Speech by espeak-ng in a process of its own (it is GPL-3, and a crash of it is no crash of ours), cached by
 * content.
 */
export function createSpeech(program = 'espeak-ng'): Speech {
  const cache = new Lru<Pcm>(CACHE_BYTES)
  const running = new Map<string, Promise<Spoken>>()
  const waiting: (() => void)[] = []
  let at_once = 0

  const turn = async () => {
    if (at_once >= MAX_AT_ONCE) await new Promise<void>(resolve => waiting.push(resolve))
    else at_once++
  }
  const done = () => {
    const next = waiting.shift()
    if (next) next()
    else at_once--
  }

  const synthesize = async (request: SpeechRequest, key: string): Promise<Spoken> => {
    if (waiting.length >= MAX_WAITING) return failed('too many texts wait to be spoken')
    await turn()
    try {
      const voice = voiceName(request)
      const spoken = await run(program, voice, request)
      // A language that espeak-ng lacks is spoken in English rather than not at all.
      const best = 'refused' in spoken && voice !== 'en' ? await run(program, 'en', request) : spoken
      if ('pcm' in best) cache.set(key, best.pcm, best.pcm.samples.byteLength)
      return best
    } finally {
      done()
    }
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
      const work = synthesize(request, key).finally(() => running.delete(key))
      running.set(key, work)
      return work
    },
  }
}

const failed = (detail: string): Spoken => ({ refused: 'speech_failed', detail })

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
async function run(program: string, voice: string, { text, ssml }: SpeechRequest): Promise<Spoken> {
  const end = await runBare(program, ['-v', voice, ...(ssml ? ['-m'] : []), '--stdin', '--stdout'], {
    input: ssml ? safeSsml(text) : speakable(text),
    limit_ms: TIMEOUT_MS,
    max_bytes: MAX_BYTES,
  })
  if (!end.ok) return failed(end.detail)
  const wav = readWav(end.stdout)
  return 'pcm' in wav ? { pcm: wav.pcm } : failed(wav.detail)
}

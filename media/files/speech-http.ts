import { createHash } from 'node:crypto'
import { boundedBytes } from '../../core/domain/bounded-map.ts'
import { safeSsml, speakable } from '../../core/domain/speech/ssml.ts'
import type { HttpClient } from '../../core/runtime/http/index.ts'
import type { AudioThreads } from './audio-threads.ts'
import { FairQueue } from './fair-queue.ts'
import { MAX_SPEECH_SECONDS, type Pcm } from './pcm.ts'
import { type Speech, type SpeechRequest, type Spoken, TOO_LONG } from './speech.ts'

const TIMEOUT_MS = 15_000
const MAX_BYTES = 32 * 1024 * 1024
const REQUESTS = { at_once: 64, owner_at_once: 8, owner_jobs: 50, owner_bytes: 1024 * 1024 }
const CACHE_BYTES = 32 * 1024 * 1024
/** Voices of the compatible form, which no engine over HTTP has but the operator's own. */
const OF_THE_FORM = /^(man|woman|alice|(polly|google)\..*)$/i
/** The statuses by which a provider refuses a voice or a model that it does not have. */
export const UNKNOWN_NAME: ReadonlySet<number> = new Set([400, 404, 422])

/** What is to be spoken, for an engine. */
interface Words {
  readonly plain: string
  /** Null for plain text. */
  readonly ssml: string | null
  readonly voice: string
  readonly language: string
}

/** The request that an engine understands; the body is JSON. */
export type SpeechAsked = (words: Words) => {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body: object
}

/**
 * Synthesizes speech by an HTTP engine, which may answer in any format that Play supports. Results are cached by
 * content. Concurrent requests of a project for the same text share one fetch. `usual` is the voice that speaks in
 * place of one that the engine does not have; null: the engine chooses itself.
 */
export function httpSpeech(
  asked: SpeechAsked,
  http: Pick<HttpClient, 'request'>,
  audio: Pick<AudioThreads, 'decode'>,
  usual: string | null = null,
): Speech {
  const cache = boundedBytes<string, Extract<Spoken, { pcm: Pcm }>>(CACHE_BYTES, ({ pcm }) => pcm.samples.byteLength)
  const requests = new FairQueue(REQUESTS)
  const running = new Map<string, Promise<Spoken>>()

  const ask = ({ text, ssml: marked, language }: SpeechRequest, voice: string) => {
    const ssml = marked ? safeSsml(text) : null
    const plain = ssml === null ? speakable(text) : ssml.replace(/<[^>]*>/g, ' ').trim()
    const { url, headers = {}, body } = asked({ plain, ssml, voice, language })
    return http.request({
      url,
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Accept: 'audio/wav, audio/*', ...headers },
      body: JSON.stringify(body),
      total_timeout_ms: TIMEOUT_MS,
      max_bytes: MAX_BYTES,
    })
  }

  const fetchSpeech = async (request: SpeechRequest, key: string): Promise<Spoken> => {
    const wanted = usual !== null && OF_THE_FORM.test(request.voice) ? usual : request.voice
    let warning: string | null = null
    let reply = await ask(request, wanted)
    if (reply.ok && UNKNOWN_NAME.has(reply.status) && usual !== null && wanted !== usual) {
      warning = `the voice "${wanted}" is not one of the engine's, whose default speaks instead`
      reply = await ask(request, usual)
    }
    if (!reply.ok) return { refused: 'speech_failed', detail: `the speech engine: ${reply.detail}` }
    if (reply.status < 200 || reply.status > 299)
      return { refused: 'speech_failed', detail: `the speech engine answered ${reply.status}` }
    const decoded = await audio.decode(reply.body, reply.headers['content-type'] ?? null, request.owner)
    if (!('pcm' in decoded)) return { refused: 'speech_failed', detail: `the speech engine: ${decoded.detail}` }
    if (decoded.pcm.samples.length > MAX_SPEECH_SECONDS * decoded.pcm.rate_hz) return TOO_LONG
    const spoken = { pcm: decoded.pcm, ...(warning === null ? {} : { warning }) }
    cache.set(key, spoken)
    return spoken
  }

  return {
    speak(request) {
      const key = createHash('sha256')
        .update(JSON.stringify([request.voice, request.language, request.ssml === true, request.text]))
        .digest('hex')
      const cached = cache.get(key)
      if (cached) return Promise.resolve(cached)
      // Each project has a turn of its own, so only its own requests share a job.
      const own = `${request.owner} ${key}`
      const shared = running.get(own)
      if (shared) return shared
      const queued = requests.run(request.owner, request.text.length, () => fetchSpeech(request, key))
      const detail = 'too many texts of the project wait to be spoken'
      if (!queued) return Promise.resolve({ refused: 'speech_failed', detail })
      const work = queued.finally(() => running.delete(own))
      running.set(own, work)
      return work
    },
  }
}

import type { HttpClient } from '../../core/runtime/http/index.ts'
import { byUtterance, type Utterance } from './by-utterance.ts'
import { parsed, type Recognizer, readResult } from './recognizer.ts'
import { wavFile } from './wav-file.ts'

const TIMEOUT_MS = 15_000

/**
 * Recognises speech by an HTTP engine. Each utterance is posted as a WAV file of 8 kHz, 16 bits, with the settings in
 * the query. The answer is JSON: `{"transcript", "confidence", "language"}`.
 */
export function httpRecognizer(engine: string, http: Pick<HttpClient, 'request'>): Recognizer {
  return byUtterance(async ({ samples, track, settings, stop }: Utterance) => {
    const url = new URL(engine)
    const { language, hints, model, enhanced, profanity_filter, punctuation, call_sid, account_sid } = settings
    const options = { language, enhanced, profanity_filter, punctuation, track, call_sid }
    for (const [name, value] of Object.entries(options)) url.searchParams.set(name, String(value))
    if (hints.length > 0) url.searchParams.set('hints', hints.join(','))
    if (model !== null) url.searchParams.set('model', model)
    const reply = await http.request({
      url: url.href,
      method: 'POST',
      headers: { 'Content-Type': 'audio/wav', Accept: 'application/json' },
      body: wavFile(samples),
      total_timeout_ms: TIMEOUT_MS,
      signal: stop,
      project_id: account_sid,
    })
    if (!reply.ok) return { fault: reply.detail }
    const result = reply.status >= 200 && reply.status < 300 ? readResult(parsed(reply.body.toString()), track) : null
    return result ?? { fault: `the recognizer answered ${reply.status} without a transcript` }
  })
}

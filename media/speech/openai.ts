import { randomBytes } from 'node:crypto'
import type { HttpClient } from '../../core/runtime/http/index.ts'
import { UNKNOWN_NAME } from '../files/speech-http.ts'
import { byUtterance, type Utterance } from './by-utterance.ts'
import { askedModel, unknownModel } from './models.ts'
import { parsed, type RecognitionSettings, type Recognizer, readResult } from './recognizer.ts'
import { wavFile } from './wav-file.ts'

interface Provider {
  /** The API's base, such as https://api.openai.com/v1. */
  readonly url: string
  readonly api_key: string
  readonly model: string | null
}

const TIMEOUT_MS = 15_000
const MODEL = 'whisper-1'

/**
 * Recognises speech by `POST {url}/audio/transcriptions`, as OpenAI documents it and as many servers have it: a form
 * with `file`, `model`, `language` (ISO 639-1), `prompt` and `response_format=json`; the answer has `text`.
 */
export function openAiRecognizer({ url, api_key, model }: Provider, http: Pick<HttpClient, 'request'>): Recognizer {
  const usual = model ?? MODEL
  /** The sessions whose model the server does not have. */
  const unknown = new WeakSet<RecognitionSettings>()
  const ask = ({ samples, settings, stop }: Utterance, wanted: string) => {
    const { language, hints, account_sid } = settings
    const fields = {
      model: wanted,
      language: language.split('-')[0] ?? 'en',
      response_format: 'json',
      ...(hints.length > 0 ? { prompt: hints.join(', ') } : {}),
    }
    const form = multipart(fields, wavFile(samples))
    return http.request({
      url: `${url}/audio/transcriptions`,
      method: 'POST',
      headers: { Authorization: `Bearer ${api_key}`, 'Content-Type': form.type, Accept: 'application/json' },
      body: form.body,
      total_timeout_ms: TIMEOUT_MS,
      signal: stop,
      project_id: account_sid,
    })
  }
  return byUtterance(async utterance => {
    const { settings, track } = utterance
    const asked = askedModel(settings.model, 'openai')
    const wanted = unknown.has(settings) ? usual : (asked.model ?? usual)
    let warning = asked.warning
    let reply = await ask(utterance, wanted)
    if (reply.ok && UNKNOWN_NAME.has(reply.status) && wanted !== usual) {
      unknown.add(settings)
      warning = unknownModel(wanted)
      reply = await ask(utterance, usual)
    }
    if (!reply.ok) return { fault: reply.detail }
    const result = reply.status >= 200 && reply.status < 300 ? readResult(parsed(reply.body.toString()), track) : null
    if (!result) return { fault: `the recognizer answered ${reply.status} without a text` }
    return warning === undefined ? result : { ...result, warning }
  })
}

/** Encodes a form with one WAV file (RFC 7578). */
function multipart(fields: Readonly<Record<string, string>>, file: Buffer): { type: string; body: Buffer } {
  const boundary = `strowger-${randomBytes(16).toString('hex')}`
  const part = (about: string) => `--${boundary}\r\nContent-Disposition: form-data; ${about}\r\n`
  const words = Object.entries(fields).map(([name, value]) => `${part(`name="${name}"`)}\r\n${value}\r\n`)
  const head = `${words.join('')}${part('name="file"; filename="speech.wav"')}Content-Type: audio/wav\r\n\r\n`
  const body = Buffer.concat([Buffer.from(head), file, Buffer.from(`\r\n--${boundary}--\r\n`)])
  return { type: `multipart/form-data; boundary=${boundary}`, body }
}

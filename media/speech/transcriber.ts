import { readFile, stat } from 'node:fs/promises'
import type { HttpClient } from '../../core/runtime/http/index.ts'
import type { Owner } from '../files/audio-threads.ts'
import { FairQueue } from '../files/fair-queue.ts'
import { readResult } from './recognizer.ts'

interface Transcript {
  /** Null when there is none. `fault` is the reason. */
  readonly text: string | null
  /** 0 to 1. */
  readonly confidence: number
  readonly fault: string | null
}

/** Transcribes a recording of a project. Never rejects. */
export type Transcriber = (file: string, language: string, owner: Owner) => Promise<Transcript>

const TIMEOUT_MS = 120_000
const MAX_FILE_BYTES = 64 * 1024 * 1024
/** A recording that waits is not in memory yet. */
const RECORDINGS = { owner_at_once: 16, at_once: 64, owner_jobs: 200, owner_bytes: 200 * MAX_FILE_BYTES }

/** Returns a transcriber that posts the WAV file to an HTTP engine, which answers `{"transcript", "confidence"}`. */
export function createTranscriber(url: string | null, http: Pick<HttpClient, 'request'>): Transcriber | null {
  if (url === null) return null
  const recordings = new FairQueue(RECORDINGS)
  const failed = (fault: string): Transcript => ({ text: null, confidence: 0, fault })
  const transcribe = async (file: string, language: string): Promise<Transcript> => {
    try {
      if ((await stat(file)).size > MAX_FILE_BYTES) return failed('the recording is too long to transcribe')
      const target = new URL(url)
      target.searchParams.set('language', language)
      const reply = await http.request({
        url: target.href,
        method: 'POST',
        headers: { 'Content-Type': 'audio/wav', Accept: 'application/json' },
        body: await readFile(file),
        read_timeout_ms: TIMEOUT_MS,
        total_timeout_ms: TIMEOUT_MS,
      })
      if (!reply.ok) return failed(reply.detail)
      const body: unknown = reply.status >= 200 && reply.status < 300 ? JSON.parse(reply.body.toString()) : null
      const result = readResult(body, 'inbound')
      return result
        ? { text: result.text, confidence: result.confidence, fault: null }
        : failed(`the transcription engine answered ${reply.status} without a transcript`)
    } catch (error) {
      return failed(error instanceof Error ? error.message : String(error))
    }
  }
  return async (file, language, owner) =>
    (await recordings.run(owner, MAX_FILE_BYTES, () => transcribe(file, language))) ??
    failed('too many recordings of the project wait to be transcribed')
}

import { parentPort } from 'node:worker_threads'
import { resample } from '../../native/index.ts'
import type { AudioJob, AudioReply } from './audio-threads.ts'
import { decodeAudio } from './decode.ts'
import { mp3Decoder } from './mp3.ts'
import { playedRate } from './pcm.ts'

/** A thread of audio-threads.ts. It does one job at a time. */

parentPort?.on('message', async (job: AudioJob) => {
  try {
    const reply = 'bytes' in job ? await decode(job) : fit(job)
    parentPort?.postMessage(reply, 'pcm' in reply && ordinary(reply.pcm.samples) ? [reply.pcm.samples.buffer] : [])
  } catch (error) {
    parentPort?.postMessage({ refused: 'audio_unsupported', detail: `the audio failed: ${(error as Error).message}` })
  }
})

const ordinary = (samples: Int16Array): samples is Int16Array<ArrayBuffer> => samples.buffer instanceof ArrayBuffer

/** Decodes audio into shared memory, because it is cached and fitted many times, by any thread. */
async function decode({ bytes, content_type }: Extract<AudioJob, { bytes: Uint8Array }>): Promise<AudioReply> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const decoded = await decodeAudio(buffer, content_type, mp3Decoder)
  if ('refused' in decoded) return decoded
  const samples = new Int16Array(new SharedArrayBuffer(decoded.pcm.samples.byteLength))
  samples.set(decoded.pcm.samples)
  return { pcm: { samples, rate_hz: decoded.pcm.rate_hz } }
}

/**
 * Resamples to the leg's rate, or lower for very long audio: the time to pass it to the data plane grows with its size.
 */
function fit({ samples, rate_hz, to_hz, from_ms }: Extract<AudioJob, { samples: Int16Array }>): AudioReply {
  const rest = samples.slice(Math.round((from_ms * rate_hz) / 1000))
  const best = playedRate(rest.length, rate_hz, to_hz)
  return { pcm: { samples: resample(rest, rate_hz, best), rate_hz: best } }
}

import { setPriority } from 'node:os'
import { parentPort } from 'node:worker_threads'
import { createMp3Encoder, type WasmMediaEncoder } from 'wasm-media-encoders'
import type { Mp3Format } from './shape.ts'

/** The thread that encodes MP3. Files take turns by pieces, so that a long one does not delay a short one. */

/** `pcm: null` ends the file. A job without `pcm` drops the file and gets no reply. */
export interface Mp3Job {
  readonly id: number
  readonly format: Mp3Format
  readonly pcm?: Uint8Array | null
}

export type Mp3Reply = { readonly id: number } & ({ readonly mp3: Uint8Array } | { readonly broken: string })

/** On Linux this is the thread's alone. Calls and requests go before downloads. */
const NICENESS = 10
/** What 16-bit samples are divided by. */
const FULL_SCALE = 32_768

const port = parentPort
if (!port) throw new Error('control/mp3/thread is a worker thread')
setPriority(NICENESS)

/** Entered before they are ready, so that a file which is given up meanwhile leaves none behind. */
const encoders = new Map<number, Promise<WasmMediaEncoder<'audio/mpeg'>>>()

function encoderOf({ id, format }: Mp3Job): Promise<WasmMediaEncoder<'audio/mpeg'>> {
  const known = encoders.get(id) ?? newEncoder(format)
  encoders.set(id, known)
  return known
}

async function newEncoder({ rate_hz, channels, kbps }: Mp3Format): Promise<WasmMediaEncoder<'audio/mpeg'>> {
  const encoder = await createMp3Encoder()
  // The recording's rates are all rates of MP3: nothing is resampled.
  const rate = rate_hz as 8000 | 16_000 | 24_000 | 32_000 | 48_000
  encoder.configure({ sampleRate: rate, outputSampleRate: rate, channels, bitrate: kbps as 32 | 64 | 128 })
  return encoder
}

/** Splits the samples into channels. */
function channelsOf(pcm: Uint8Array, channels: number): Float32Array[] {
  const view = new DataView(pcm.buffer, pcm.byteOffset, pcm.byteLength)
  const length = pcm.byteLength / (2 * channels)
  return Array.from({ length: channels }, (_, channel) => {
    const samples = new Float32Array(length)
    for (let at = 0; at < length; at++) samples[at] = view.getInt16(2 * (at * channels + channel), true) / FULL_SCALE
    return samples
  })
}

async function encode(job: Mp3Job, pcm: Uint8Array | null): Promise<Mp3Reply> {
  try {
    const encoder = await encoderOf(job)
    if (pcm === null) encoders.delete(job.id)
    const made = pcm === null ? encoder.finalize() : encoder.encode(channelsOf(pcm, job.format.channels))
    // What the encoder returns is its own memory.
    return { id: job.id, mp3: made.slice() }
  } catch (error) {
    encoders.delete(job.id)
    return { id: job.id, broken: error instanceof Error ? (error.stack ?? error.message) : String(error) }
  }
}

port.on('message', async (job: Mp3Job) => {
  if (job.pcm === undefined) {
    encoders.delete(job.id)
    return
  }
  const reply = await encode(job, job.pcm)
  port.postMessage(reply, 'mp3' in reply ? [reply.mp3.buffer as ArrayBuffer] : [])
})

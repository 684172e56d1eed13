import { Worker } from 'node:worker_threads'
import { lateThread } from '../../core/runtime/doors.ts'
import type { SampleRate } from '../../native/index.ts'
import { FairQueue } from './fair-queue.ts'
import { type Decoded, type Pcm, playedRate, unsupported } from './pcm.ts'
import { readPlainWav } from './wav.ts'

export type AudioJob =
  | { readonly bytes: Uint8Array; readonly content_type: string | null }
  | { readonly samples: Int16Array; readonly rate_hz: number; readonly to_hz: SampleRate; readonly from_ms: number }

export type AudioReply = Decoded

/** The project whose work it is. */
export type Owner = string

/**
 * Decodes and resamples audio on separate threads, because a long file takes seconds and must not delay other calls.
 * The threads start with the first job and end after a minute without one. A short piece that needs only a copy, as
 * most engines of speech send it, is read at once: the way to a thread and back would take longer.
 */
export interface AudioThreads {
  /** Decodes a file. Takes ownership of the bytes, which the caller must not use afterwards. */
  decode(bytes: Uint8Array, content_type: string | null, owner: Owner): Promise<Decoded>
  /** Returns the audio from an offset on, at a rate that a leg can play. */
  fit(pcm: Pcm, to_hz: SampleRate, from_ms: number, owner: Owner): Promise<Decoded>
  close(): Promise<void>
}

const THREADS = 2
const IDLE_MS = 60_000
/** A job that takes longer fails, and its thread is terminated. */
const JOB_LIMIT_MS = 60_000
const OWNER_BYTES = 256 * 1024 * 1024
/** Copying this much takes less than 0.1 ms. */
const COPY_BYTES = 512 * 1024

export function createAudioThreads(): AudioThreads {
  // One project can occupy only one of the threads.
  const queue = new FairQueue({ at_once: THREADS, owner_at_once: 1, owner_jobs: 100, owner_bytes: OWNER_BYTES })
  const resting: Worker[] = []
  const all = new Set<Worker>()
  let idle: NodeJS.Timeout | null = null

  const rest = (worker: Worker) => {
    if (!all.has(worker)) return
    worker.unref()
    resting.push(worker)
    if (idle) clearTimeout(idle)
    idle = setTimeout(() => void stop(resting), IDLE_MS).unref()
  }

  const stop = async (workers: Iterable<Worker>) => {
    await Promise.all(
      [...workers].map(worker => {
        all.delete(worker)
        const at = resting.indexOf(worker)
        if (at !== -1) resting.splice(at, 1)
        return worker.terminate()
      }),
    )
  }

  const start = () => {
    // The thread gets no environment variables.
    const { module, execArgv } = lateThread('media/files/audio-thread.js')
    const worker = new Worker(module, { env: {}, execArgv })
    for (const end of ['error', 'exit']) worker.on(end, () => void stop([worker]))
    all.add(worker)
    return worker
  }

  const run = (job: AudioJob): Promise<AudioReply> => {
    const worker = resting.pop() ?? start()
    worker.ref()
    return new Promise(resolve => {
      const over = (reply: AudioReply) => {
        clearTimeout(limit)
        worker.off('message', finish).off('error', broken).off('exit', ended)
        resolve(reply)
      }
      const finish = (reply: AudioReply) => {
        over(reply)
        rest(worker)
      }
      const failed = (detail: string) => {
        over(unsupported(detail))
        void stop([worker])
      }
      const broken = (error: Error) => failed(`the audio could not be decoded: ${error.message}`)
      const ended = () => failed('the audio decoder was stopped')
      const limit = setTimeout(() => failed('the audio took too long to decode'), JOB_LIMIT_MS)
      worker.on('message', finish).on('error', broken).on('exit', ended)
      worker.postMessage(job, 'bytes' in job && whole(job.bytes) ? [job.bytes.buffer] : [])
    })
  }

  const refused = unsupported('too much audio of the project waits to be decoded')
  return {
    async decode(bytes, content_type, owner) {
      const plain = bytes.byteLength <= COPY_BYTES ? readPlainWav(asBuffer(bytes)) : null
      if (plain) return { pcm: plain }
      return (await queue.run(owner, bytes.byteLength, () => run({ bytes, content_type }))) ?? refused
    },
    async fit({ samples, rate_hz }, to_hz, from_ms, owner) {
      const fits = from_ms === 0 && playedRate(samples.length, rate_hz, to_hz) === rate_hz
      if (fits && samples.byteLength <= COPY_BYTES) return { pcm: { samples: new Int16Array(samples), rate_hz } }
      const job = { samples, rate_hz, to_hz, from_ms }
      return (await queue.run(owner, samples.byteLength, () => run(job))) ?? refused
    },
    close: () => {
      if (idle) clearTimeout(idle)
      return stop([...all])
    },
  }
}

const asBuffer = (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** Reports whether the bytes fill their buffer, so that it can be transferred without a copy. */
const whole = (bytes: Uint8Array): bytes is Uint8Array<ArrayBuffer> =>
  bytes.buffer instanceof ArrayBuffer && bytes.byteLength === bytes.buffer.byteLength

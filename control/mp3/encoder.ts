import { Worker } from 'node:worker_threads'
import { lateThread } from '../../core/runtime/doors.ts'
import type { Mp3Format } from './shape.ts'
import type { Mp3Job, Mp3Reply } from './thread.ts'

/** Encodes MP3 on one thread, which starts with the first file and ends after a minute without one. */
export interface Mp3Encoder {
  /** Takes a place among the files that are made at once; null when the project, or all of them, have their share. */
  begin(project_id: string): Mp3Place | null
  close(): Promise<void>
}

export interface Mp3Place {
  /**
   * Encodes the next samples of the file, little-endian, whole frames of all channels; null ends the file. One call at
   * a time. Takes ownership of the bytes. @throws when the thread failed or the place was released
   */
  encode(format: Mp3Format, pcm: Uint8Array<ArrayBuffer> | null): Promise<Uint8Array>
  /** Gives the place back; more than once does nothing. */
  release(): void
}

/** Files that are made at once, one encoder of about half a megabyte each. A slow reader keeps a place, not the CPU. */
const PLACES = 64
const PLACES_OF_PROJECT = 4
const IDLE_MS = 60_000
/** The heap of the thread, without the memory of the encoders. */
const LIMITS = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 8 } as const

interface Waiting {
  resolve(mp3: Uint8Array): void
  reject(error: Error): void
}

interface Thread {
  readonly worker: Worker
  readonly waiting: Map<number, Waiting>
}

export function createMp3Encoder(): Mp3Encoder {
  const taken = new Map<string, number>()
  let places = 0
  let next_id = 1
  let thread: Thread | null = null
  let idle: NodeJS.Timeout | null = null

  /** Forgets the thread, so that the next file starts another one. What waits for it fails. */
  const ended = (one: Thread, error: Error) => {
    if (thread === one) thread = null
    for (const { reject } of one.waiting.values()) reject(error)
    one.waiting.clear()
  }

  const stop = async () => {
    const last = thread
    if (!last) return
    ended(last, new Error('the MP3 encoder was stopped'))
    await last.worker.terminate()
  }

  const start = (): Thread => {
    const { module, execArgv } = lateThread('control/mp3/thread.js')
    // The thread gets no environment variables.
    const worker = new Worker(module, { env: {}, execArgv, resourceLimits: LIMITS })
    const one: Thread = { worker, waiting: new Map() }
    worker.on('message', (reply: Mp3Reply) => {
      const waiting = one.waiting.get(reply.id)
      one.waiting.delete(reply.id)
      if ('mp3' in reply) waiting?.resolve(reply.mp3)
      else waiting?.reject(new Error(reply.broken))
    })
    worker.on('error', error => ended(one, error instanceof Error ? error : new Error(String(error))))
    worker.on('exit', code => ended(one, new Error(`the MP3 encoder ended with code ${code}`)))
    return one
  }

  return {
    begin(project_id) {
      const own = taken.get(project_id) ?? 0
      if (places >= PLACES || own >= PLACES_OF_PROJECT) return null
      places++
      taken.set(project_id, own + 1)
      if (idle) clearTimeout(idle)
      const id = next_id++
      let used: Thread | null = null
      let released = false
      return {
        encode(format, pcm) {
          if (released) return Promise.reject(new Error('the file is not wanted any more'))
          thread ??= start()
          used ??= thread
          // A file that another thread began cannot go on.
          if (used !== thread) return Promise.reject(new Error('the MP3 encoder ended inside the file'))
          const { worker, waiting } = used
          worker.ref()
          return new Promise((resolve, reject) => {
            waiting.set(id, { resolve, reject })
            const job: Mp3Job = { id, format, pcm }
            worker.postMessage(job, pcm ? [pcm.buffer] : [])
          })
        },
        release() {
          if (released) return
          released = true
          places--
          const left = (taken.get(project_id) ?? 1) - 1
          if (left === 0) taken.delete(project_id)
          else taken.set(project_id, left)
          used?.waiting.get(id)?.reject(new Error('the file is not wanted any more'))
          used?.waiting.delete(id)
          if (used && used === thread) used.worker.postMessage({ id } satisfies Pick<Mp3Job, 'id'>)
          if (places > 0) return
          thread?.worker.unref()
          idle = setTimeout(() => void stop(), IDLE_MS).unref()
        },
      }
    },
    async close() {
      if (idle) clearTimeout(idle)
      await stop()
    },
  }
}

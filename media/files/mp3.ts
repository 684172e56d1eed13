import { Worker } from 'node:worker_threads'
import { type Decoded, unsupported } from './pcm.ts'

export interface Mp3Decoder {
  decode(bytes: Buffer): Promise<Decoded>
  close(): Promise<void>
}

type Reply = { id: number; samples: Int16Array; rate_hz: number } | { id: number; detail: string }

const MAX_WAITING = 100
const IDLE_MS = 60_000

/**
 * Decodes MPEG audio on a thread of its own: a long file takes seconds, and requests of other calls must not wait for
 * it. The thread starts with the first file and ends after a minute without one.
 */
export function createMp3Decoder(): Mp3Decoder {
  let worker: Worker | null = null
  let idle: NodeJS.Timeout | null = null
  let next_id = 1
  const waiting = new Map<number, (decoded: Decoded) => void>()

  const finish = (id: number, decoded: Decoded) => {
    waiting.get(id)?.(decoded)
    waiting.delete(id)
    if (waiting.size > 0) return
    worker?.unref()
    idle = setTimeout(() => void stop(), IDLE_MS).unref()
  }

  const stop = async () => {
    if (idle) clearTimeout(idle)
    idle = null
    const ending = worker
    worker = null
    for (const resolve of waiting.values()) resolve(unsupported('the MP3 decoder was stopped'))
    waiting.clear()
    await ending?.terminate()
  }

  const start = () => {
    const started = new Worker(new URL('./mp3-thread.js', import.meta.url))
    started.on('message', (reply: Reply) => {
      if ('detail' in reply) finish(reply.id, unsupported(reply.detail))
      else finish(reply.id, { pcm: { samples: reply.samples, rate_hz: reply.rate_hz } })
    })
    started.on('error', error => {
      worker = null
      for (const id of [...waiting.keys()]) finish(id, unsupported(`the MP3 decoder failed: ${error.message}`))
    })
    return started
  }

  return {
    decode(bytes) {
      if (waiting.size >= MAX_WAITING) return Promise.resolve(unsupported('too many MP3 files wait to be decoded'))
      if (idle) clearTimeout(idle)
      idle = null
      worker ??= start()
      worker.ref()
      const id = next_id++
      const running = worker
      return new Promise(resolve => {
        waiting.set(id, resolve)
        running.postMessage({ id, bytes })
      })
    },
    close: stop,
  }
}

import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { lateThread } from '../../core/runtime/doors.ts'
import type { Slice, SliceOutcome } from './slice.ts'
import type { ExportThreadData, SliceReply } from './thread.ts'

/** The thread that writes slices, one at a time. */
export interface SliceWriter {
  /** @throws when the slice failed unexpectedly, or the thread ended */
  write(slice: Slice): Promise<SliceOutcome>
  close(): Promise<void>
}

/** The heap of the thread. Lines come as buffers beside it, and nothing else is made for each row. */
const LIMITS = { maxOldGenerationSizeMb: 24, maxYoungGenerationSizeMb: 2 } as const

/** Starts the thread. */
export function startSliceWriter(data: ExportThreadData): SliceWriter {
  const { module, execArgv } = lateThread('control/exports/thread.js')
  const worker = new Worker(module, { env: {}, execArgv, workerData: data, resourceLimits: LIMITS })
  const ended = new Promise<Error>(resolve => {
    worker.once('error', error => resolve(error instanceof Error ? error : new Error(String(error))))
    worker.once('exit', code => resolve(new Error(`the thread of exports ended with code ${code}`)))
  })
  return {
    async write(slice) {
      const replied = once(worker, 'message').then(([reply]) => reply as SliceReply)
      worker.postMessage(slice)
      // `once` rejects with the same error, and no other code waits for it.
      replied.catch(() => undefined)
      const reply = await Promise.race([replied, ended])
      if (reply instanceof Error) throw reply
      if ('broken' in reply) throw new Error(reply.broken)
      return reply
    },
    async close() {
      // A slice in progress is cut off: its job goes on where the last stored slice ended.
      await worker.terminate()
    },
  }
}

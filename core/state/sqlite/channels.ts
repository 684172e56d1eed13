import { Worker } from 'node:worker_threads'
import { builtModule } from '../../runtime/tree.ts'
import type { FromThread, ThreadData, ToThread, WorkCounts, WorkerSettings } from './protocol.ts'
import { serve } from './serve.ts'
import { type Connection, openConnection } from './steps.ts'

/** The way to a connection. */
export interface Channel {
  send(message: ToThread): void
  /** Keeps the process alive until the next `unref`. */
  ref(): void
  unref(): void
}

interface ChannelEvents {
  answered(message: FromThread): void
  /** The connection could not be opened, or its thread has failed. */
  failed(error: Error): void
  ended(): void
}

export type OpenChannel = (settings: WorkerSettings, counts: WorkCounts, events: ChannelEvents) => Channel

/** Opens a connection that a thread of its own holds (decision 0002). */
export const toThread: OpenChannel = (settings, counts, events) => {
  const worker = new Worker(builtModule('core/state/sqlite/worker.js'), {
    workerData: { ...settings, counts: counts.shared } satisfies ThreadData,
  })
  worker.on('message', (message: FromThread) => events.answered(message))
  worker.on('error', error => events.failed(error instanceof Error ? error : new Error(String(error))))
  worker.on('exit', () => events.ended())
  return { send: message => worker.postMessage(message), ref: () => worker.ref(), unref: () => worker.unref() }
}

/** Opens a connection on this thread, for a command: it has nothing else to do while SQLite works. */
export const toThisThread: OpenChannel = (settings, counts, events) => {
  let connection: Connection
  try {
    connection = openConnection(settings, counts)
  } catch (error) {
    // Like a thread, it fails once its owner can be told.
    queueMicrotask(() => events.failed(error as Error))
    return { send: () => queueMicrotask(() => events.ended()), ref() {}, unref() {} }
  }
  const take = serve(connection, { reply: events.answered, next: () => undefined, closed: events.ended })
  return { send: take, ref() {}, unref() {} }
}

import { Worker } from 'node:worker_threads'
import { builtModule } from '../../runtime/tree.ts'
import type { ProcedureName } from '../procedures/table.ts'
import { closedError, stateError } from './errors.ts'
import {
  type FromThread,
  type ProcedureReply,
  type ProcedureRequest,
  type ThreadData,
  type ToThread,
  WorkCounts,
  type WorkerReply,
  type WorkerRequest,
  type WorkerSettings,
} from './protocol.ts'

interface Waiting {
  readonly resolve: (reply: never) => void
  readonly reject: (error: Error) => void
}

/** A procedure call that awaits its result. */
export interface AskedProcedure {
  readonly name: ProcedureName
  readonly input: unknown
  readonly until_ms: number
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

/**
 * The client of a thread that owns a SQLite connection. Kysely's session sends one request at a time. Procedures are
 * sent at once, however many are waiting, and the thread commits waiting procedures together (decision 0531).
 */
export class StateThread {
  readonly #worker: Worker
  readonly counts = new WorkCounts()
  /** Messages sent to the thread. */
  messages = 0
  readonly #waiting = new Map<number, Waiting>()
  readonly #ended: Promise<void>
  #next = 1
  #failure: Error | undefined
  /** While closing, a reply must not unref the worker: the process would exit before the thread has ended. */
  #closing = false

  constructor(settings: WorkerSettings) {
    this.#worker = new Worker(builtModule('core/state/sqlite/worker.js'), {
      workerData: { ...settings, counts: this.counts.shared } satisfies ThreadData,
    })
    this.#worker.on('message', (message: FromThread) => this.#answered(message))
    this.#worker.on('error', error => this.#fail(error instanceof Error ? error : new Error(String(error))))
    this.#ended = new Promise(resolve => {
      this.#worker.on('exit', () => {
        this.#fail(closedError())
        resolve()
      })
    })
    this.#worker.unref()
  }

  /** Runs statements of the session, which awaits each reply before its next request. @throws StateError */
  run(request: Omit<WorkerRequest, 'id'>): Promise<WorkerReply> {
    return this.#wait<WorkerReply>(id => this.#send({ id, ...request }))
  }

  /** Reports whether any request awaits its reply. */
  get busy(): boolean {
    return this.#waiting.size > 0
  }

  /** Sends all procedures in one message. The thread reports the outcome of each separately. */
  procedures(asked: readonly AskedProcedure[]): void {
    const requests: string[] = []
    for (const { name, input, until_ms, resolve, reject } of asked)
      this.#wait<ProcedureReply>(id => {
        requests.push(JSON.stringify({ id, name, input, until_ms } satisfies ProcedureRequest))
      }).then(({ result }) => resolve(result), reject)
    if (requests.length > 0) this.#send(`[${requests.join(',')}]`)
  }

  async close(): Promise<void> {
    this.#closing = true
    this.#worker.ref()
    this.#send('close')
    await this.#ended
  }

  #send(message: ToThread): void {
    this.messages++
    this.#worker.postMessage(message)
  }

  #wait<Reply>(send: (id: number) => void): Promise<Reply> {
    if (this.#failure) return Promise.reject(this.#failure)
    return new Promise<Reply>((resolve, reject) => {
      const id = this.#next++
      if (this.#waiting.size === 0) this.#worker.ref()
      this.#waiting.set(id, { resolve, reject })
      send(id)
    })
  }

  #answered(message: FromThread): void {
    const replies = typeof message === 'string' ? (JSON.parse(message) as ProcedureReply[]) : [message]
    for (const reply of replies) {
      const waiting = this.#waiting.get(reply.id)
      this.#waiting.delete(reply.id)
      if (reply.error) waiting?.reject(stateError(reply.error.message, reply.error.code))
      else waiting?.resolve(reply as never)
    }
    if (this.#waiting.size === 0 && !this.#closing) this.#worker.unref()
  }

  #fail(error: Error): void {
    this.#failure = error
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
  }
}

import { closedError } from '../port.ts'
import type { ProcedureName } from '../procedures/table.ts'
import type { Channel, OpenChannel } from './channels.ts'
import { stateError } from './errors.ts'
import {
  type FromThread,
  type ProcedureReply,
  type ProcedureRequest,
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
 * The client of a SQLite connection, which a thread owns as a rule. Kysely's session sends one request at a time.
 * Procedures are sent at once, however many are waiting, and the thread commits waiting procedures together (decision
 * 0002).
 */
export class StateThread {
  readonly #channel: Channel
  readonly counts = new WorkCounts()
  /** Messages sent to the thread. */
  messages = 0
  readonly #waiting = new Map<number, Waiting>()
  #ended: () => void = () => undefined
  readonly #end = new Promise<void>(resolve => {
    this.#ended = resolve
  })
  #next = 1
  #failure: Error | undefined
  /** While closing, a reply must not unref the worker: the process would exit before the thread has ended. */
  #closing = false

  constructor(settings: WorkerSettings, open: OpenChannel) {
    this.#channel = open(settings, this.counts, {
      answered: message => this.#answered(message),
      failed: error => this.#fail(error),
      ended: () => {
        this.#fail(closedError())
        this.#ended()
      },
    })
    this.#channel.unref()
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
    this.#channel.ref()
    this.#send('close')
    await this.#end
  }

  #send(message: ToThread): void {
    this.messages++
    this.#channel.send(message)
  }

  #wait<Reply>(send: (id: number) => void): Promise<Reply> {
    if (this.#failure) return Promise.reject(this.#failure)
    return new Promise<Reply>((resolve, reject) => {
      const id = this.#next++
      if (this.#waiting.size === 0) this.#channel.ref()
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
    if (this.#waiting.size === 0 && !this.#closing) this.#channel.unref()
  }

  #fail(error: Error): void {
    this.#failure = error
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
  }
}

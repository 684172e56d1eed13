import { Worker } from 'node:worker_threads'
import { builtModule } from '../../runtime/tree.ts'
import {
  type FromThread,
  PROCEDURE_PREFIX,
  type ThreadData,
  type ToThread,
  type WorkCounts,
  type WorkerSettings,
} from './protocol.ts'
import { serve } from './serve.ts'
import { type Connection, openConnection, type Procedures } from './steps.ts'

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

/** Reports whether a message asks for a procedure, alone or among the steps of a session. */
const asksProcedure = (message: ToThread): boolean =>
  typeof message === 'string' ? message !== 'close' : message.steps.some(({ sql }) => sql.startsWith(PROCEDURE_PREFIX))

/** Procedures that are loaded when the first is asked for: most commands run none. */
class LateProcedures {
  #known: Procedures | undefined
  /** Messages behind the first that asked; null while none waits. */
  #waiting: ToThread[] | null = null

  readonly runner: Procedures = (database, prepared) => {
    let run: ReturnType<Procedures> | undefined
    return (name, input) => {
      if (!this.#known) throw new Error(`${name} was not loaded`)
      run ??= this.#known(database, prepared)
      return run(name, input)
    }
  }

  /** Hands a message on, behind those that wait. */
  pass(message: ToThread, take: (message: ToThread) => void, failed: (error: Error) => void): void {
    if (this.#waiting) this.#waiting.push(message)
    else if (this.#known || !asksProcedure(message)) take(message)
    else {
      this.#waiting = [message]
      this.#load().then(
        () => {
          const waiting = this.#waiting ?? []
          this.#waiting = null
          for (const one of waiting) take(one)
        },
        error => {
          // The connection can still be closed.
          this.#waiting = null
          failed(error)
        },
      )
    }
  }

  async #load(): Promise<void> {
    const { procedureRunner } = await import('./run-procedure.ts')
    this.#known = procedureRunner
  }
}

/** Opens a connection on this thread, for a command: it has nothing else to do while SQLite works. */
export const toThisThread: OpenChannel = (settings, counts, events) => {
  const late = new LateProcedures()
  let connection: Connection
  try {
    connection = openConnection(settings, { procedures: late.runner, counts })
  } catch (error) {
    // Like a thread, it fails once its owner can be told.
    queueMicrotask(() => events.failed(error as Error))
    return { send: () => queueMicrotask(() => events.ended()), ref() {}, unref() {} }
  }
  const take = serve(connection, { reply: events.answered, next: () => undefined, closed: events.ended })
  return { send: message => late.pass(message, take, events.failed), ref() {}, unref() {} }
}

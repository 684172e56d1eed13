import type { LoneConnection } from './lone.ts'
import type { AskedProcedure, StateThread } from './thread.ts'

/**
 * Procedures in transactions of their own. Those that are asked for in one turn of the event loop are handed to the
 * state's thread together (decision 0531); one that is alone, while that thread has nothing under way, is run here when
 * there is a connection for it (decision 0510).
 */
export class ProcedureCalls {
  readonly #thread: StateThread
  #lone: LoneConnection | null
  /** Of this turn of the event loop. */
  #asked: AskedProcedure[] = []

  constructor(thread: StateThread, lone: LoneConnection | null) {
    this.#thread = thread
    this.#lone = lone
  }

  /** Input and result are plain data, which nobody changes any more. @throws StateError */
  call<Result>(name: string, input: unknown): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      this.#asked.push({ name, input, resolve: resolve as AskedProcedure['resolve'], reject })
      if (this.#asked.length === 1) setImmediate(() => this.#begin())
    })
  }

  /** Begins what was asked for until now. */
  #begin(): void {
    const asked = this.#asked
    this.#asked = []
    const [only] = asked
    if (!only) return
    // What the thread has begun comes first, and what comes together is committed together.
    const alone = asked.length === 1 && !this.#thread.busy
    if (!alone) this.#lone?.crowded()
    if (!alone || !this.#runHere(only)) this.#thread.procedures(asked)
  }

  close(): void {
    this.#begin()
    this.#lone?.close()
    this.#lone = null
  }

  #runHere({ name, input, resolve, reject }: AskedProcedure): boolean {
    if (!this.#lone) return false
    try {
      const done = this.#lone.procedure(name, input)
      if (done) resolve(done.result)
      return done !== null
    } catch (error) {
      reject(error as Error)
      return true
    }
  }
}

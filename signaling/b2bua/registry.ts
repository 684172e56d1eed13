import type { Call } from './call.ts'

/** The live calls of this node, by sid. A call enters when it has an owner and leaves when it has ended. */
export class CallRegistry {
  readonly #calls = new Map<string, Call>()
  readonly #idle = new Set<() => void>()

  get size(): number {
    return this.#calls.size
  }

  get(sid: string): Call | undefined {
    return this.#calls.get(sid)
  }

  all(): Call[] {
    return [...this.#calls.values()]
  }

  add(call: Call): void {
    this.#calls.set(call.sid, call)
  }

  remove(sid: string): void {
    this.#calls.delete(sid)
    if (this.#calls.size > 0) return
    for (const listener of this.#idle) listener()
    this.#idle.clear()
  }

  /** When there is no call any more. */
  whenIdle(): Promise<void> {
    if (this.#calls.size === 0) return Promise.resolve()
    return new Promise(resolve => this.#idle.add(resolve))
  }
}

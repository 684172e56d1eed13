import { StateError } from '../port.ts'
import type { ProcedureName } from '../procedures/table.ts'
import type { Link } from './link.ts'
import type { Pool } from './pool.ts'
import { runProcedure } from './run-procedure.ts'
import { inTurn } from './turns.ts'

/** Procedures that one turn runs at most: the other processes wait for their turns. */
const MOST_AT_ONCE = 16
const SAVEPOINT = 'savepoint procedure'
const RELEASE = 'release savepoint procedure'
const UNDO = 'rollback to savepoint procedure; release savepoint procedure'

interface Waiting {
  readonly name: ProcedureName
  readonly input: unknown
  /** The procedure begins: its deadline is over. */
  begin(): void
  resolve(value: unknown): void
  reject(error: unknown): void
}

/**
 * Runs the procedures of this process that are not part of a transaction. Those that wait while another writer has its
 * turn share the next one, and its commit, each as a savepoint; none is answered before it.
 */
export class ProcedureTurns {
  readonly #pool: Pool
  /** How long they wait for a connection and for their turn. */
  readonly #busy_timeout_ms: number
  readonly #waiting: Waiting[] = []
  #running = false

  constructor(pool: Pool, busy_timeout_ms: number) {
    this.#pool = pool
    this.#busy_timeout_ms = busy_timeout_ms
  }

  /** Runs a procedure. Fails as busy when it has not begun within `within_ms`. @throws StateError */
  call(name: ProcedureName, input: unknown, within_ms: number): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const one: Waiting = { name, input, begin: () => clearTimeout(late), resolve, reject }
      const late = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(one), 1)
        reject(new StateError(`${name} could not begin in time`, { code: 'NO_TURN', failure: 'busy' }))
      }, within_ms)
      this.#waiting.push(one)
      if (!this.#running) void this.#runAll()
    })
  }

  async #runAll(): Promise<void> {
    this.#running = true
    while (this.#waiting.length > 0) {
      const begun: Waiting[] = []
      const done: (() => void)[] = []
      try {
        await inTurn(this.#pool, this.#busy_timeout_ms, async (link, now_ms) => {
          const begun_ms = performance.now()
          for (let one = this.#next(); one; one = begun.length < MOST_AT_ONCE ? this.#next() : undefined) {
            begun.push(one)
            const now = now_ms + Math.floor(performance.now() - begun_ms)
            await this.#runOne(link, one, { now_ms: now, first: begun.length === 1, done })
          }
        })
        for (const tell of done) tell()
      } catch (error) {
        // Without a turn nobody has begun, and all that wait have waited for it.
        if (begun.length === 0) for (let one = this.#next(); one; one = this.#next()) begun.push(one)
        for (const one of begun) one.reject(error)
      }
    }
    this.#running = false
  }

  #next(): Waiting | undefined {
    const one = this.#waiting.shift()
    one?.begin()
    return one
  }

  async #runOne(
    link: Link,
    one: Waiting,
    { now_ms, first, done }: { readonly now_ms: number; readonly first: boolean; readonly done: (() => void)[] },
  ): Promise<void> {
    const runner = { run: link.run.bind(link), send: link.send.bind(link) }
    // The first needs none: its failure undoes the turn, in which nothing else has begun.
    if (!first) link.send(SAVEPOINT, [])
    try {
      const value = await runProcedure(one.name, one.input, runner, now_ms)
      if (!first) link.send(RELEASE, [])
      if (!first || this.#waiting.length > 0) await link.settled()
      done.push(() => one.resolve(value))
    } catch (error) {
      const cause = await link.settled().then(
        () => error,
        earlier => earlier,
      )
      if (first || link.broken) throw cause
      await link.run(UNDO)
      one.reject(cause)
    }
  }
}

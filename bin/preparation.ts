import { type ChildProcess, fork } from 'node:child_process'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { builtModule } from '../core/runtime/tree.ts'
import type { Environment } from '../core/runtime/variables.ts'

/** The messages between the supervisor and the process that prepares the state, in both directions. */
export interface PreparationWord {
  /** From the process: the database has no damage, as far as a start checks. */
  readonly sound?: true
  /** To the process: begin. The port is that of the sandbox carrier. */
  readonly prepare?: { readonly sandbox_port: number }
  /** From the process: the state is ready. The supervisor prints these lines. */
  readonly lines?: readonly string[]
  /** From the process: why the platform cannot start. */
  readonly refused?: string
}

/**
 * The process that prepares the state for a start (`bin/prepare.ts`). The libraries and statements that it needs would
 * stay in the supervisor for as long as the platform runs. It loads them while the supervisor does other work.
 */
export class Preparation {
  readonly #child: ChildProcess
  /** Resolves when the database was checked. Rejects with StartRefused when it is damaged. */
  readonly sound: Promise<true>
  readonly #lines: Promise<readonly string[]>

  constructor(env: Environment) {
    this.#child = fork(builtModule('bin/prepare.js'), [], { env: { ...env } })
    this.sound = this.#hear(({ sound }) => sound)
    this.#lines = this.#hear(({ lines }) => lines)
    // An unhandled rejection would end the process. Callers that await these promises still get theirs.
    for (const one of [this.sound, this.#lines]) one.catch(() => undefined)
  }

  /** Migrates the state. Resolves with the lines that a newcomer needs. @throws StartRefused */
  async prepare(sandbox_port: number): Promise<readonly string[]> {
    this.#child.send({ prepare: { sandbox_port } } satisfies PreparationWord)
    const lines = await this.#lines
    if (this.#child.connected) this.#child.disconnect()
    return lines
  }

  /** Ends the process, also one that works: its transaction is rolled back. Resolves when it has ended. */
  async end(): Promise<void> {
    const { pid, exitCode, signalCode } = this.#child
    if (pid === undefined || exitCode !== null || signalCode !== null) return
    const ended = new Promise(resolve => this.#child.once('exit', resolve))
    // Not by the end of the channel, which it does not see while SQLite works.
    this.#child.kill()
    await ended
  }

  #hear<T>(what: (word: PreparationWord) => T | undefined): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#child.on('message', (word: PreparationWord) => {
        if (word.refused !== undefined) reject(new StartRefused(word.refused))
        const said = what(word)
        if (said !== undefined) resolve(said)
      })
      this.#child.once('error', reject)
      // It waits for the end of the channel, so it has not said all.
      this.#child.once('exit', (code, signal) =>
        reject(new StartRefused(`the process that prepares the state ended (${signal ?? `exit code ${code}`})`)),
      )
    })
  }
}

import type { Clock } from '../../core/runtime/clock.ts'
import type { Log } from '../../core/runtime/log.ts'
import { isGone, type Machine, processName, processNamed } from '../../core/runtime/machine.ts'
import { Sleeper } from '../../core/runtime/sleeper.ts'
import type { State } from '../../core/state/index.ts'
import { holdTask, releaseTask } from '../../core/state/nodes/task-lease-rows.ts'

const NAME = 'carrier registrations'
const RENEW_MS = 5_000

interface TurnOptions {
  readonly machine: Machine
  readonly state: State
  readonly clock: Clock
  readonly log: Log
  /** A node that takes no calls must not be where carriers send theirs. */
  readonly draining: () => boolean
  /** Called when this node's turn to register begins or ends. */
  readonly changed: (mine: boolean) => void
}

/**
 * Of the nodes that share a state, one registers with carriers: a carrier sends a call to each contact that it knows.
 * The turn passes on when the node drains or stops, and 15 s after it was lost.
 */
export class RegistrationTurn {
  readonly #options: TurnOptions
  readonly #holder: string
  readonly #sleeper: Sleeper
  #mine = false

  constructor(options: TurnOptions) {
    this.#options = options
    const { clock, log, machine } = options
    this.#holder = processName({ ...machine, pid: process.pid })
    this.#sleeper = new Sleeper({
      work: () => this.#take(),
      // No other node can take the turn meanwhile, so registrations stay.
      failed: err => log.warn({ err }, 'the lease for carrier registrations could not be read'),
      every: { clock, period_ms: RENEW_MS },
    })
  }

  get mine(): boolean {
    return this.#mine
  }

  /** Looks at once whether it is this node's turn. */
  look(): Promise<void> {
    return this.#sleeper.wake()
  }

  /** Passes the turn on. Call it when the registrations have ended. */
  async stop(): Promise<void> {
    await this.#sleeper.stop()
    await this.#release()
  }

  async #take(): Promise<void> {
    const { state, machine, clock, draining } = this.#options
    if (draining()) {
      if (!this.#mine) return
      this.#turn(false)
      await this.#release()
      return
    }
    const gone = (holder: string): boolean => isGone(processNamed(holder), machine)
    const asked = { name: NAME, holder: this.#holder, now: () => clock.now(), isGone: gone }
    const term = await holdTask(state, asked)
    this.#turn(term !== null)
  }

  #turn(mine: boolean): void {
    if (this.#mine === mine) return
    this.#mine = mine
    this.#options.changed(mine)
  }

  async #release(): Promise<void> {
    const { state, log } = this.#options
    await releaseTask(state.db, NAME, this.#holder).catch(err =>
      log.warn({ err }, 'the lease for carrier registrations was not released'),
    )
  }
}

import type { Bus } from '../core/runtime/bus.ts'
import { type Clock, pause } from '../core/runtime/clock.ts'
import type { Log } from '../core/runtime/log.ts'
import { callsOfNode } from '../core/state/calls/running-calls.ts'
import { untriedCallbacks } from '../core/state/delivery/outbox-delivery.ts'
import type { State } from '../core/state/index.ts'
import { isAskedToDrain, saveDraining } from '../core/state/nodes/nodes.ts'
import type { CallRegistry } from './b2bua/registry.ts'

const LOOK_MS = 200
/** How long the callbacks of the last call may take to leave, once it has ended. */
const CALLBACKS_LIMIT_MS = 5000

interface DrainOptions {
  readonly node_id: string
  readonly state: State
  readonly bus: Bus
  readonly clock: Clock
  readonly log: Log
  readonly calls: CallRegistry
  /** In the place of a node that was killed while it drained: so long its own drain takes at least. */
  readonly least_ms: number
}

/**
 * A node that drains takes no new call, from peers, from the API, by Dial or by transfer; those that run go on to their
 * own end. It is asked by its row (`strowger drain`, which can also take it back) or by the supervisor, which cannot.
 */
export class Drain {
  /** Resolves when the node drains and its last call has ended, with its record written and its callbacks tried. */
  readonly done: Promise<void>
  readonly #options: DrainOptions
  readonly #not_before_ms: number
  readonly #look: { cancel(): void }
  readonly #unbind: () => void
  #resolve: () => void = () => undefined
  #on = false
  #for_good = false
  /** Begun so often: what waits for the end of an earlier one, that was taken back, is over. */
  #rounds = 0
  #looking = false
  /** INVITEs that are between their arrival and their row. */
  #arriving = 0

  constructor(options: DrainOptions, every_ms: number) {
    this.#options = options
    this.#not_before_ms = options.clock.monotonic_ms() + options.least_ms
    this.done = new Promise(resolve => {
      this.#resolve = resolve
    })
    this.#look = options.clock.every(every_ms, () => void this.look())
    this.#unbind = options.bus.on('nodes', () => void this.look())
  }

  get on(): boolean {
    return this.#on
  }

  /** Begins, not to be taken back. The flag is set at once; others see it when the row is written. */
  async begin(): Promise<void> {
    this.#for_good = true
    this.#switch(true)
    const { state, node_id, clock, log } = this.#options
    await saveDraining(state.db, node_id, clock.now()).catch(err => log.error({ err }, 'the drain was not saved'))
  }

  /** Does what the row says. */
  async look(): Promise<void> {
    if (this.#looking || this.#for_good) return
    this.#looking = true
    const { state, node_id, log } = this.#options
    try {
      const asked = await isAskedToDrain(state.db, node_id)
      if (!this.#for_good) this.#switch(asked)
    } catch (err) {
      log.error({ err }, 'whether to drain could not be read')
    } finally {
      this.#looking = false
    }
  }

  /** A call is being taken: until that is done there may be one more. Never rejects. */
  async arriving(taken: Promise<void>): Promise<void> {
    this.#arriving++
    await taken
    this.#arriving--
  }

  stop(): void {
    this.#for_good = true
    this.#look.cancel()
    this.#unbind()
  }

  #switch(on: boolean): void {
    if (this.#on === on) return
    this.#on = on
    const { log, calls } = this.#options
    log.info({ calls: calls.size }, on ? 'draining: no new call is taken' : 'no longer draining')
    if (on) void this.#finish(++this.#rounds)
  }

  async #finish(round: number): Promise<void> {
    const { calls, clock, log } = this.#options
    const lasts = (): boolean => this.#on && this.#rounds === round
    while (lasts() && (clock.monotonic_ms() < this.#not_before_ms || !(await this.#nothingRuns()))) {
      await calls.whenIdle()
      await pause(clock, LOOK_MS)
    }
    const deadline_ms = clock.monotonic_ms() + CALLBACKS_LIMIT_MS
    while (lasts() && clock.monotonic_ms() < deadline_ms && (await this.#callbacksWait())) await pause(clock, LOOK_MS)
    if (!lasts()) return
    log.info('drained: the last call has ended')
    this.#resolve()
  }

  async #nothingRuns(): Promise<boolean> {
    const { state, node_id, calls, log } = this.#options
    if (calls.size > 0 || this.#arriving > 0) return false
    try {
      return (await callsOfNode(state.db, node_id)).length === 0
    } catch (err) {
      log.error({ err }, 'the calls that run could not be read')
      return false
    }
  }

  #callbacksWait(): Promise<boolean> {
    // Without storage nobody can deliver them either; they are rows, and leave at the next start.
    return untriedCallbacks(this.#options.state.db).catch(() => false)
  }
}

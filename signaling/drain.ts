import type { Bus } from '../core/runtime/bus.ts'
import { type Clock, delay } from '../core/runtime/clock.ts'
import type { Log } from '../core/runtime/log.ts'
import { callsOfNode } from '../core/state/calls/running-calls.ts'
import { untriedCallbacks } from '../core/state/delivery/outbox-delivery.ts'
import type { State } from '../core/state/index.ts'
import { isAskedToDrain, saveDraining } from '../core/state/nodes/nodes.ts'
import type { CallRegistry } from './b2bua/registry.ts'

const LOOK_MS = 200
/** How long a drain that begins here waits for its row, while the storage stalls. */
const SAVE_LIMIT_MS = 1000
/** How long a drained node waits for the first delivery attempt of its remaining callbacks. */
const CALLBACKS_LIMIT_MS = 5000

interface DrainOptions {
  readonly node_id: string
  readonly state: State
  readonly bus: Bus
  readonly clock: Clock
  readonly log: Log
  readonly calls: CallRegistry
  /** How long after this start a drain lasts at least, for a node that replaces a killed one. */
  readonly least_ms: number
}

/**
 * A draining node takes no new calls from peers, the API, Dials or transfers. Live calls continue to their normal end.
 * The node's row requests a drain (`strowger drain`, which can also revoke it), or the supervisor does, irrevocably.
 */
export class Drain {
  /** Resolves when the node is drained: its last call has ended, its CDR is written and its callbacks were tried. */
  readonly done: Promise<void>
  readonly #options: DrainOptions
  readonly #not_before_ms: number
  readonly #look: { cancel(): void }
  readonly #unbind: () => void
  #resolve: () => void = () => undefined
  #on = false
  #for_good = false
  /** The number of drains so far. The wait of an earlier, revoked drain stops when it sees a newer number. */
  #rounds = 0
  #looking = false
  /** INVITEs that have arrived and have no row yet. */
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

  /**
   * Starts an irrevocable drain. Its row comes first: until the APIs see that, they accept calls, which would be
   * refused here. A storage that stalls does not keep the node from draining.
   */
  async begin(): Promise<void> {
    this.#for_good = true
    const { state, node_id, clock, log } = this.#options
    const saved = saveDraining(state.db, node_id, clock.now()).catch(err =>
      log.error({ err }, 'the drain was not saved'),
    )
    await Promise.race([saved, delay(clock, SAVE_LIMIT_MS)])
    this.#switch(true)
    await saved
  }

  /** Reads the node's row, and starts or revokes a drain as it says. */
  async look(): Promise<void> {
    if (this.#looking || this.#for_good) return
    this.#looking = true
    const { state, node_id, log } = this.#options
    try {
      const asked = await isAskedToDrain(state.db, node_id)
      if (!this.#for_good) this.#switch(asked)
    } catch (err) {
      log.error({ err }, 'the drain state could not be read')
    } finally {
      this.#looking = false
    }
  }

  /** Counts an INVITE until it is handled: it may still become a call. Rejects only if `taken` does. */
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
      await delay(clock, LOOK_MS)
    }
    const deadline_ms = clock.monotonic_ms() + CALLBACKS_LIMIT_MS
    while (lasts() && clock.monotonic_ms() < deadline_ms && (await this.#callbacksWait())) await delay(clock, LOOK_MS)
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
      log.error({ err }, 'the running calls could not be read')
      return false
    }
  }

  #callbacksWait(): Promise<boolean> {
    // Without storage they cannot be delivered either. Their rows remain and are delivered after the next start.
    return untriedCallbacks(this.#options.state.db).catch(() => false)
  }
}

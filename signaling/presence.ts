import type { Clock } from '../core/runtime/clock.ts'
import type { Log } from '../core/runtime/log.ts'
import { isGone, type Machine } from '../core/runtime/machine.ts'
import type { State } from '../core/state/index.ts'
import {
  HEARTBEAT_MS,
  heartbeat,
  heartbeats,
  type NodeRow,
  registerAgain,
  registerNode,
  removeNode,
  tellLink,
} from '../core/state/nodes/nodes.ts'
import type { SipStack } from './drachtio/types.ts'

interface PresenceOptions {
  readonly node_id: string
  readonly machine: Machine
  readonly state: State
  readonly clock: Clock
  readonly log: Log
  readonly sip: Pick<SipStack, 'connected' | 'onLink'>
  readonly media: { readonly connected: boolean; on(event: 'up' | 'down', listener: () => void): void }
  /** Called when the state has taken a heartbeat. */
  readonly reached: () => void
  /** Called when others have declared this node lost: they end its calls and delete what it has reported. */
  readonly wasLost: () => void
}

/**
 * The rows that announce a node to others: its own row, which heartbeats refresh, and `<id>-edge` and `<id>-media`,
 * which exist and are refreshed while the links are up.
 */
export class Presence {
  readonly #options: PresenceOptions
  readonly #beat: { cancel(): void }
  readonly #unlink: () => void
  #writing: Promise<void> = Promise.resolve()
  #beating = false
  #stopped = false

  /** The node's own row must already exist. */
  constructor(options: PresenceOptions) {
    this.#options = options
    const { clock, sip, media } = options
    this.#unlink = sip.onLink(() => this.tellLinks())
    media.on('down', () => this.tellLinks())
    media.on('up', () => this.tellLinks())
    this.#beat = clock.every(HEARTBEAT_MS, () => {
      // At most one heartbeat is pending while the state is slow: several could each register the node again.
      if (this.#beating) return
      this.#beating = true
      void this.#beatOnce().finally(() => {
        this.#beating = false
      })
    })
  }

  tellLinks(): void {
    if (this.#stopped) return
    const { sip, media, log } = this.#options
    this.#writing = this.#writing
      .then(() => this.#tell({ edge: sip.connected, media: media.connected }))
      .catch(err => log.error({ err }, 'whether the edge and media are connected was not saved'))
  }

  /** Removes the rows of the node and its links. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#beat.cancel()
    this.#unlink()
    await this.#writing
    await this.#tell({ edge: false, media: false })
    const { state, node_id } = this.#options
    await state.transaction(trx => removeNode(trx, node_id))
  }

  async #beatOnce(): Promise<void> {
    const { sip, media, state, node_id, clock, log, reached } = this.#options
    if (sip.connected && media.connected)
      try {
        // As a rule, one write says that all three are alive.
        if (await heartbeats(state.db, [node_id, `${node_id}-edge`, `${node_id}-media`], clock.now())) return reached()
      } catch (err) {
        log.error({ err }, 'heartbeat failed')
        return
      }
    this.tellLinks()
    await Promise.all([this.#keepAlive(), this.#writing])
  }

  async #tell(up: Readonly<Record<'edge' | 'media', boolean>>): Promise<void> {
    const { state, clock, node_id, machine } = this.#options
    for (const kind of ['edge', 'media'] as const)
      await tellLink(state.db, { id: `${node_id}-${kind}`, kind, ...machine, pid: process.pid }, up[kind], clock.now())
  }

  async #keepAlive(): Promise<void> {
    const { state, clock, log, node_id, machine, reached, wasLost } = this.#options
    try {
      const alive = await heartbeat(state.db, node_id, clock.now())
      reached()
      if (alive) return
      // For example after a long suspension, or without the database. Their CDRs say that our calls have ended.
      log.warn({ node_id }, 'other nodes considered this node lost')
      await state.transaction(trx => registerAgain(trx, ownNode(node_id, machine), clock.now()))
      wasLost()
    } catch (err) {
      log.error({ err }, 'heartbeat failed')
    }
  }
}

const ownNode = (id: string, machine: Machine) => ({ id, kind: 'signaling', ...machine, pid: process.pid }) as const

export const registerOwnNode = (state: State, id: string, machine: Machine, clock: Clock): Promise<void> =>
  registerNode(state.db, ownNode(id, machine), clock.now())

/** Whether the process of another node on this machine is gone: its calls can end without waiting for a timeout. */
export const isDead = (row: NodeRow, own_id: string, machine: Machine): boolean =>
  row.id !== own_id && isGone(row, machine)

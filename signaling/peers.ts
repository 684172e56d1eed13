import type { Clock } from '../core/runtime/clock.ts'
import type { Beat } from '../core/runtime/edge-link.ts'
import type { Log } from '../core/runtime/log.ts'
import type { State } from '../core/state/index.ts'
import { attestNodes, HEARTBEAT_MS, signalingNodes } from '../core/state/nodes/nodes.ts'
import type { BeatLine } from './serve-edge.ts'
import { type Contacts, standingOf } from './standing.ts'

/** What was heard within this time was heard a moment ago: two beats may be lost. */
const FRESH_MS = 6000
/** Nodes of other machines that are remembered. */
const MAX_PEERS = 1000

interface PeersOptions {
  readonly node_id: string
  readonly state: State
  readonly clock: Clock
  readonly log: Log
  readonly line: BeatLine
  /** Called when this node must end its calls, because it reaches neither the state nor another machine. */
  readonly alone: () => void
}

/**
 * The nodes of the other machines, which this one hears over the links of the edges. They tell each other that they
 * live. So a node whose way to the database is broken is told from one that is lost: its peers attest it there, and
 * it keeps its calls.
 */
export class Peers {
  readonly #options: PeersOptions
  readonly #beat: { cancel(): void }
  /** When each node was heard last. */
  readonly #heard = new Map<string, number>()
  #contacts: Contacts
  #looked_ms: number
  #standing: ReturnType<typeof standingOf> = 'whole'
  #attesting = false
  /** The nodes that this one attests now. */
  #attested: ReadonlySet<string> = new Set()

  constructor(options: PeersOptions) {
    this.#options = options
    const { clock, line } = options
    this.#looked_ms = clock.monotonic_ms()
    this.#contacts = { state_ms: this.#looked_ms, peer_ms: null, attested_ms: null }
    line.onBeat = beat => this.#hear(beat)
    this.#beat = clock.every(HEARTBEAT_MS, () => this.#look())
  }

  /** Whether this node reaches the state. Without it, it takes no calls. */
  get whole(): boolean {
    return this.#standing === 'whole'
  }

  /** Notes that this node has just written to the state. */
  reached(): void {
    this.#contacts = { ...this.#contacts, state_ms: this.#options.clock.monotonic_ms() }
  }

  /** Tells the others that this node leaves. */
  stop(): void {
    this.#beat.cancel()
    const { line, node_id } = this.#options
    line.onBeat = () => undefined
    line.beat({ node_id, has_state: this.whole, hears: [], leaves: true })
  }

  #hear({ node_id, has_state, hears, leaves }: Beat): void {
    const now_ms = this.#options.clock.monotonic_ms()
    if (leaves) {
      this.#heard.delete(node_id)
      // A node whose last peer has left is a machine alone, whose calls outlive an outage of the database.
      if (this.#heard.size === 0) this.#contacts = { ...this.#contacts, peer_ms: null, attested_ms: null }
      return
    }
    if (this.#heard.size >= MAX_PEERS) this.#heard.clear()
    this.#heard.set(node_id, now_ms)
    const attests = has_state && hears.includes(this.#options.node_id)
    this.#contacts = { ...this.#contacts, peer_ms: now_ms, ...(attests ? { attested_ms: now_ms } : {}) }
  }

  #look(): void {
    const { clock, line, log, node_id, alone } = this.#options
    const now_ms = clock.monotonic_ms()
    // A node that stood still has missed what was said meanwhile, and begins to listen anew.
    if (now_ms - this.#looked_ms > FRESH_MS) {
      const { peer_ms } = this.#contacts
      this.#contacts = { ...this.#contacts, state_ms: now_ms, peer_ms: peer_ms === null ? null : now_ms }
    }
    this.#looked_ms = now_ms
    for (const [id, at_ms] of this.#heard) if (now_ms - at_ms >= FRESH_MS) this.#heard.delete(id)
    const before = this.#standing
    this.#standing = standingOf(this.#contacts, now_ms)
    if (this.#standing !== before) {
      log.warn({ node_id, standing: this.#standing }, STANDINGS[this.#standing])
      if (this.#standing === 'alone') alone()
    }
    line.beat({ node_id, has_state: this.whole, hears: [...this.#heard.keys()] })
    if (this.whole && this.#heard.size > 0 && !this.#attesting) void this.#attest()
  }

  /** Attests the nodes that this one hears and that do not reach the state. */
  async #attest(): Promise<void> {
    const { state, clock, log, node_id } = this.#options
    this.#attesting = true
    try {
      const now_ms = clock.now()
      const silent = (await signalingNodes(state.db)).filter(
        ({ id, heartbeat_at, lost_at }) =>
          id !== node_id && this.#heard.has(id) && lost_at === null && now_ms - Date.parse(heartbeat_at) >= FRESH_MS,
      )
      if (silent.length === 0) {
        this.#attested = new Set()
        return
      }
      const ids = silent.map(({ id }) => id)
      for (const id of ids)
        if (!this.#attested.has(id)) log.warn({ node_id: id }, 'a node of another machine does not reach the database')
      this.#attested = new Set(ids)
      await attestNodes(state.db, ids, now_ms)
    } catch (err) {
      log.warn({ err }, 'nodes of other machines could not be attested')
    } finally {
      this.#attesting = false
    }
  }
}

const STANDINGS = {
  whole: 'the database is reached again',
  cut_off: 'the database is not reached: no calls are taken, and those that run go on',
  alone: 'neither the database nor another machine is reached: the calls are ended',
} as const

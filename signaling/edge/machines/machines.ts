import { createHash, createHmac } from 'node:crypto'
import { boundedMap } from '../../../core/domain/bounded-map.ts'
import type { Clock, Timer } from '../../../core/runtime/clock.ts'
import type { Beat, MachineAt, MachineLinks } from '../../../core/runtime/edge-link.ts'
import type { GuardWord } from '../agent/guard.ts'
import { MARK, markInBranch } from '../sip/ids.ts'
import type { SipMessage } from '../sip/message.ts'
import { inOwnMemory } from '../sip/own-memory.ts'
import type { EdgeLog, OtherMachines } from '../stack.ts'
import type { TransportLayer } from '../transport/layer.ts'
import type { Received } from '../transport/types.ts'
import { LentFlow } from './lent-flow.ts'
import { EdgeLink, type Flow, type Frame, listenForEdges } from './link.ts'

// The edges of an installation lend each other their flows. A call lives on one machine, but its peer may only be
// reachable by the edge that holds its connection, and may send to the wrong edge. Each tag and branch begins with the
// mark of the edge that made it, so an edge passes on what is not its own, and keeps nothing about it.

interface MachinesOptions {
  readonly clock: Clock
  readonly log: EdgeLog
  readonly transport: () => TransportLayer
  /** No application runs here: calls are those of other machines. */
  readonly lone: boolean
  /** Whether the request belongs to a dialog of this edge. */
  readonly isOwn: (request: SipMessage) => boolean
  /** Whether an application is there for new requests. */
  readonly takes: () => boolean
  /** Whether a source may send anything now. */
  readonly admits: (received: Received) => boolean
  /** Takes what a node of another machine says. */
  readonly hearBeat?: ((beat: Beat) => void) | undefined
  /** Takes what the guard of another machine's edge says. */
  readonly hearGuard: (word: GuardWord) => void
  /** Takes what another machine's node says to the node of this one. */
  readonly noted: (from: string, text: string) => void
  /** Takes what came by another machine's edge, and what no edge could be found for. */
  readonly receive: (received: Received) => void
}

const PING_MS = 2000
/** New requests whose machine is remembered. */
const MAX_HANDED = 20_000
const lost = (): void => undefined
const addressOf = ({ host, port }: MachineAt): string => `${host} ${port}`
const FLOW_ALONE = { tls: { mode: 'flow' } } as const

/**
 * Orders machines for a text, the same on each edge. Who leaves moves nothing of the others (rendezvous hashing). The
 * secret keeps callers from choosing Call-IDs that all go to one machine.
 */
function byTurn(machine_ids: readonly string[], text: string, secret: Buffer): string[] {
  const rank = new Map(machine_ids.map(id => [id, createHmac('sha256', secret).update(`${id} ${text}`).digest('hex')]))
  return [...machine_ids].sort((a, b) => ((rank.get(a) ?? '') < (rank.get(b) ?? '') ? -1 : 1))
}

/** The mark of a machine's edge. Four characters tell a few machines apart. */
const markOf = (machine_id: string): string =>
  createHash('sha256').update(machine_id).digest('base64url').slice(0, MARK)

export class Machines implements OtherMachines {
  readonly #options: MachinesOptions
  readonly #links = new Map<string, { readonly address: string; readonly link: EdgeLink }>()
  readonly #by_mark = new Map<string, EdgeLink>()
  /** Set once it has been told of the machines. */
  #own: MachineAt | undefined
  #secret = Buffer.alloc(0)
  #homes: readonly string[] = []
  #fronts: readonly string[] = []
  /** The machines that new requests were handed to, by Call-ID: a CANCEL follows its INVITE. */
  readonly #handed = boundedMap<string, string>(MAX_HANDED)
  #pings: Timer | undefined
  #found_front: () => void = () => undefined
  /** Resolves once an edge of another machine serves this one. */
  readonly fronted = new Promise<void>(resolve => {
    this.#found_front = resolve
  })
  #listening: { readonly address: string; readonly server: Promise<{ close(): void } | undefined> } | undefined
  #mark = ''

  constructor(options: MachinesOptions) {
    this.#options = options
  }

  get mark(): string {
    return this.#mark
  }

  /** Replaces what is known of the machines. Resolves when this edge listens for the others, or cannot. */
  async learn({ own, key: key_hex, others, homes, fronts }: MachineLinks): Promise<void> {
    const { clock } = this.#options
    const key = Buffer.from(key_hex, 'hex')
    this.#mark = markOf(own.machine_id)
    const known = new Set(others.map(({ machine_id }) => machine_id))
    for (const [machine_id, { link }] of this.#links) if (!known.has(machine_id)) this.#forget(machine_id, link)
    for (const other of others) {
      const address = addressOf(other)
      const before = this.#links.get(other.machine_id)
      if (before?.address === address) continue
      if (before) this.#forget(other.machine_id, before.link)
      this.#links.set(other.machine_id, { address, link: this.#linkTo(other, own, key) })
    }
    this.#readMarks()
    this.#secret = key
    this.#own = own
    this.#homes = byTurn(homes, own.machine_id, key)
    this.#fronts = byTurn(fronts, own.machine_id, key)
    if (homes.length + fronts.length > 0) this.#pings ??= clock.every(PING_MS, () => this.#ping())
    this.#ping()
    this.#borrow()
    await this.#listen(own, key)
  }

  #linkTo(other: MachineAt, own: MachineAt, key: Buffer): EdgeLink {
    const { clock, log } = this.#options
    return new EdgeLink(other, { at: own, key, clock, log }, () => this.#borrow())
  }

  #readMarks(): void {
    this.#by_mark.clear()
    for (const [machine_id, { link }] of this.#links) {
      const mark = markOf(machine_id)
      if (mark === this.#mark || this.#by_mark.has(mark))
        this.#options.log.error(
          { machine_id },
          'the ids of two machines have the same mark: give one of them a new machine.id',
        )
      else this.#by_mark.set(mark, link)
    }
  }

  /**
   * Links back to a machine that has just started. The node tells of it up to 2 s later, and responses to its requests
   * that came meanwhile would be lost.
   */
  #meet(other: MachineAt): void {
    if (!this.#own || this.#links.has(other.machine_id)) return
    const link = this.#linkTo(other, this.#own, this.#secret)
    this.#links.set(other.machine_id, { address: addressOf(other), link })
    this.#readMarks()
  }

  /** Keeps the links open on which new calls depend, and notices those that are lost. */
  #ping(): void {
    for (const machine_id of [...this.#homes, ...this.#fronts]) this.#links.get(machine_id)?.link.ping()
  }

  /** Without listening points here, takes those of the first edge in turn that is connected. */
  #borrow(): void {
    for (const machine_id of this.#fronts) {
      const link = this.#links.get(machine_id)?.link
      const listeners = link?.hello
      if (!link || !listeners || listeners.length === 0) continue
      this.#options.transport().borrow({
        listeners,
        // A datagram is sent again until the link is back, as one that a network loses.
        send: ({ protocol, host, port, tls, server_name }, text, failed) =>
          link.send({ protocol, host, port }, text, protocol === 'udp' ? lost : failed, { tls, server_name }),
      })
      this.#found_front()
      return
    }
  }

  flow(machine_id: string, { protocol, host, port }: Flow, then: (flow: LentFlow | undefined) => void): void {
    const link = this.#links.get(machine_id)?.link
    if (!link) {
      queueMicrotask(() => then(undefined))
      return
    }
    link.listeners(listeners => {
      const listener = listeners?.find(one => one.protocol === protocol && one.ipv6 === host.includes(':'))
      then(listener && new LentFlow(link, { protocol, host, port }, listener))
    })
  }

  /** Passes a note to the node of another machine. It is lost when that machine cannot be reached. */
  note(machine_id: string, text: string): void {
    const lost = (err: Error): void => this.#options.log.debug({ err, machine_id }, 'a note to a machine is lost')
    this.#links.get(machine_id)?.link.note(text, lost)
  }

  /** Passes on a request in another edge's dialog, or a response to another edge's request. */
  relays(message: SipMessage, received: Received): boolean {
    // What another edge has passed on is ours, or nobody's.
    if (received.connection?.lent) return false
    // A lone edge that has just started knows no machine yet. Peers repeat what it drops; a 481 would end their calls.
    if (this.#by_mark.size === 0) return this.#options.lone && !this.#own
    const mark = message.is_request ? message.to_tag.slice(0, MARK) : markInBranch(message.branch)
    const link = this.#by_mark.get(mark)
    if (!link && message.is_request && message.to_tag === '' && this.#homes.length > 0)
      return this.#bringHome(message.call_id, received)
    if (link && !link.usable && this.#options.lone) return true
    if (!link?.usable || (message.is_request && this.#options.isOwn(message))) return false
    const { protocol, source, listener, text } = received
    // The limits on strangers hold before the link, so that no stranger can fill it.
    // A machine that is away has lost its dialogs: the request is judged as one of ours, and gets 481.
    // Behind a lone edge it may only be out of reach for a moment, and the peer repeats the request.
    const judge = (): void => {
      if (!this.#options.lone) this.#options.receive(received)
    }
    if (this.#options.admits(received)) link.handOver({ protocol, ...source }, listener, text, judge)
    return true
  }

  /**
   * Hands a new request to a machine with signaling: requests of a Call-ID to the same, while that one can be reached.
   * Returns false when none can be: then it is judged here, where no application runs.
   */
  #bringHome(call_id: string, received: Received): boolean {
    const before = this.#handed.get(call_id)
    const turns = byTurn(this.#homes, call_id, this.#secret)
    const order = before === undefined ? turns : [before, ...turns.filter(id => id !== before)]
    const usable = order.flatMap(id => {
      const link = this.#links.get(id)?.link
      return link?.usable ? [{ id, link }] : []
    })
    // Repeats and CANCEL follow their INVITE.
    const taking = usable.filter(({ id, link }) => id === before || link.takes)
    if (usable.length === 0) return false
    const { protocol, source, listener, text } = received
    const key = inOwnMemory(call_id)
    const next = ([first, ...others]: typeof usable): void => {
      if (!first) {
        this.#options.receive(received)
        return
      }
      this.#handed.set(key, first.id)
      first.link.handOver({ protocol, ...source }, listener, text, () => next(others))
    }
    if (this.#options.admits(received)) next(taking.length > 0 ? taking : usable)
    return true
  }

  /** Tells the edges of all other machines what the node of this one says. */
  beat(beat: Beat): void {
    for (const { link } of this.#links.values()) link.beat(beat)
  }

  /** Tells the guards of all other machines' edges. One that cannot be reached counts by itself. */
  guard(word: GuardWord): void {
    const lost = (err: Error): void => this.#options.log.debug({ err }, 'a word of the guard is lost')
    for (const { link } of this.#links.values()) link.guard(word, lost)
  }

  close(): void {
    this.#pings?.cancel()
    for (const { link } of this.#links.values()) link.close()
    void this.#listening?.server.then(server => server?.close())
  }

  #forget(machine_id: string, link: EdgeLink): void {
    link.close()
    this.#links.delete(machine_id)
  }

  async #listen(own: MachineAt, key: Buffer): Promise<void> {
    const { host, port } = own
    const address = addressOf(own)
    if (this.#listening?.address !== address) {
      const before = this.#listening?.server
      const { log, takes } = this.#options
      const opened = async () => {
        ;(await before)?.close()
        return listenForEdges(
          { host, port },
          { key, log, takes, hear: this.#hear, hello: () => this.#options.transport().own },
        )
      }
      const server = opened().catch(err => {
        log.error({ err, host, port }, 'the edge cannot listen for the other machines')
        this.#listening = undefined
        return undefined
      })
      this.#listening = { address, server }
    }
    await this.#listening.server
  }

  readonly #hear = (from: string, frame: Frame, failed: () => void): void => {
    this.#links.get(from)?.link.isBack()
    if (frame.kind === 'here') {
      if (frame.at.machine_id === from) this.#meet(frame.at)
      return
    }
    if (frame.kind === 'beat') {
      this.#options.hearBeat?.(frame.beat)
      return
    }
    if (frame.kind === 'guard') {
      this.#options.hearGuard(frame.word)
      return
    }
    if (frame.kind === 'note') {
      this.#options.noted(from, frame.text)
      return
    }
    if (frame.kind === 'ping') return
    const { flow, text } = frame
    if (frame.kind === 'send') {
      // Unless the other edge asks for it, a lost connection is not replaced. That edge traces the message.
      const to = { ...flow, ...(frame.opens ?? FLOW_ALONE) }
      if (!this.#options.transport().send(to, text, false, failed, false)) failed()
      return
    }
    const link = this.#links.get(from)?.link
    if (!link) return
    const { protocol, host, port } = flow
    const connection = new LentFlow(link, flow, frame.listener)
    this.#options.receive({ text, protocol, source: { host, port }, listener: frame.listener, connection })
  }
}

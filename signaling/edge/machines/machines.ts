import { createHash } from 'node:crypto'
import type { Clock } from '../../../core/runtime/clock.ts'
import type { Beat, MachineLinks } from '../../../core/runtime/edge-link.ts'
import { MARK, markInBranch } from '../sip/ids.ts'
import type { SipMessage } from '../sip/message.ts'
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
  /** Whether the request belongs to a dialog of this edge. */
  readonly isOwn: (request: SipMessage) => boolean
  /** Whether a source may send anything now. */
  readonly admits: (received: Received) => boolean
  /** Takes what a node of another machine says. */
  readonly hearBeat?: ((beat: Beat) => void) | undefined
  /** Takes what another machine's node says to the node of this one. */
  readonly noted: (from: string, text: string) => void
  /** Takes what came by another machine's edge, and what no edge could be found for. */
  readonly receive: (received: Received) => void
}

/** The mark of a machine's edge. Four characters tell a few machines apart. */
const markOf = (machine_id: string): string =>
  createHash('sha256').update(machine_id).digest('base64url').slice(0, MARK)

export class Machines implements OtherMachines {
  readonly #options: MachinesOptions
  readonly #links = new Map<string, { readonly address: string; readonly link: EdgeLink }>()
  readonly #by_mark = new Map<string, EdgeLink>()
  #listening: { readonly address: string; readonly server: Promise<{ close(): void } | undefined> } | undefined
  #mark = ''

  constructor(options: MachinesOptions) {
    this.#options = options
  }

  get mark(): string {
    return this.#mark
  }

  /** Replaces what is known of the machines. Resolves when this edge listens for the others, or cannot. */
  async learn({ own, key: key_hex, others }: MachineLinks): Promise<void> {
    const { clock, log } = this.#options
    const key = Buffer.from(key_hex, 'hex')
    this.#mark = markOf(own.machine_id)
    const known = new Set(others.map(({ machine_id }) => machine_id))
    for (const [machine_id, { link }] of this.#links) if (!known.has(machine_id)) this.#forget(machine_id, link)
    for (const other of others) {
      const address = `${other.host} ${other.port}`
      const before = this.#links.get(other.machine_id)
      if (before?.address === address) continue
      if (before) this.#forget(other.machine_id, before.link)
      const link = new EdgeLink(other, { id: own.machine_id, key, clock, log })
      this.#links.set(other.machine_id, { address, link })
    }
    this.#by_mark.clear()
    for (const [machine_id, { link }] of this.#links) {
      const mark = markOf(machine_id)
      if (mark === this.#mark || this.#by_mark.has(mark))
        log.error({ machine_id }, 'the ids of two machines have the same mark: give one of them a new machine.id')
      else this.#by_mark.set(mark, link)
    }
    await this.#listen(own, key)
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
    if (this.#by_mark.size === 0 || received.connection?.lent) return false
    const mark = message.is_request ? message.to_tag.slice(0, MARK) : markInBranch(message.branch)
    const link = this.#by_mark.get(mark)
    if (!link?.usable || (message.is_request && this.#options.isOwn(message))) return false
    const { protocol, source, listener, text } = received
    // The limits on strangers hold before the link, so that no stranger can fill it.
    // A machine that is away has lost its dialogs: the request is judged as one of ours, and gets 481.
    const judge = (): void => this.#options.receive(received)
    if (this.#options.admits(received)) link.handOver({ protocol, ...source }, listener, text, judge)
    return true
  }

  /** Tells the edges of all other machines what the node of this one says. */
  beat(beat: Beat): void {
    for (const { link } of this.#links.values()) link.beat(beat)
  }

  close(): void {
    for (const { link } of this.#links.values()) link.close()
    void this.#listening?.server.then(server => server?.close())
  }

  #forget(machine_id: string, link: EdgeLink): void {
    link.close()
    this.#links.delete(machine_id)
  }

  async #listen({ host, port }: MachineLinks['own'], key: Buffer): Promise<void> {
    const address = `${host} ${port}`
    if (this.#listening?.address !== address) {
      const before = this.#listening?.server
      const { log } = this.#options
      const opened = async () => {
        ;(await before)?.close()
        return listenForEdges(
          { host, port },
          { key, log, hello: () => this.#options.transport().listeners, hear: this.#hear },
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
    if (frame.kind === 'beat') {
      this.#options.hearBeat?.(frame.beat)
      return
    }
    if (frame.kind === 'note') {
      this.#options.noted(from, frame.text)
      return
    }
    const { flow, text } = frame
    if (frame.kind === 'send') {
      // Only over the flow itself: a lost connection is not replaced, and the other edge traces the message.
      const to = { ...flow, tls: { mode: 'flow' } } as const
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

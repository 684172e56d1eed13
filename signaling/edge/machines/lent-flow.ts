import { StreamConnection } from '../transport/connection.ts'
import type { Listener } from '../transport/types.ts'
import type { EdgeLink, Flow } from './link.ts'

/**
 * A flow that another machine's edge holds, over UDP too. What is sent on it leaves there, with that edge's listening
 * point in Via and Contact, and what the peer answers comes back by the link.
 */
export class LentFlow extends StreamConnection {
  readonly #link: EdgeLink
  readonly #flow: Flow

  constructor(link: EdgeLink, flow: Flow, listener: Listener) {
    super({
      protocol: flow.protocol,
      listener,
      remote: { host: flow.host, port: flow.port },
      inbound: false,
      limits: { message_bytes: 0, unsent_bytes: 0 },
      now: () => 0,
      events: { message: nothing, broken: nothing, ended: nothing, closed: nothing },
    })
    this.#link = link
    this.#flow = flow
  }

  override get lent(): boolean {
    return true
  }

  override get open(): boolean {
    return this.#link.usable
  }

  override get takes_requests(): boolean {
    return this.open
  }

  override send(text: string, failed: (error: Error) => void): void {
    this.#link.send(this.#flow, text, failed)
  }
}

const nothing = (): void => undefined

import type { StreamConnection } from './connection.ts'

// Chooses the open connection that makes room for a new one. A stranger never displaces a configured peer.

/** Who holds a connection. A `user` proved a password over it, or we called it. A `peer` is configured. */
export type Holder = 'stranger' | 'user' | 'peer'

/** The share of connections open to strangers and users. The last tenth is reserved for configured peers. */
const FOR_STRANGERS = 0.9

export class OpenConnections {
  readonly #most: number
  readonly #holderOf: (connection: StreamConnection) => Holder
  /** The connections of each holder, least recently active first. The holders make room in this order. */
  readonly #of = {
    stranger: new Map<number, StreamConnection>(),
    user: new Map<number, StreamConnection>(),
    peer: new Map<number, StreamConnection>(),
  }

  constructor(most: number, holderOf: (connection: StreamConnection) => Holder) {
    this.#most = most
    this.#holderOf = holderOf
  }

  get size(): number {
    const { stranger, user, peer } = this.#of
    return stranger.size + user.size + peer.size
  }

  all(): StreamConnection[] {
    return Object.values(this.#of).flatMap(connections => [...connections.values()])
  }

  /** Records that a connection was added or received a message. */
  active(connection: StreamConnection): void {
    this.delete(connection)
    this.#of[this.#holderOf(connection)].set(connection.id, connection)
  }

  delete({ id }: StreamConnection): void {
    for (const connections of Object.values(this.#of)) connections.delete(id)
  }

  /** Reports whether one more connection fits, and which one must be closed to make room for it. */
  placeFor(is_peer: boolean): { readonly free: boolean; readonly instead?: StreamConnection | undefined } {
    const { stranger, user } = this.#of
    const full = this.size >= this.#most
    if (!full && (is_peer || stranger.size + user.size < this.#most * FOR_STRANGERS)) return { free: true }
    const instead = this.#idleLongest(is_peer ? ['stranger', 'user', 'peer'] : ['stranger', 'user'])
    return { free: instead !== undefined, instead }
  }

  #idleLongest(holders: readonly Holder[]): StreamConnection | undefined {
    for (const [place, holder] of holders.entries()) {
      for (const connection of this.#of[holder].values()) {
        const now = holders.indexOf(this.#holderOf(connection))
        if (now >= 0 && now <= place) return connection
        // Since its last message, its user proved a password or its source was configured.
        this.active(connection)
      }
    }
    return undefined
  }
}

import type { StreamConnection } from './connection.ts'

// Which of the open connections makes room for another: a stranger's never takes the place of a configured peer's.

/** Who holds a connection: a stranger, one who has proved a password by it or whom we called, or a configured peer. */
export type Holder = 'stranger' | 'user' | 'peer'

/** The last tenth of the connections is for configured peers. */
const FOR_STRANGERS = 0.9

export class OpenConnections {
  readonly #most: number
  readonly #holderOf: (connection: StreamConnection) => Holder
  /** Each in order of activity: the first is idle for longest. They make room in the order of the keys. */
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

  /** A connection is there, or has spoken. */
  active(connection: StreamConnection): void {
    this.delete(connection)
    this.#of[this.#holderOf(connection)].set(connection.id, connection)
  }

  delete({ id }: StreamConnection): void {
    for (const connections of Object.values(this.#of)) connections.delete(id)
  }

  /** Whether there is a place for one more, and which connection has to be closed for it. */
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
        // It has proved itself, or its source was configured, since it spoke.
        this.active(connection)
      }
    }
    return undefined
  }
}

import { hostGroup } from '../../../core/domain/identity/address.ts'

/** What a host holds of a pool. */
export interface HostShare {
  readonly group: string
  held: number
}

/**
 * Counts what each host holds of a pool. A host may hold as many as are free: one alone gets half of the pool, two get
 * a third each. So a host that takes all it can never leaves nothing to one that comes later.
 */
export class HostPool {
  readonly #shares = new Map<string, HostShare>()
  taken = 0

  mayTake(host: string, free: number): boolean {
    return free > 0 && (this.#shares.get(hostGroup(host))?.held ?? 0) < free
  }

  take(host: string): HostShare {
    const group = hostGroup(host)
    let share = this.#shares.get(group)
    if (!share) {
      share = { group, held: 0 }
      this.#shares.set(group, share)
    }
    share.held++
    this.taken++
    return share
  }

  give(share: HostShare): void {
    this.taken--
    if (--share.held === 0) this.#shares.delete(share.group)
  }
}

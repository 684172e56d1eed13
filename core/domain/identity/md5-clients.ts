import { LRUCache } from 'lru-cache'

/**
 * RFC 8760 §2.4 lets a client pick from several challenges. Old ones (libre 1, many telephones) fail at the first
 * algorithm that they do not know: who does not answer in this time gets what everybody knows when it comes again.
 */
const ANSWERS_WITHIN_MS = 3000
/** How long that is remembered of it. */
const REMEMBERED_MS = 24 * 3_600_000
const MAX_CLIENTS = 10_000

/** Which clients know MD5 alone, as far as they have shown it. A client is an address and a From. */
export class Md5Clients {
  /** Since when it is challenged, and whether it has let two algorithms go unanswered. */
  readonly #challenged = new LRUCache<string, { since_ms: number; md5_alone: boolean }>({ max: MAX_CLIENTS })

  /**
   * Told of each challenge, and whether it may hold MD5 alone: the second that comes too long after the first says that
   * the first was not understood.
   */
  challenged(client: string, now_ms: number): boolean {
    const known = this.#challenged.get(client)
    if (!known || now_ms - known.since_ms > REMEMBERED_MS) {
      this.#challenged.set(client, { since_ms: now_ms, md5_alone: false })
      return false
    }
    known.md5_alone ||= now_ms - known.since_ms > ANSWERS_WITHIN_MS
    return known.md5_alone
  }

  /** Told of each answer to a challenge. */
  answered(client: string): void {
    if (this.#challenged.get(client)?.md5_alone === false) this.#challenged.delete(client)
  }
}

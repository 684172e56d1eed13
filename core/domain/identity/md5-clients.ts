import { boundedMap } from '../bounded-map.ts'

/**
 * RFC 8760 §2.4 lets a client pick from several challenges. Old clients (libre 1, many telephones) give up at the first
 * algorithm that they do not support. A client that sends no answer within this time gets only MD5 on its next attempt.
 */
const ANSWERS_WITHIN_MS = 3000
/** How long a client's challenge state is kept. */
const REMEMBERED_MS = 24 * 3_600_000
const MAX_CLIENTS = 10_000

/** Detects the clients that support only MD5. A client is an address and a From. */
export class Md5Clients {
  /** When the client was first challenged, and whether it left the challenge with two algorithms unanswered. */
  readonly #challenged = boundedMap<string, { since_ms: number; md5_alone: boolean }>(MAX_CLIENTS)

  /**
   * Records a challenge and reports whether to offer only MD5. A second challenge that comes too long after the first
   * shows that the client did not understand the first.
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

  /** Records that the client answered a challenge. */
  answered(client: string): void {
    if (this.#challenged.get(client)?.md5_alone === false) this.#challenged.delete(client)
  }
}

import type { ServerTransaction } from '../transaction/server.ts'

/**
 * The open requests of one dialog, whose application has not said yet who sent them. Their CSeq numbers count only for
 * requests of the same source: a stranger must not outrun the peer.
 */
export class Unjudged {
  readonly #by_host = new Map<string, { open: number; seq: number }>()

  add({ request, received }: ServerTransaction): void {
    const { host } = received.source
    const { open, seq } = this.#by_host.get(host) ?? { open: 0, seq: -1 }
    this.#by_host.set(host, { open: open + 1, seq: Math.max(seq, request.cseq.seq) })
  }

  remove({ received }: ServerTransaction): void {
    const { host } = received.source
    const known = this.#by_host.get(host)
    if (!known) return
    known.open--
    if (known.open === 0) this.#by_host.delete(host)
  }

  /** Returns the highest CSeq number of a source's open requests; -1 without any. */
  newest({ received }: ServerTransaction): number {
    return this.#by_host.get(received.source.host)?.seq ?? -1
  }
}

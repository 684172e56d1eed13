import type { ServerTransaction } from '../transaction/server.ts'

interface Open {
  readonly host: string
  open: number
  seq: number
}

/**
 * The open requests of one dialog, whose application has not said yet who sent them. Their CSeq numbers count only for
 * requests of the same source: a stranger must not outrun the peer.
 */
export class Unjudged {
  /** The source of the first open request, which is nearly always the only one. */
  #first: Open | undefined
  #others: Map<string, Open> | undefined

  add({ request, received }: ServerTransaction): void {
    const { host } = received.source
    const { seq } = request.cseq
    const known = this.#of(host)
    if (known) {
      known.open++
      known.seq = Math.max(known.seq, seq)
    } else if (!this.#first) this.#first = { host, open: 1, seq }
    else {
      this.#others ??= new Map()
      this.#others.set(host, { host, open: 1, seq })
    }
  }

  remove({ received }: ServerTransaction): void {
    const { host } = received.source
    const known = this.#of(host)
    if (!known || --known.open > 0) return
    if (known === this.#first) this.#first = undefined
    else this.#others?.delete(host)
  }

  /** Returns the highest CSeq number of a source's open requests; -1 without any. */
  newest({ received }: ServerTransaction): number {
    return this.#of(received.source.host)?.seq ?? -1
  }

  #of(host: string): Open | undefined {
    return this.#first?.host === host ? this.#first : this.#others?.get(host)
  }
}

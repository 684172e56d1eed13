import { boundedMap } from '../../core/domain/bounded-map.ts'
import { evenRandom } from '../../core/domain/routing/index.ts'

/** Sequences kept; a trunk or project that has not called for longest begins a new one. */
const MAX_SEQUENCES = 10_000

/** Weighted shares of a node: they follow an even sequence per trunk or project (docs/calls.md). */
export class Shares {
  readonly #sequences = boundedMap<string, { readonly start: number; count: number }>(MAX_SEQUENCES)
  readonly #random: () => number

  constructor(random: () => number) {
    this.#random = random
  }

  /** Returns the next number of the sequence of a trunk or project, as a source of chance for one choice. */
  next(key: string): () => number {
    const known = this.#sequences.get(key) ?? { start: this.#random(), count: 0 }
    this.#sequences.set(key, known)
    return evenRandom(known.start, known.count++)
  }
}

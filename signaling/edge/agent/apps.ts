import type { ControlClient } from '../control/client.ts'

// The connected applications and the distribution of requests among them (drachtio-control-protocol.md §14).

export class Apps {
  readonly all = new Set<ControlClient>()
  /** The application last chosen for each verb. The next request goes to its neighbour. */
  readonly #turn = new Map<string, ControlClient>()

  /** Returns the next application that registered for a verb (lower case), round robin. */
  pick(verb: string): ControlClient | undefined {
    const willing: ControlClient[] = []
    for (const app of this.all) if (app.open && app.verbs.has(verb)) willing.push(app)
    if (willing.length === 0) return undefined
    // Like the reference, each turn moves one place backwards in the list.
    const last = this.#turn.get(verb)
    const index = last ? willing.indexOf(last) - 1 : 0
    const chosen = willing[(index + willing.length) % willing.length]
    if (chosen) this.#turn.set(verb, chosen)
    return chosen
  }

  remove(app: ControlClient): void {
    this.all.delete(app)
    for (const [verb, last] of this.#turn) if (last === app) this.#turn.delete(verb)
  }
}

import type { ControlClient } from '../control/client.ts'

// The connected applications and the distribution of requests among them (drachtio-control-protocol.md §14).

export class Apps {
  readonly all = new Set<ControlClient>()
  /** The application last chosen for each verb. The next request goes to its neighbour. */
  readonly #turn = new Map<string, ControlClient>()

  /** Returns the next application that registered for a verb (lower case), round robin. A tag narrows the choice. */
  pick(verb: string, tag?: string): ControlClient | undefined {
    const willing: ControlClient[] = []
    for (const app of this.all) {
      if (app.open && app.verbs.has(verb) && (tag === undefined || app.tags.includes(tag))) willing.push(app)
    }
    if (willing.length === 0) return undefined
    const key = tag === undefined ? verb : `${verb} ${tag}`
    // Like the reference, each turn moves one place backwards in the list.
    const last = this.#turn.get(key)
    const index = last ? willing.indexOf(last) - 1 : 0
    const chosen = willing[(index + willing.length) % willing.length]
    if (chosen) this.#turn.set(key, chosen)
    return chosen
  }

  remove(app: ControlClient): void {
    this.all.delete(app)
    for (const [verb, last] of this.#turn) if (last === app) this.#turn.delete(verb)
  }
}

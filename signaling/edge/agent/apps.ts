import type { ControlClient } from '../control/client.ts'

// The applications that are connected, and who gets what (drachtio-control-protocol.md §14).

export class Apps {
  readonly all = new Set<ControlClient>()
  /** Last one chosen for each verb: the next request goes to its neighbour. */
  readonly #turn = new Map<string, ControlClient>()

  /** The next application that asked for a verb (lower case), round robin. With a tag, one that announced it. */
  pick(verb: string, tag?: string): ControlClient | undefined {
    const willing: ControlClient[] = []
    for (const app of this.all) {
      if (app.open && app.verbs.has(verb) && (tag === undefined || app.tags.includes(tag))) willing.push(app)
    }
    if (willing.length === 0) return undefined
    const key = tag === undefined ? verb : `${verb} ${tag}`
    // From one turn to the next the reference goes backwards through its list; so do we.
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

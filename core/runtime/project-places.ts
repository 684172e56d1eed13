/**
 * Places for work that goes on at once, such as requests to servers of customers. A project may hold as many as are
 * free: one alone gets half of them, two get a third each. So a project whose servers hang never leaves nothing to one
 * that comes later.
 */
export class ProjectPlaces {
  readonly #held: Map<string, number>
  #free: number

  constructor(free: number, held: ReadonlyMap<string, number> = new Map()) {
    this.#free = free
    this.#held = new Map(held)
  }

  get free(): number {
    return this.#free
  }

  /** The projects that can take no place now. */
  full(): string[] {
    return [...this.#held].flatMap(([project_id, held]) => (held >= this.#free ? [project_id] : []))
  }

  /** Of the rows, in their order, those that there are places for. Takes none. */
  fitting<Row extends { readonly project_id: string }>(rows: readonly Row[]): Row[] {
    const tried = new ProjectPlaces(this.#free, this.#held)
    return rows.filter(({ project_id }) => tried.take(project_id))
  }

  /** Takes a place. False when the project has its share. */
  take(project_id: string): boolean {
    const held = this.#held.get(project_id) ?? 0
    if (held >= this.#free) return false
    this.#held.set(project_id, held + 1)
    this.#free--
    return true
  }

  give(project_id: string): void {
    const held = this.#held.get(project_id) ?? 0
    if (held > 1) this.#held.set(project_id, held - 1)
    else this.#held.delete(project_id)
    this.#free++
  }
}

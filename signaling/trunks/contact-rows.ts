import type { RegistrationRow } from '../../core/state/calls/registrations.ts'

/**
 * Registrations, together by trunk or by the project of clients: a call walks those of its callee's trunk or project
 * alone, however many others there are.
 */
export class ContactRows {
  readonly #groups = new Map<string, Map<string, RegistrationRow>>()
  #size = 0

  get size(): number {
    return this.#size
  }

  *[Symbol.iterator](): Generator<RegistrationRow> {
    for (const group of this.#groups.values()) yield* group.values()
  }

  /** Returns all of the owner's trunk, or of all clients of its project. The one that was set last stands last. */
  together(of: Owned): RegistrationRow[] {
    return [...(this.#groups.get(groupOf(of))?.values() ?? [])]
  }

  set(row: RegistrationRow): void {
    const group = this.#groups.get(groupOf(row)) ?? new Map<string, RegistrationRow>()
    this.#groups.set(groupOf(row), group)
    if (!group.delete(contactKey(row))) this.#size++
    group.set(contactKey(row), row)
  }

  delete(row: RegistrationRow): void {
    const group = this.#groups.get(groupOf(row))
    if (!group?.delete(contactKey(row))) return
    this.#size--
    if (group.size === 0) this.#groups.delete(groupOf(row))
  }
}

type Owned = Pick<RegistrationRow, 'credential_id' | 'trunk_id'>

export const contactKey = (row: Pick<RegistrationRow, 'credential_id' | 'contact'>): string =>
  `${row.credential_id} ${row.contact}`

/** The trunk, or `client:<project>`. No id of a project has a colon. */
const groupOf = ({ credential_id, trunk_id }: Owned): string =>
  trunk_id === '' ? credential_id.slice(0, credential_id.indexOf(':', 'client:'.length)) : trunk_id

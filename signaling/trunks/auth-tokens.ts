import { unseal } from '../../core/runtime/secrets.ts'
import type { Snapshot } from './snapshot.ts'

/** The auth tokens of the projects' voice accounts. Each is unsealed once per configuration. */
export class AuthTokens {
  readonly #master_key: Buffer
  readonly #snapshot: () => Snapshot
  #read: { readonly snapshot: Snapshot | null; readonly tokens: Map<string, string> } = {
    snapshot: null,
    tokens: new Map(),
  }

  constructor(master_key: Buffer, snapshot: () => Snapshot) {
    this.#master_key = master_key
    this.#snapshot = snapshot
  }

  /** Returns the project's token; null when the project has no active account. */
  of(project_id: string): string | null {
    const snapshot = this.#snapshot()
    if (this.#read.snapshot !== snapshot) this.#read = { snapshot, tokens: new Map() }
    const account = snapshot.accounts.get(project_id)
    if (!account?.active) return null
    const token = this.#read.tokens.get(project_id) ?? unseal(this.#master_key, account.auth_token_sealed)
    this.#read.tokens.set(project_id, token)
    return token
  }
}

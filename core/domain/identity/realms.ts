/** A digest credential, as far as a challenge depends on it. */
interface RealmEntry {
  readonly realm: string
  /** The signaling name of its trunk; null when it has none. */
  readonly host: string | null
}

/** In which realm a stranger is challenged. */
export interface Realms {
  readonly by_host: ReadonlyMap<string, string>
  /** The realm of all credentials; null when they have several. */
  readonly common: string | null
  /** Whether there is any credential: without one nobody could answer a challenge. */
  readonly any: boolean
}

/** Made once for a configuration, because a challenge to a stranger must be cheap. */
export function compileRealms(entries: Iterable<RealmEntry>): Realms {
  const by_host = new Map<string, string>()
  const realms = new Set<string>()
  for (const { realm, host } of entries) {
    const name = host?.toLowerCase()
    if (name !== undefined && !by_host.has(name)) by_host.set(name, realm)
    realms.add(realm)
  }
  const [only] = realms
  return { by_host, common: realms.size === 1 && only !== undefined ? only : null, any: realms.size > 0 }
}

/** That of the trunk whose signaling name is called, else the one that all credentials share, else our domain. */
export const realmFor = (realms: Realms, host: string, domain: string): string =>
  realms.by_host.get(host.toLowerCase()) ?? realms.common ?? domain

/** The fields of a digest credential that a challenge depends on. */
interface RealmEntry {
  readonly realm: string
  /** The signaling name of the credential's trunk; null when it has none. */
  readonly host: string | null
}

/** The realms in which unidentified clients are challenged. */
export interface Realms {
  readonly by_host: ReadonlyMap<string, string>
  /** The realm that all credentials share; null when there are several or none. */
  readonly common: string | null
  /** Whether any credential exists. Without one no client could answer a challenge. */
  readonly any: boolean
}

/** Compiles the realms once per configuration, because challenging an unidentified client must be cheap. */
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

/** Returns the realm of the trunk whose signaling name is called, else the common realm, else our domain. */
export const realmFor = (realms: Realms, host: string, domain: string): string =>
  realms.by_host.get(host.toLowerCase()) ?? realms.common ?? domain

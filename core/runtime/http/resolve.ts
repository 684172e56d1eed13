import { lookup, Resolver } from 'node:dns/promises'
import { readFile, stat } from 'node:fs/promises'
import { isIP } from 'node:net'

/** Resolves a host name to IPv4 and IPv6 addresses. Rejects or returns an empty list when there are none. */
export type ResolveHost = (hostname: string) => Promise<readonly string[]>

const HOSTS_FILE = '/etc/hosts'
const NOT_FOUND = new Set(['ENOTFOUND', 'ENODATA'])

/**
 * Resolves names by the hosts file, then by DNS with our own resolver. Only names without a dot (search domains,
 * container names) use getaddrinfo: with a dead DNS server it blocks one of Node's four pool threads, which also serve
 * the files and decompression of calls in progress.
 */
export function createHostResolver(): ResolveHost {
  let hosts = new Map<string, string[]>()
  let read_at_mtime = -1

  const fromHostsFile = async (hostname: string): Promise<readonly string[]> => {
    try {
      const { mtimeMs } = await stat(HOSTS_FILE)
      if (mtimeMs !== read_at_mtime) hosts = parseHosts(await readFile(HOSTS_FILE, 'utf8'))
      read_at_mtime = mtimeMs
    } catch {
      // The machine has no hosts file.
      hosts = new Map()
    }
    return hosts.get(hostname) ?? []
  }

  return async hostname => {
    const name = hostname.toLowerCase().replace(/\.$/, '')
    const local = await fromHostsFile(name)
    if (local.length > 0) return local
    if (!name.includes('.')) return (await lookup(name, { all: true })).map(entry => entry.address)
    const resolver = new Resolver({ timeout: 1500, tries: 2 })
    const [v4, v6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    const found = [v4, v6].flatMap(answer => (answer.status === 'fulfilled' ? answer.value : []))
    if (found.length > 0) return found
    const failed = [v4, v6].find(answer => answer.status === 'rejected' && !NOT_FOUND.has(answer.reason?.code))
    throw failed?.status === 'rejected' ? failed.reason : new Error(`${name} has no address`)
  }
}

/** Parses a hosts file (hosts(5)) into addresses by lower-case name. */
export function parseHosts(text: string): Map<string, string[]> {
  const hosts = new Map<string, string[]>()
  for (const line of text.split('\n')) {
    const [address = '', ...names] = (line.split('#', 1)[0] ?? '').trim().split(/\s+/)
    if (isIP(address) === 0) continue
    for (const name of names.map(written => written.toLowerCase()))
      hosts.set(name, [...(hosts.get(name) ?? []), address])
  }
  return hosts
}

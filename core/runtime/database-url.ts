/** A server that may be the primary. */
export interface Host {
  /** `host:port`, for messages. */
  readonly name: string
  /** The URL of this server alone, with the password. */
  readonly url: string
}

const SHAPE = /^(postgres(?:ql)?:\/\/(?:[^@/]*@)?)([^@/?]+)(\/[^?]+)(\?.*)?$/
const DEFAULT_PORT = '5432'

/**
 * Reads `postgres://user:password@host1:5432,host2:5433/database?options`: one URL for each host. A host is a name, an
 * address (IPv6 in brackets), or the percent-encoded folder of a Unix socket. Null: it is not such a URL.
 */
export function hostsOf(url: string): readonly Host[] | null {
  const [, begin, list, database, options = ''] = SHAPE.exec(url) ?? []
  // Programs that we run see the options, and so does who lists them: a password stands before the host.
  if (begin === undefined || list === undefined || database === undefined || /[?&]password=/i.test(options)) return null
  const hosts = list.split(',').map(host => {
    const [, name, port = DEFAULT_PORT] = /^(\[[0-9a-fA-F:.]+\]|[^:[\]]+)(?::(\d{1,5}))?$/.exec(host) ?? []
    if (name === undefined || !isEncoded(name)) return null
    return { name: `${decodeURIComponent(name)}:${port}`, url: `${begin}${name}:${port}${database}${options}` }
  })
  return hosts.every(host => host !== null) ? hosts : null
}

/** Returns the servers and the name of the database of such a URL, for messages; never the user or the password. */
export function databaseName(url: string): string {
  const [, , list = '', database = ''] = SHAPE.exec(url) ?? []
  return `${list}${database}`
}

/** Returns such a URL without its password, and the password. */
export function withoutPassword(url: string): { readonly url: string; readonly password: string | null } {
  const [, begin, user, password, rest] = /^(postgres(?:ql)?:\/\/)([^:@/]*):([^@/]*)(@.*)$/.exec(url) ?? []
  if (begin === undefined || password === undefined) return { url, password: null }
  return { url: `${begin}${user}${rest}`, password: decodeURIComponent(password) }
}

/** Reports whether each percent sign begins a character of ASCII. */
const isEncoded = (text: string): boolean => /^(?:[^%]|%[0-7][0-9a-fA-F])*$/.test(text)

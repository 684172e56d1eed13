/**
 * Short-lived credentials of browser clients. A token is a SIP digest credential that the server does not store: the
 * user name states the client and the expiry, and the password signs it with the auth token of the project's voice
 * account. Rotating the auth token revokes every client token.
 */

/** What a client may do: register and be called, or call. */
export const CLIENT_DIRECTIONS = ['in', 'out'] as const
export type ClientDirection = (typeof CLIENT_DIRECTIONS)[number]

export interface ClientToken {
  /** The name that a Dial uses to reach the client. */
  readonly client: string
  /** The caller number that the client presents, E.164 with plus; null for the project's first number. */
  readonly caller: string | null
  /** Epoch seconds. */
  readonly expires_at_seconds: number
  readonly allowed: readonly ClientDirection[]
}

export const CLIENT_TOKEN_SECONDS = { least: 60, standard: 3600, most: 86_400 } as const

/** Reports whether a name can be a SIP user part without escaping. */
export const isClientName = (name: string): boolean => /^[A-Za-z0-9][A-Za-z0-9_.+-]{0,120}$/.test(name)

const PREFIX = 'ct1.'
const PROJECT = /^prj_([0-9a-z-]{1,60})$/

/** `<project id without prj_>.client.<domain>`: the host of the clients' addresses and their digest realm. */
export const clientDomain = (project_id: string, domain: string): string =>
  `${project_id.replace(/^prj_/, '')}.client.${domain}`

/** Returns the project whose clients have addresses at this host; null for any other host. */
export function projectOfClientDomain(host: string, domain: string): string | null {
  const end = `.client.${domain.toLowerCase()}`
  const given = host.toLowerCase().replace(/\.$/, '')
  const project_id = given.endsWith(end) ? `prj_${given.slice(0, -end.length)}` : ''
  return PROJECT.test(project_id) ? project_id : null
}

/** Returns the text that the password signs. */
export const clientTokenText = (username: string): string => `strowger client token ${username}`

/** Returns the digest user name of a token. `toText` encodes UTF-8 as base64url. */
export function clientUsername(token: ClientToken, toText: (json: string) => string): string {
  const { client, caller, expires_at_seconds, allowed } = token
  const limited = allowed.length < CLIENT_DIRECTIONS.length ? { a: allowed } : {}
  return PREFIX + toText(JSON.stringify({ c: client, n: caller, e: expires_at_seconds, ...limited }))
}

/** Reads the claims in a user name; null when it is not a client's. Only a valid digest proves the claims. */
export function readClientUsername(username: string, fromText: (text: string) => string): ClientToken | null {
  if (!username.startsWith(PREFIX) || username.length > 600) return null
  let value: unknown
  try {
    value = JSON.parse(fromText(username.slice(PREFIX.length)))
  } catch {
    return null
  }
  if (typeof value !== 'object' || value === null) return null
  const { c, n, e, a = CLIENT_DIRECTIONS } = value as Record<string, unknown>
  if (typeof c !== 'string' || !isClientName(c) || typeof e !== 'number' || !Number.isSafeInteger(e)) return null
  if (n !== null && (typeof n !== 'string' || !/^\+[1-9][0-9]{6,14}$/.test(n))) return null
  if (!Array.isArray(a)) return null
  return { client: c, caller: n, expires_at_seconds: e, allowed: CLIENT_DIRECTIONS.filter(way => a.includes(way)) }
}

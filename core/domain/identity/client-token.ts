/**
 * Short-lived credentials of browser clients. A token is a SIP digest credential that nobody stores: the user name says
 * who the client is and until when, and the password is its signature with the auth token of the project's voice
 * account. Rotating the auth token ends every client token.
 */

export interface ClientToken {
  /** Name by which a Dial reaches the client. */
  readonly client: string
  /** E.164 with plus that the client presents; null for the project's first number. */
  readonly caller: string | null
  /** Epoch seconds. */
  readonly expires_at_seconds: number
}

export const CLIENT_TOKEN_SECONDS = { least: 60, standard: 3600, most: 86_400 } as const

/** Names that are one SIP user part without escapes. */
export const isClientName = (name: string): boolean => /^[A-Za-z0-9][A-Za-z0-9_.+-]{0,120}$/.test(name)

const PREFIX = 'ct1.'
const PROJECT = /^prj_([0-9a-z-]{1,60})$/

/** `<project id without prj_>.client.<domain>`: host of the clients' addresses and their realm. */
export const clientDomain = (project_id: string, domain: string): string =>
  `${project_id.replace(/^prj_/, '')}.client.${domain}`

/** The project whose clients have addresses at this host; null for any other host. */
export function projectOfClientDomain(host: string, domain: string): string | null {
  const end = `.client.${domain.toLowerCase()}`
  const given = host.toLowerCase().replace(/\.$/, '')
  const project_id = given.endsWith(end) ? `prj_${given.slice(0, -end.length)}` : ''
  return PROJECT.test(project_id) ? project_id : null
}

/** What the password signs. */
export const clientTokenText = (username: string): string => `strowger client token ${username}`

/** The digest user name; `toText` is base64url of UTF-8. */
export function clientUsername(token: ClientToken, toText: (json: string) => string): string {
  const { client, caller, expires_at_seconds } = token
  return PREFIX + toText(JSON.stringify({ c: client, n: caller, e: expires_at_seconds }))
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
  const { c, n, e } = value as Record<string, unknown>
  if (typeof c !== 'string' || !isClientName(c) || typeof e !== 'number' || !Number.isSafeInteger(e)) return null
  if (n !== null && (typeof n !== 'string' || !/^\+[1-9][0-9]{6,14}$/.test(n))) return null
  return { client: c, caller: n, expires_at_seconds: e }
}

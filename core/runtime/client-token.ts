import { createHmac } from 'node:crypto'
import {
  type ClientToken,
  clientDomain,
  clientTokenText,
  clientUsername,
  readClientUsername,
} from '../domain/identity/client-token.ts'

/** SIP credentials of a browser client (docs/calls.md), with which its user agent registers and calls. */
export interface ClientCredential {
  readonly client: string
  /** The client's address, `sip:<client>@<project>.client.<domain>`. */
  readonly sip_uri: string
  /** Host of `sip_uri`, and the digest realm. */
  readonly domain: string
  readonly username: string
  readonly password: string
  /** Epoch seconds. Registrations with this credential expire at the same time. */
  readonly expires_at_seconds: number
}

/** Makes a credential. `auth_token` is the token of the project's voice account; its holders may make credentials. */
export function makeClientCredential(
  token: ClientToken,
  facts: { readonly project_id: string; readonly domain: string; readonly auth_token: string },
): ClientCredential {
  const domain = clientDomain(facts.project_id, facts.domain)
  const username = clientUsername(token, json => Buffer.from(json).toString('base64url'))
  return {
    client: token.client,
    sip_uri: `sip:${token.client}@${domain}`,
    domain,
    username,
    password: clientPassword(username, facts.auth_token),
    expires_at_seconds: token.expires_at_seconds,
  }
}

export const clientPassword = (username: string, auth_token: string): string =>
  createHmac('sha256', auth_token).update(clientTokenText(username)).digest('base64url')

export const readClientToken = (username: string): ClientToken | null =>
  readClientUsername(username, text => Buffer.from(text, 'base64url').toString('utf8'))

import type { IncomingMessage } from 'node:http'
import { sameSecret, unseal } from '../../core/runtime/secrets.ts'
import { findVoiceAccountBySid, type VoiceAccountOfProject } from '../../core/state/people/voice-accounts.ts'
import { headersNamed } from '../http/bearer.ts'
import type { Services } from '../http/services.ts'
import { notProxied, numbered, type VoiceRefusal } from './errors.ts'

const REALM = { 'WWW-Authenticate': 'Basic realm="strowger"' }

const unauthenticated = (): VoiceRefusal => ({
  kind: 'problem',
  reason: 'unauthenticated',
  detail: 'Basic authentication with the AccountSid as username is required.',
  headers: REALM,
})

/**
 * Authenticates a request as the voice account in its path (voice-compat.md section 1). It refuses, in this order,
 * missing Basic credentials or those of another account, an unknown or inactive account, and a wrong token.
 */
export async function authenticate(
  request: IncomingMessage,
  account_sid: string,
  { state, settings }: Services,
): Promise<VoiceAccountOfProject | VoiceRefusal> {
  const credentials = basicCredentials(request)
  if (credentials?.username !== account_sid) return unauthenticated()
  const account = await findVoiceAccountBySid(state.db, account_sid)
  if (account?.status !== 'active') return notProxied(`The account ${account_sid} is unknown or not active.`)
  const token = unseal(settings.master_key, account.auth_token_sealed)
  if (!sameSecret(token, credentials.password))
    return numbered(20003, 'The auth token is not the one of this account.', { headers: REALM })
  return account
}

const MAX_HEADER_CHARACTERS = 1024

/** Parses exactly one `Basic` header (RFC 7617 §2): base64 of user-id, colon, password. Null for anything else. */
export function basicCredentials(request: IncomingMessage): { username: string; password: string } | null {
  const headers = headersNamed(request, 'authorization')
  const [header] = headers
  if (header === undefined || headers.length !== 1 || header.length > MAX_HEADER_CHARACTERS) return null
  const encoded = /^basic +([A-Za-z0-9+/_-]+={0,2})$/i.exec(header.trim())?.[1]
  if (encoded === undefined) return null
  const decoded = Buffer.from(encoded, 'base64').toString('utf8')
  const colon = decoded.indexOf(':')
  return colon < 0 ? null : { username: decoded.slice(0, colon), password: decoded.slice(colon + 1) }
}

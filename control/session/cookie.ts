import { createHash, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { type Clock, iso } from '../../core/runtime/clock.ts'
import { sameSecret } from '../../core/runtime/secrets.ts'
import type { State } from '../../core/state/index.ts'
import { findSession, touchSession } from '../../core/state/people/console-sessions.ts'
import type { MemberRow } from '../../core/state/people/organizations.ts'
import { ROLE_SCOPES } from '../http/access.ts'
import { addressGroup, requestClient } from '../http/address.ts'
import type { Caller } from '../http/caller.ts'
import { type Refusal, refuse } from '../http/reply.ts'
import type { Route } from '../http/route.ts'

const COOKIE = 'strowger_session'
/** Browsers send the console's cookie only below this path. */
const COOKIE_PATH = '/console'
export const SESSION_LIFE_MS = 12 * 60 * 60 * 1000
const IDLE_MS = 2 * 60 * 60 * 1000

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Only the cookie holds a session's token. The database stores its hash; the CSRF token derives from the token. */
export const newSessionToken = (): string => randomBytes(32).toString('base64url')
export const sessionHash = (token: string): string => sha256(`session:${token}`)
export const csrfOf = (token: string): string => sha256(`csrf:${token}`)

export function sessionCookie(token: string, base_url: string): string {
  const secure = base_url.startsWith('https:') ? '; Secure' : ''
  const life = token === '' ? 0 : SESSION_LIFE_MS / 1000
  return `${COOKIE}=${token}; Path=${COOKIE_PATH}; Max-Age=${life}; HttpOnly; SameSite=Lax${secure}`
}

function sessionTokenOf(request: IncomingMessage): string | undefined {
  const match = /(?:^|;\s*)strowger_session=([A-Za-z0-9_-]{43})(?:;|$)/.exec(request.headers.cookie ?? '')
  return match?.[1]
}

/** A signed-in member. */
export interface MemberCaller extends Caller {
  readonly kind: 'member'
  readonly member: MemberRow
  readonly session_hash: string
  readonly csrf_token: string
}

export const isMember = (caller: Caller): caller is MemberCaller => 'member' in caller

/** Authenticates /console/api by the session cookie, and each write also by the CSRF token that only our pages have. */
export function sessionAuthentication({ state, clock }: { readonly state: State; readonly clock: Clock }) {
  return async (request: IncomingMessage, route: Route): Promise<Caller | Refusal> => {
    if (route.anonymous === true) return nobody(request)
    const token = sessionTokenOf(request)
    if (token === undefined)
      return request.headers.authorization === undefined ? signInFirst() : refuse('person_required')
    const id_hash = sessionHash(token)
    const now_ms = clock.now()
    const found = await findSession(state.db, id_hash, { now_ms, idle_ms: IDLE_MS })
    if (!found) return signInFirst()
    const given = request.headers['x-csrf-token']
    const csrf_token = csrfOf(token)
    if (request.method !== 'GET' && request.method !== 'HEAD')
      if (typeof given !== 'string' || !sameSecret(given, csrf_token)) return refuse('csrf_invalid')
    const { member, session } = found
    if (now_ms - Date.parse(session.last_seen_at) > 60_000) await touchSession(state.db, id_hash, iso(now_ms))
    const caller: MemberCaller = {
      kind: 'member',
      id: member.id,
      organization_id: member.organization_id,
      project_id: null,
      role: member.role,
      scopes: ROLE_SCOPES[member.role],
      subaccount_id: null,
      operator: member.operator === 1,
      actor: { type: 'user', id: member.id, name: member.email, detail: member.role },
      member,
      session_hash: id_hash,
      csrf_token,
    }
    return caller
  }
}

/** Any route that requires a signed-in member, for requests of none: pages and upgrades. */
export const MEMBERS_ONLY = { anonymous: false } as Route

const signInFirst = (): Refusal => refuse('unauthenticated', {}, { detail: 'Sign in to the console.' })

/** Returns the caller of a sign-in. Only the address is known; rate limits apply to its group. */
const nobody = (request: IncomingMessage): Caller => ({
  kind: 'member',
  id: `address ${addressGroup(request)}`,
  organization_id: '',
  project_id: null,
  role: 'org:viewer',
  scopes: new Set(),
  subaccount_id: null,
  operator: false,
  actor: { type: 'system', id: null, name: 'sign-in', detail: null },
  address: requestClient(request).address,
})

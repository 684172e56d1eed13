import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Clock } from '../../core/runtime/clock.ts'
import { iso } from '../../core/runtime/clock.ts'
import type { Log } from '../../core/runtime/log.ts'
import { hashSecret } from '../../core/runtime/secrets.ts'
import type { State } from '../../core/state/index.ts'
import { endOfKey, type FoundKey, findKeyByPublicId, keyIsOver, touchKey } from '../../core/state/people/api-keys.ts'
import type { Scope } from './access.ts'
import type { Caller } from './caller.ts'
import { type Refusal, refuse } from './reply.ts'

const KEY = /^bearer sk_live_([A-Z2-7]{12})_([0-9a-f]{32})$/i
const EXACT = /^[^ ]+ sk_live_([A-Z2-7]{12})_([0-9a-f]{32})$/

/** Returns the same refusal for every invalid credential (spec, "API keys" 3). */
export const unauthenticated = (): Refusal =>
  refuse(
    'unauthenticated',
    {},
    {
      detail: 'A valid bearer credential is required.',
      headers: { 'WWW-Authenticate': 'Bearer realm="strowger"' },
    },
  )

type BearerAuthentication = (request: IncomingMessage) => Promise<Caller | Refusal>

/** Authenticates requests to /v1: exactly one Authorization header with `Bearer`, one space and an API key. */
export function bearerAuthentication(services: { state: State; clock: Clock; log: Log }): BearerAuthentication {
  const noteUse = lastUseNoter(services)
  const knownOf = knownKeys()
  return async request => {
    const found = headersNamed(request, 'authorization')
    const [header] = found
    // The scheme's name is case-insensitive, the key is not.
    const match = header !== undefined && found.length === 1 && KEY.test(header) ? EXACT.exec(header) : null
    const [, public_id, secret] = match ?? []
    if (public_id === undefined || secret === undefined) return unauthenticated()
    const found_key = await findKeyByPublicId(services.state.db, public_id)
    const known = found_key && knownOf(found_key)
    const same = timingSafeEqual(Buffer.from(hashSecret(secret), 'latin1'), known?.secret_hash ?? NO_HASH)
    const now = iso(services.clock.now())
    if (!found_key || !known || !same || keyIsOver(found_key.key, now)) return unauthenticated()
    noteUse(found_key.key.id, found_key.key.last_used_at, now)
    return known.caller
  }
}

const NO_HASH = Buffer.from('0'.repeat(64), 'latin1')

interface Known {
  readonly secret_hash: Buffer
  readonly caller: Caller
}

/**
 * Returns what a key stands for. It is kept with the cached query result: a change of its rows makes a new result, so
 * that an entry is never stale.
 */
function knownKeys(): (found: FoundKey) => Known {
  const keys = new WeakMap<FoundKey, Known>()
  return found => {
    const known = keys.get(found)
    if (known) return known
    const made = { secret_hash: Buffer.from(found.key.secret_hash, 'latin1'), caller: callerOf(found) }
    keys.set(found, made)
    return made
  }
}

const callerOf = ({ key, projects }: FoundKey): Caller => ({
  kind: 'api_key',
  id: key.id,
  organization_id: key.organization_id,
  project_id: key.project_id,
  projects,
  role: key.role,
  scopes: new Set(JSON.parse(key.scopes) as Scope[]),
  subaccount_id: key.subaccount_id,
  operator: false,
  expires_at: endOfKey(key),
  actor: { type: 'api_key', id: key.id, name: key.name, detail: `sk_live_${key.public_id}` },
})

/** Returns all values of a header. Node joins or drops repeated headers; the raw list has them all. */
export function headersNamed(request: IncomingMessage, name: string): string[] {
  const values: string[] = []
  for (let at = 0; at < request.rawHeaders.length; at += 2)
    if (request.rawHeaders[at]?.toLowerCase() === name) values.push(request.rawHeaders[at + 1] ?? '')
  return values
}

/**
 * Returns a function that writes the last use of a key at most once a minute. The write runs in the background, because
 * it must neither delay the request nor make it fail.
 */
function lastUseNoter({ state, log }: { state: State; log: Log }) {
  const writing = new Set<string>()
  return (id: string, last_used_at: string | null, now: string): void => {
    const minute = `${now.slice(0, 16)}:00.000Z`
    if (last_used_at === minute || writing.has(id)) return
    writing.add(id)
    touchKey(state.db, id, minute)
      .catch(err => log.warn({ err, key_id: id }, 'the last use of a key could not be saved'))
      .finally(() => writing.delete(id))
  }
}

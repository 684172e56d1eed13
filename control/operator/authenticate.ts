import type { IncomingMessage } from 'node:http'
import { OPERATOR_SCOPES, type OperatorScope } from '../../core/domain/access/scopes.ts'
import { addressMatcher } from '../../core/domain/network/address-guard.ts'
import { iso } from '../../core/runtime/clock.ts'
import { hashSecret, sameSecret } from '../../core/runtime/secrets.ts'
import { INSTALLATION } from '../../core/state/people/audit.ts'
import { findOperatorKey, type OperatorKeyRow, touchOperatorKey } from '../../core/state/people/operator-keys.ts'
import { comesFrom } from '../http/address.ts'
import { headersNamed, unauthenticated } from '../http/bearer.ts'
import type { Caller } from '../http/caller.ts'
import { isRefusal, type Refusal, refuse } from '../http/reply.ts'
import type { Route } from '../http/route.ts'
import type { Services } from '../http/services.ts'

const KEY = /^[Bb][Ee][Aa][Rr][Ee][Rr] ok_live_([A-Z2-7]{12})_([0-9a-f]{32})$/

/** Stands for the hash of a key that does not exist, so that a stranger's request takes as long as a known key's. */
const NO_HASH = '0'.repeat(64)

/** Authentication of /operator/v1: an operator's key, from an address that operators may come from. */
export function operatorAuthentication(services: Services): (request: IncomingMessage) => Promise<Caller | Refusal> {
  const { state, clock, log, settings } = services
  const mayCome = addressMatcher(settings.operator_sources)
  return async request => {
    if (!comesFrom(request, mayCome)) return refuse('operator_source_forbidden')
    const found = headersNamed(request, 'authorization')
    const [, public_id, secret] = (found.length === 1 && KEY.exec(found[0] ?? '')) || []
    if (public_id === undefined || secret === undefined) return unauthenticated()
    const key = await findOperatorKey(state.db, public_id)
    const now = iso(clock.now())
    if (!sameSecret(hashSecret(secret), key?.secret_hash ?? NO_HASH) || !key || keyIsOver(key, now))
      return unauthenticated()
    const minute = `${now.slice(0, 16)}:00.000Z`
    if (key.last_used_at !== minute)
      touchOperatorKey(state.db, key.id, minute).catch(err =>
        log.warn({ err, key_id: key.id }, 'the last use of a key could not be saved'),
      )
    return operatorCaller({
      id: key.id,
      name: key.name,
      detail: `ok_live_${key.public_id}`,
      scopes: JSON.parse(key.scopes) as OperatorScope[],
      expires_at: key.expires_at,
    })
  }
}

/**
 * Authentication of the same endpoints in the console: `session` has found a member and checked the CSRF token of a
 * write. The member must be an operator, and come from where operators' keys may come from. Such a member has every
 * scope; an account that has them is opened, made and ended only by those who have them all (members.ts).
 */
export function operatorSessions(
  { settings }: Pick<Services, 'settings'>,
  session: (request: IncomingMessage, route: Route) => Promise<Caller | Refusal>,
): (request: IncomingMessage, route: Route) => Promise<Caller | Refusal> {
  const mayCome = addressMatcher(settings.operator_sources)
  return async (request, route) => {
    const member = await session(request, route)
    if (isRefusal(member)) return member
    if (!member.operator)
      return refuse(
        'role_forbidden',
        { value: member.role },
        { detail: 'Only an operator of the platform may do this.' },
      )
    if (!comesFrom(request, mayCome)) return refuse('operator_source_forbidden')
    return operatorCaller({ id: member.id, name: member.actor.name, detail: 'console', scopes: OPERATOR_SCOPES })
  }
}

const keyIsOver = ({ revoked_at, expires_at }: OperatorKeyRow, now: string): boolean =>
  revoked_at !== null || (expires_at !== null && expires_at <= now)

/** An operator as a caller: of the installation, and of no organization. */
export const operatorCaller = (operator: {
  readonly id: string
  readonly name: string
  readonly detail: string | null
  readonly scopes: readonly OperatorScope[]
  readonly expires_at?: string | null
}): Caller => ({
  kind: 'operator',
  id: operator.id,
  organization_id: INSTALLATION,
  project_id: null,
  role: 'operator',
  scopes: new Set(operator.scopes),
  subaccount_id: null,
  operator: true,
  expires_at: operator.expires_at ?? null,
  actor: { type: 'operator', id: operator.id, name: operator.name, detail: operator.detail },
})

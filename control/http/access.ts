import { OPERATOR_SCOPES, type OperatorScope, SCOPES, type Scope } from '../../core/domain/access/scopes.ts'
import type { Role } from '../../core/state/index.ts'
import { type Refusal, refuse } from './reply.ts'

export { OPERATOR_SCOPES, type OperatorScope, SCOPES, type Scope }

/** A member's or a key's role in its organization; `operator` stands outside all organizations. */
export type CallerRole = Role | 'operator'

const BILLING: readonly Scope[] = ['billing:read', 'organization:read', 'call_history:read']
const WITHHELD_FROM_ENGINEERS: readonly Scope[] = ['billing:read', 'subaccounts:write', 'audit:read']
const WITHHELD_FROM_VIEWERS: readonly Scope[] = ['billing:read', 'audit:read']

/** The scopes that each role may use at most (design section 7). The scopes of a key narrow them further. */
export const ROLE_SCOPES: Readonly<Record<Role, ReadonlySet<Scope>>> = {
  'org:admin': new Set(SCOPES),
  'org:engineer': new Set(SCOPES.filter(scope => !WITHHELD_FROM_ENGINEERS.includes(scope))),
  'org:billing': new Set(BILLING),
  'org:viewer': new Set(SCOPES.filter(scope => scope.endsWith(':read') && !WITHHELD_FROM_VIEWERS.includes(scope))),
}

const OPERATOR: ReadonlySet<OperatorScope> = new Set(OPERATOR_SCOPES)

/** Reports whether a role may use a scope at all. */
export const roleAllows = (role: CallerRole, scope: Scope | OperatorScope): boolean => {
  const allowed: ReadonlySet<Scope | OperatorScope> = role === 'operator' ? OPERATOR : ROLE_SCOPES[role]
  return allowed.has(scope)
}

/** The roles that a member may grant to a key or another member: at or below their own (spec, "API keys" 5). */
export const GRANTABLE_ROLES: Readonly<Record<CallerRole, readonly Role[]>> = {
  'org:admin': ['org:admin', 'org:engineer', 'org:billing', 'org:viewer'],
  'org:engineer': ['org:engineer', 'org:viewer'],
  'org:billing': [],
  'org:viewer': [],
  operator: [],
}

/**
 * Returns the refusal for a caller without `scope`, or null. Routes also call it for scopes that their body requires in
 * addition to the scope of the route.
 */
export function withoutScope(
  caller: {
    readonly kind?: 'api_key' | 'member' | 'operator'
    readonly role: CallerRole
    readonly scopes: ReadonlySet<Scope | OperatorScope>
  },
  scope: Scope | OperatorScope,
): Refusal<'scope_required' | 'role_forbidden'> | null {
  if (!caller.scopes.has(scope))
    return refuse(
      'scope_required',
      { value: scope },
      caller.kind === 'member' ? ofRole(caller.role, scope) : byKey(scope),
    )
  return roleAllows(caller.role, scope) ? null : refuse('role_forbidden', { value: caller.role })
}

const byKey = (scope: string) => ({ extra: { reason: scope } })

/** A person has a role, and no key whose scopes could be wider. */
const ofRole = (role: CallerRole, scope: string) => ({
  detail: `Your role, ${role.replace('org:', '')}, does not include ${scope}.`,
  extra: { reason: scope, remediation: 'Ask an admin of your organization.' },
})

/** Reports whether a caller has a scope and a role that may use it. */
export const mayUse = (caller: Parameters<typeof withoutScope>[0], scope: Scope): boolean =>
  withoutScope(caller, scope) === null

import { withoutScope } from './access.ts'
import type { Caller } from './caller.ts'
import { errorsIn } from './errors-in.ts'
import { invalidFields, type Refusal, refuse } from './reply.ts'
import type { Route } from './route.ts'

// Checks of a request that need no database, for requests that HTTP brings and for those of commands.

/**
 * Refuses a caller whose role or scopes do not allow the route. Which subaccount a restricted key may access is checked
 * when the resource is loaded.
 */
export function withoutAccess(route: Route, caller: Caller): Refusal | null {
  if (route.roles && !route.roles.includes(caller.role)) return refuse('role_forbidden', { value: caller.role })
  if (caller.subaccount_id !== null && !reachableFromSubaccount(route))
    return refuse('role_forbidden', { value: caller.role }, { detail: 'This key is restricted to a subaccount.' })
  if (route.or_scope && withoutScope(caller, route.or_scope) === null) return null
  return route.scope === null ? null : withoutScope(caller, route.scope)
}

/**
 * Reports whether a key restricted to a subaccount may call a route: it loads a resource that belongs to a subaccount,
 * or it declares that it enforces the restriction itself.
 */
const reachableFromSubaccount = (route: Route): boolean =>
  route.restricted_keys === true ||
  Object.entries(route.loaders).some(
    ([param, loader]) => loader.subaccount_id !== undefined && route.path.includes(`{${param}}`),
  )

/** Refuses a body that does not fit the route's schema. */
export async function bodyErrors(route: Route, body: object | undefined): Promise<Refusal | null> {
  if (!route.body) {
    const [name] = Object.keys(body ?? {})
    if (name === undefined) return null
    const errors = [{ pointer: `/${name}`, message: 'is not a field of this request' }]
    return refuse('validation_failed', { value: `/${name} is not a field of this request` }, { errors })
  }
  if (body === undefined) return refuse('body_malformed', { value: 'it is missing' })
  const errors = await errorsIn(route.body, body)
  return errors.length === 0 ? null : invalidFields(errors)
}

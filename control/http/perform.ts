import { breathe } from '../../core/runtime/breathe.ts'
import { newId } from '../../core/runtime/ids.ts'
import type { Caller } from './caller.ts'
import { carryOut } from './carry-out.ts'
import { bodyErrors, withoutAccess } from './checks.ts'
import { withUtcInstants } from './instants.ts'
import { queryOf } from './query.ts'
import { isRefusal, type Refusal, Refused } from './reply.ts'
import type { Answer, Route } from './route.ts'
import type { HttpServices } from './services.ts'

/** What a command asks of a route. */
export interface Wish {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly body?: object
}

/**
 * Carries out a route for a caller that no HTTP request brought, by the rules that hold for one: access, schema,
 * transaction, audit. A command changes what it finds, so it names no revision.
 */
export async function perform(
  route: Route,
  wish: Wish,
  caller: Caller,
  services: HttpServices,
): Promise<Answer | Refusal> {
  const { params = {} } = wish
  const path = route.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))
  const querystring = new URLSearchParams(wish.query).toString()
  const query = queryOf(querystring, route.query)
  if (isRefusal(query)) return query
  const wrong = withoutAccess(route, caller) ?? bodyErrors(route, wish.body)
  if (wrong) return wrong
  const body = withUtcInstants(route.body, wish.body)
  const prepared = await route.prepare?.({ body, services, caller, breathe })
  const ctx = { method: route.method.toUpperCase(), path, querystring, req: { headers: {} } }
  const asked = { ctx, request_id: newId.request(), route, params, caller, project: null, query, body, prepared }
  try {
    return await carryOut({ ...asked, if_match: null, idempotency_key: undefined }, services, false)
  } catch (error) {
    if (error instanceof Refused) return error.refusal
    throw error
  }
}

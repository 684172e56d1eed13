import { newId } from '../../core/runtime/ids.ts'
import type { Caller } from './caller.ts'
import { carryOut } from './carry-out.ts'
import { bareSteps } from './pipeline.ts'
import { isRefusal, type Refusal, Refused } from './reply.ts'
import type { Answer, Route } from './route.ts'
import type { HttpServices } from './services.ts'
import { type Bearer, type Brought, judged } from './steps.ts'

/** What a command asks of a route. */
export interface RouteRequest {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly body?: object
}

/**
 * Carries out a route for a caller that no HTTP request brought, by the steps that a request takes. A command changes
 * what it finds, so it names no revision; and nobody repeats it, so it has no idempotency key.
 */
export async function perform(
  route: Route,
  wish: RouteRequest,
  caller: Caller,
  services: HttpServices,
): Promise<Answer | Refusal> {
  const { params = {} } = wish
  const path = route.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))
  const querystring = new URLSearchParams(wish.query).toString()
  const ctx = { method: route.method.toUpperCase(), path, querystring, req: { headers: {} } }
  const run = judged(bareSteps<Answer, Refusal, Brought>(isRefusal), services).outcome('route', ready =>
    carryOut(ready, services, false),
  )
  try {
    return await run({ ctx, request_id: newId.request(), route, params, caller, bearer: byCommand(wish) })
  } catch (error) {
    if (error instanceof Refused) return error.refusal
    throw error
  }
}

const byCommand = ({ body }: RouteRequest): Bearer => ({
  project_id: undefined,
  body: async () => body,
  idempotency_key: () => undefined,
  if_match: () => null,
})

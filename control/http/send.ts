import type { ParameterizedContext } from 'koa'
import { type Failure, failure } from '../../core/state/index.ts'
import { etag } from './if-match.ts'
import { PROBLEM_TYPE, problem } from './problem.ts'
import { type Refusal, Refused, refuse, WrittenJson } from './reply.ts'
import type { Answer } from './route.ts'
import type { Services } from './services.ts'

/** Sends the answer of a route. */
export function sendAnswer(ctx: ParameterizedContext, answer: Answer): void {
  const { status, revision, headers, body } = answer
  ctx.status = status
  if (body === undefined) {
    ctx.body = answer.stream ?? null
    ctx.status = status
  }
  // Set after an empty body: assigning one makes Koa remove type and length, which HEAD needs.
  if (revision !== undefined) ctx.set('ETag', etag(revision))
  if (headers) ctx.set(headers)
  if (body === undefined) return
  ctx.type = 'application/json; charset=utf-8'
  ctx.body = body instanceof WrittenJson ? body.text : JSON.stringify(body)
}

/** Sends a refusal as a problem document. */
export function sendRefusal(
  ctx: ParameterizedContext,
  refusal: Refusal,
  context: { readonly base_url: string; readonly request_id: string },
): void {
  const { body, headers } = problem(refusal, context)
  ctx.status = body.status
  ctx.set({ ...headers })
  ctx.type = PROBLEM_TYPE
  ctx.body = JSON.stringify(body)
}

const UNUSABLE: ReadonlySet<Failure | null> = new Set(['busy', 'full', 'away', 'closed'])

/** Returns the refusal for an exception. Unexpected ones are logged with the request id, which the client also gets. */
export function refusalOf(
  error: unknown,
  { log }: Pick<Services, 'log'>,
  at: { readonly request_id: string; readonly step?: string },
): Refusal {
  if (error instanceof Refused) return error.refusal
  if (UNUSABLE.has(failure(error))) {
    log.error({ err: error, ...at }, 'a request failed because the state is unavailable')
    return refuse('state_unavailable', { value: 'try again' })
  }
  log.error({ err: error, ...at }, 'a request failed unexpectedly')
  return refuse('internal')
}

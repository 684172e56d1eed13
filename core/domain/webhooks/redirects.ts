import { type HttpTarget, parseTarget } from './target.ts'

export type HttpMethod = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** The effect of a response on the exchange: final, a redirect, or a redirect without a valid target. */
type Redirect =
  | { readonly kind: 'final' }
  | { readonly kind: 'follow'; readonly target: HttpTarget; readonly method: HttpMethod; readonly keep_body: boolean }
  | { readonly kind: 'bad'; readonly detail: string }

/**
 * Follows a response. 307 and 308 repeat method and body; 301, 302 and 303 become a GET without the parameters, like
 * the compatible form (RFC 9110 §15.4 allows it for POST). Other 3xx responses are final.
 */
export function redirectOf(
  answer: { readonly status: number; readonly location: string | undefined },
  request: { readonly method: HttpMethod; readonly url: string },
): Redirect {
  const repeats = answer.status === 307 || answer.status === 308
  if (!repeats && ![301, 302, 303].includes(answer.status)) return { kind: 'final' }
  if (answer.location === undefined) return { kind: 'bad', detail: `${answer.status} without Location` }
  const parsed = parseTarget(answer.location, request.url)
  if (!parsed.ok) return { kind: 'bad', detail: `Location of ${answer.status}: ${parsed.detail}` }
  const method = repeats || request.method === 'HEAD' ? request.method : 'GET'
  return { kind: 'follow', target: parsed.target, method, keep_body: repeats }
}

import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { newId } from '../../core/runtime/ids.ts'
import { requestClient } from './address.ts'
import { countBadCredential } from './bad-credentials.ts'
import type { Caller } from './caller.ts'
import { sendLast } from './last-answer.ts'
import { PROBLEM_TYPE, problem } from './problem.ts'
import { isRefusal, type Refusal, refuse } from './reply.ts'
import type { HttpServices, Services } from './services.ts'

/** Who may open a WebSocket. */

/** The paths at which a WebSocket is opened. With `same_origin` only our own pages may use the member's cookie. */
export type Doors = Readonly<
  Record<
    string,
    {
      readonly authenticate: (request: IncomingMessage) => Promise<Caller | Refusal>
      readonly same_origin: boolean
    }
  >
>

/** Returns the target of a request for a WebSocket; null when it is no URL, such as `//`. */
export function targetOf({ url = '/' }: IncomingMessage): URL | null {
  const base = 'http://strowger'
  return URL.canParse(url, base) ? new URL(url, base) : null
}

/** Returns who asks for a WebSocket, or why it is refused. Wrong credentials count against the address. */
export async function entering(
  services: HttpServices,
  { authenticate, same_origin }: Doors[string],
  request: IncomingMessage,
): Promise<Caller | Refusal> {
  if (same_origin && !sameOrigin(request))
    return refuse('role_forbidden', { value: 'another site' }, { detail: 'The Origin is not this host.' })
  const caller = await authenticate(request)
  if (!isRefusal(caller)) return caller
  const { allowed, headers } = await countBadCredential(services, request)
  return allowed ? caller : refuse('rate_limited', { value: 'of requests from this address' }, { headers })
}

/** Reports whether the Origin of a browser's request is this host. Only our own pages may use the member's cookie. */
function sameOrigin(request: IncomingMessage): boolean {
  const { origin } = request.headers
  const { host, secure } = requestClient(request)
  if (origin === undefined || !URL.canParse(origin)) return false
  const from = new URL(origin)
  return from.host === host && (!secure || from.protocol === 'https:')
}

/** Answers a request for a WebSocket with a problem document, and closes the connection. */
export function refuseUpgrade(socket: Duplex, refusal: Refusal, { settings, clock }: Services): void {
  const request_id = newId.request()
  const { body, headers } = problem(refusal, { base_url: settings.base_url, request_id })
  const text = JSON.stringify(body)
  const lines = Object.entries({ ...headers, 'Content-Type': PROBLEM_TYPE, 'X-Request-ID': request_id }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  sendLast(
    socket,
    `HTTP/1.1 ${body.status} ${body.title}\r\n${lines.join('')}Content-Length: ${Buffer.byteLength(text)}\r\n` +
      `Connection: close\r\n\r\n${text}`,
    clock,
  )
}

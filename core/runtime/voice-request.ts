import { createHash, createHmac, randomUUID } from 'node:crypto'
import type { CookieJar } from '../domain/webhooks/cookies.ts'
import { type FetchError, fetchErrorNumber, statusErrorNumber } from '../domain/webhooks/errors.ts'
import { parseOverrides, type RequestPolicy, retryDelay } from '../domain/webhooks/overrides.ts'
import {
  encodeParameters,
  type Parameters,
  signatureData,
  timedSignature,
  timedSignatureData,
  withBodyHash,
} from '../domain/webhooks/signature.ts'
import { parseTarget, splitFragment, withParameters } from '../domain/webhooks/target.ts'
import { type Clock, delay, systemClock } from './clock.ts'
import type { HttpClient, HttpHop, HttpRequest, HttpResult } from './http/index.ts'

/** A request for a document of a call, or a callback about it. */
export interface VoiceRequest {
  /**
   * As the customer wrote it. User info becomes Basic authentication, and answers a Digest challenge of its host. The
   * fragment (`#rc=..&rp=..`) sets timeouts and retries and is not sent.
   */
  readonly url: string
  readonly method: 'GET' | 'POST'
  /** Form parameters of a POST. A GET has them in its query. */
  readonly parameters?: Parameters
  /** Raw JSON in place of parameters (POST only). Its hash is added to the query. */
  readonly json?: string
  /** The account's current token. It only signs the request and is never sent. */
  readonly auth_token: string
  /** `document` reads the body of a 2xx (64 KiB); `ignored` reads none. */
  readonly reply: 'document' | 'ignored'
  readonly cookies?: CookieJar
  /**
   * The token of the earlier request that this one repeats (outbox); default a new UUID. Retries and redirects keep it.
   */
  readonly idempotency_token?: string
  /** Default 64 KiB. */
  readonly max_bytes?: number
  readonly signal?: AbortSignal
  readonly project_id?: string
}

interface Attempt {
  readonly status: number | null
  readonly error: FetchError | null
  readonly duration_ms: number
}

interface Exchange {
  /** URL, as sent, of the hop that answered or failed. It is the base of relative URLs in the document. */
  readonly url: string
  readonly attempts: readonly Attempt[]
  readonly idempotency_token: string
  /** Numbers of faults that were ignored (11243: invalid retry policy in the fragment). */
  readonly warnings: readonly number[]
  readonly duration_ms: number
}

interface VoiceAnswer extends Exchange {
  readonly ok: true
  /** 2xx. */
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  readonly redirects: number
}

interface VoiceFailure extends Exchange {
  readonly ok: false
  /** `status`: a response outside 2xx. */
  readonly error: FetchError | 'status'
  /** The `ErrorCode` of the compatible form, 11100 to 11750. */
  readonly number: number
  readonly status: number | null
  readonly detail: string
}

export type VoiceReply = VoiceAnswer | VoiceFailure

export interface VoiceRequester {
  /**
   * Signs and sends a request and retries as its URL asks, within its total timeout. Never rejects because of the peer.
   */
  send(request: VoiceRequest): Promise<VoiceReply>
}

interface VoiceRequesterOptions {
  readonly http: Pick<HttpClient, 'request'>
  readonly clock?: Clock
  /** Returns a number in [0, 1), for the jitter between attempts. */
  readonly random?: () => number
}

export function createVoiceRequester({ http, clock = systemClock, random = Math.random }: VoiceRequesterOptions) {
  return { send } satisfies VoiceRequester

  async function send(request: VoiceRequest): Promise<VoiceReply> {
    const started_ms = clock.monotonic_ms()
    const elapsed = (): number => clock.monotonic_ms() - started_ms
    const policy = parseOverrides(splitFragment(request.url.trim()).fragment.slice(1))
    const idempotency_token = request.idempotency_token ?? randomUUID()
    const prepared = prepare(request, policy, idempotency_token, clock)
    const attempts: Attempt[] = []
    for (;;) {
      const total_timeout_ms = Math.max(1, Math.round(policy.total_timeout_ms - elapsed()))
      const result = await http.request({ ...prepared, total_timeout_ms })
      const attempt = result.ok ? { status: result.status, error: null } : { status: null, error: result.error }
      attempts.push({ ...attempt, duration_ms: result.duration_ms })
      const wait_ms = retryDelay(policy, attempt, attempts.length, random())
      const again = wait_ms !== null && elapsed() + wait_ms < policy.total_timeout_ms && !request.signal?.aborted
      if (!again) {
        const { warnings } = policy
        return conclude(result, { attempts, idempotency_token, warnings, duration_ms: Math.round(elapsed()) })
      }
      if (wait_ms > 0) await delay(clock, wait_ms, request.signal)
    }
  }
}

/** Returns the HTTP request. All attempts share it, except for the remaining time. */
function prepare(request: VoiceRequest, policy: RequestPolicy, idempotency_token: string, clock: Clock): HttpRequest {
  const form = request.parameters ?? []
  const { method, json } = request
  const posts_json = method === 'POST' && json !== undefined
  const body = posts_json ? json : encodeParameters(form)
  const url =
    method === 'GET'
      ? withParameters(request.url, body)
      : posts_json
        ? withBodyHash(request.url, sha256(json))
        : request.url
  const { cookies, signal, project_id } = request
  return {
    url,
    method,
    connect_timeout_ms: policy.connect_timeout_ms,
    read_timeout_ms: policy.read_timeout_ms,
    keep_body: request.reply === 'document' ? 'success' : 'never',
    replayable: true,
    ...(request.max_bytes === undefined ? {} : { max_bytes: request.max_bytes }),
    ...(signal === undefined ? {} : { signal }),
    ...(project_id === undefined ? {} : { project_id }),
    ...(method === 'GET' ? {} : { body }),
    headers: {
      'Content-Type': posts_json ? 'application/json' : 'application/x-www-form-urlencoded; charset=UTF-8',
      'I-Twilio-Idempotency-Token': idempotency_token,
    },
    hop_headers: hop => ({
      ...signatures(request.auth_token, hop, posts_json ? [] : form, clock),
      ...cookieHeader(cookies?.header(hop.url, clock.now())),
    }),
    ...(cookies === undefined
      ? {}
      : { hop_answered: (hop, { set_cookie }) => cookies.store(hop.url, set_cookie, clock.now()) }),
  }
}

const cookieHeader = (cookie: string | null | undefined): Record<string, string> => (cookie ? { Cookie: cookie } : {})

/** Returns both signatures of a hop. They cover what this hop sends: not parameters that a redirect dropped. */
function signatures(auth_token: string, hop: HttpHop, form: Parameters, clock: Clock): Record<string, string> {
  const sent = hop.body === null ? '' : hop.body.toString()
  const timestamp = Math.floor(clock.now() / 1000)
  const data = signatureData(hop.url, hop.body === null ? [] : form)
  const timed = hmac('sha256', auth_token, timedSignatureData(timestamp, hop.url, sent)).toString('hex')
  return {
    'X-Twilio-Signature': hmac('sha1', auth_token, data).toString('base64'),
    'X-Strowger-Signature': timedSignature(timestamp, timed),
  }
}

const hmac = (algorithm: 'sha1' | 'sha256', key: string, data: string): Buffer =>
  createHmac(algorithm, key).update(data, 'utf8').digest()
const sha256 = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex')

function conclude(result: HttpResult, exchange: Omit<Exchange, 'url'>): VoiceReply {
  const { url } = result
  if (!result.ok) {
    const { error, detail } = result
    return { ok: false, error, number: fetchErrorNumber(error), status: null, detail, url, ...exchange }
  }
  const { status, headers, body, redirects } = result
  const number = statusErrorNumber(status)
  if (number === null) return { ok: true, status, headers, body, redirects, url, ...exchange }
  return { ok: false, error: 'status', number, status, detail: `answered with status ${status}`, url, ...exchange }
}

/**
 * Returns the `X-Twilio-Signature` of a WebSocket handshake. It covers only the `ws(s)://` URL as sent: without user
 * info and fragment, and with `/` after a bare host.
 */
export function handshakeSignature(auth_token: string, url: string): string {
  const parsed = parseTarget(url.replace(/^ws(s?):/i, 'http$1:'))
  const signed = parsed.ok ? parsed.target.url.replace(/^http/, 'ws') : splitFragment(url).head
  return hmac('sha1', auth_token, signatureData(signed, [])).toString('base64')
}

import type { FetchError } from '../../domain/webhooks/errors.ts'
import type { HttpMethod } from '../../domain/webhooks/redirects.ts'
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import type { ResolveHost } from './resolve.ts'

export interface HttpClientOptions {
  /** Private addresses that are allowed: CIDRs, single addresses or the word `loopback`. */
  readonly allow_private: readonly string[]
  readonly user_agent: string
  readonly log?: Log
  /** Replaces the hosts file and DNS. The guard checks its answers too. */
  readonly resolver?: ResolveHost
  readonly clock?: Clock
  /** Trusted roots in PEM in place of the system's. */
  readonly ca?: string
  /** The most concurrent exchanges, by default 1000. Further ones fail. */
  readonly max_in_flight?: number
  /** The most concurrent exchanges of a project to one origin, by default 100. Further ones wait for their turn. */
  readonly max_in_flight_per_origin?: number
  /** How long an idle connection is kept; default 4000. 0 closes it after each exchange. */
  readonly idle_ms?: number
}

export interface HttpLimits {
  /** To establish the connection, including DNS and TLS; default 5000. */
  readonly connect_timeout_ms: number
  /** Longest silence of the connected server; default 15000. */
  readonly read_timeout_ms: number
  /** For the whole exchange including redirects; default 15000. */
  readonly total_timeout_ms: number
  /** Limit of the response body, both as received and after decoding; default 64 KiB. */
  readonly max_bytes: number
  /** Default 5. */
  readonly max_redirects: number
}

/** One request of an exchange: the first one, or one that a redirect caused. */
export interface HttpHop {
  /** As sent: scheme, host, path and query, without user info and fragment. */
  readonly url: string
  readonly method: HttpMethod
  /** Null when a redirect dropped it. */
  readonly body: string | Buffer | null
}

export interface HttpRequest extends Partial<HttpLimits> {
  /**
   * http or https. User info becomes Basic authentication, and answers a Digest challenge of this origin. The fragment
   * is not sent.
   */
  readonly url: string
  /** Default GET. */
  readonly method?: HttpMethod
  /** Names in any case. Only the first origin receives `authorization` and `cookie`. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** Returns further headers for each hop: signatures, cookies. */
  readonly hop_headers?: (hop: HttpHop) => Readonly<Record<string, string>>
  /** Called with every response, including redirects and challenges, to store cookies. */
  readonly hop_answered?: (hop: HttpHop, answer: { status: number; set_cookie: readonly string[] }) => void
  /** Which bodies to read: all (default), those of 2xx, or none. Other bodies are neither awaited nor limited. */
  readonly keep_body?: 'always' | 'success' | 'never'
  /** The server detects repeats (idempotency token), so an idle connection may be used, as for every GET and HEAD. */
  readonly replayable?: boolean
  readonly signal?: AbortSignal
  /** The project that asks; default: the platform. It has no more exchanges than it leaves to others; more fail. */
  readonly project_id?: string
}

export interface HttpAnswer {
  readonly ok: true
  readonly status: number
  /** Lower-case names. The values of a repeated header are joined with `, `. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** URL of the hop that answered. */
  readonly url: string
  readonly redirects: number
  readonly duration_ms: number
}

export interface HttpFailure {
  readonly ok: false
  readonly error: FetchError
  /** One sentence for logs and call events, without secrets. */
  readonly detail: string
  /** URL of the hop that failed, without user info; an invalid URL is cut to 200 characters. */
  readonly url: string
  readonly duration_ms: number
}

export type HttpResult = HttpAnswer | HttpFailure

export interface DownloadRequest extends Omit<HttpRequest, 'method' | 'body' | 'keep_body' | 'replayable'> {
  /** The target. It is written under another name and renamed when complete, so readers never see half a file. */
  readonly file: string
  /** Validators of the existing copy; a 304 leaves `file` unchanged. */
  readonly etag?: string | null
  readonly last_modified?: string | null
}

interface Download extends Omit<HttpAnswer, 'body'> {
  /** True when `file` was replaced (status 200); false for 304 and for every other status. */
  readonly saved: boolean
  readonly bytes: number
  readonly etag: string | null
  readonly last_modified: string | null
  readonly content_type: string | null
}

export type DownloadResult = Download | HttpFailure

type ResolvedHost =
  | { readonly ok: true; readonly addresses: readonly string[] }
  | { readonly ok: false; readonly error: FetchError; readonly detail: string }

export interface HttpClient {
  /** Never rejects because of the server, DNS or the network. A response with any status is `ok`. */
  request(request: HttpRequest): Promise<HttpResult>
  /** Downloads by GET into a file. Default limits: 32 MiB, 60 s in total. */
  download(request: DownloadRequest): Promise<DownloadResult>
  /** Resolves a host for a connection of another kind. All returned addresses passed the guard; use only these. */
  resolve(hostname: string, timeout_ms?: number): Promise<ResolvedHost>
  stats(): { readonly in_flight: number; readonly waiting: number; readonly idle_connections: number }
  /** Aborts all exchanges in flight and closes every socket. */
  close(): Promise<void>
}

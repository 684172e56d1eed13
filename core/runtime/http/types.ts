import type { FetchError } from '../../domain/webhooks/errors.ts'
import type { HttpMethod } from '../../domain/webhooks/redirects.ts'
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import type { ResolveHost } from './resolve.ts'

export interface HttpClientOptions {
  /** CIDRs, single addresses or the word `loopback`: private addresses that may be reached all the same. */
  readonly allow_private: readonly string[]
  readonly user_agent: string
  readonly log?: Log
  /** In place of hosts file and DNS. Its answers are checked like any other. */
  readonly resolver?: ResolveHost
  readonly clock?: Clock
  /** Trusted roots in PEM in place of the system's. */
  readonly ca?: string
  /**
   * Exchanges at once in all (1000) and to one origin (100); more to one origin wait their turn within their total
   * time.
   */
  readonly max_in_flight?: number
  readonly max_in_flight_per_origin?: number
  /** How long a connection waits for its next exchange; default 4000, 0 closes it after each. */
  readonly idle_ms?: number
}

export interface HttpLimits {
  /** Until the connection stands, DNS and TLS included; default 5000. */
  readonly connect_timeout_ms: number
  /** Longest silence of the server once connected; default 15000. */
  readonly read_timeout_ms: number
  /** The whole exchange with its redirects; default 15000. */
  readonly total_timeout_ms: number
  /** Of the answer's body, as it arrives and after decoding; default 64 KiB. */
  readonly max_bytes: number
  /** Default 5. */
  readonly max_redirects: number
}

/** One request of an exchange: the first, or what a redirect led to. */
export interface Hop {
  /** As it leaves: scheme, host, path and query; no user info, no fragment. */
  readonly url: string
  readonly method: HttpMethod
  /** Null when a redirect dropped it. */
  readonly body: string | Buffer | null
}

export interface HttpRequest extends Partial<HttpLimits> {
  /** http or https; user info becomes Basic auth, a fragment is not sent. */
  readonly url: string
  /** Default GET. */
  readonly method?: HttpMethod
  /** Lower-case or mixed names. `authorization` and `cookie` go to the first origin only. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** Further headers of one hop, asked for at each: signatures, cookies. */
  readonly hop_headers?: (hop: Hop) => Readonly<Record<string, string>>
  /** Told of every answer, redirects included; for cookies. */
  readonly hop_answered?: (hop: Hop, answer: { status: number; set_cookie: readonly string[] }) => void
  /**
   * Bodies that are wanted: all (default), those of 2xx, none. One that is not wanted is neither waited for nor
   * limited.
   */
  readonly keep_body?: 'always' | 'success' | 'never'
  /** The far end can tell a repeat (idempotency token), so a kept connection may be used; GET and HEAD always may. */
  readonly replayable?: boolean
  readonly signal?: AbortSignal
}

export interface HttpAnswer {
  readonly ok: true
  readonly status: number
  /** Lower-case names; a repeated header is joined with `, `. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** Of the hop that answered. */
  readonly url: string
  readonly redirects: number
  readonly duration_ms: number
}

export interface HttpFailure {
  readonly ok: false
  readonly error: FetchError
  /** One sentence for logs and call events; has no secrets. */
  readonly detail: string
  /** Of the hop that failed, without user info; the text as given when it is no URL. */
  readonly url: string
  readonly duration_ms: number
}

export type HttpResult = HttpAnswer | HttpFailure

export interface DownloadRequest extends Omit<HttpRequest, 'method' | 'body' | 'keep_body' | 'replayable'> {
  /** Written under another name and renamed when complete: a reader never sees half of it. */
  readonly file: string
  /** Validators of the copy at hand: a 304 leaves `file` as it is. */
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
  /** Never rejects for what the far end, DNS or the network does; any status is an answer. */
  request(request: HttpRequest): Promise<HttpResult>
  /** GET into a file. Default limits: 32 MiB, 60 s in total. */
  download(request: DownloadRequest): Promise<DownloadResult>
  /**
   * Addresses of a host name or literal, each allowed: for connections of other kinds, which must go to one of these.
   */
  resolve(hostname: string, timeout_ms?: number): Promise<ResolvedHost>
  stats(): { readonly in_flight: number; readonly waiting: number; readonly idle_connections: number }
  /** Ends what is in flight (`aborted`) and every socket. */
  close(): Promise<void>
}

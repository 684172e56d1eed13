import type { HttpClient } from '../../core/runtime/http/index.ts'
import { decodeAudio } from './decode.ts'
import { Lru } from './lru.ts'
import type { Mp3Decoder } from './mp3.ts'
import type { Pcm } from './pcm.ts'

export type Fetched =
  | { readonly pcm: Pcm }
  | { readonly refused: 'fetch_failed' | 'audio_unsupported'; readonly detail: string }

export interface UrlAudio {
  get(url: string): Promise<Fetched>
}

interface Kept {
  readonly pcm: Pcm
  readonly etag: string | null
  readonly last_modified: string | null
  /** Until then it is played without asking (RFC 9111 §4.2). */
  readonly fresh_until_ms: number
}

const CACHE_BYTES = 64 * 1024 * 1024
const MAX_FILE_BYTES = 48 * 1024 * 1024
const MAX_FRESH_SECONDS = 86_400

/** Audio by URL through the guarded HTTP client, kept decoded and asked for again by its validators. */
export function createUrlAudio(http: HttpClient, mp3: Mp3Decoder, now: () => number): UrlAudio {
  const cache = new Lru<Kept>(CACHE_BYTES)
  const running = new Map<string, Promise<Fetched>>()

  const fetch = async (url: string): Promise<Fetched> => {
    const kept = cache.get(url)
    if (kept && kept.fresh_until_ms > now()) return { pcm: kept.pcm }
    const answer = await http.request({
      url,
      headers: conditions(kept),
      max_bytes: MAX_FILE_BYTES,
      total_timeout_ms: 30_000,
    })
    // What was good a while ago is better than silence when the server is away (RFC 5861 §4).
    if (!answer.ok)
      return kept ? { pcm: kept.pcm } : { refused: 'fetch_failed', detail: `${answer.error}: ${answer.detail}` }
    if (kept && (answer.status === 304 || answer.status >= 500)) {
      if (answer.status === 304) keep(url, kept.pcm, { ...kept, ...lifetime(answer.headers, now()) })
      return { pcm: kept.pcm }
    }
    if (answer.status < 200 || answer.status > 299) {
      cache.delete(url)
      return { refused: 'fetch_failed', detail: `the server answered ${answer.status}` }
    }
    const decoded = await decodeAudio(answer.body, answer.headers['content-type'] ?? null, mp3)
    if ('refused' in decoded) return decoded
    const { headers } = answer
    const validators = { etag: headers['etag'] ?? null, last_modified: headers['last-modified'] ?? null }
    keep(url, decoded.pcm, { ...validators, ...lifetime(headers, now()) })
    return decoded
  }

  const keep = (url: string, pcm: Pcm, about: Omit<Kept, 'pcm'> & { storable?: boolean }) => {
    const { etag, last_modified, fresh_until_ms, storable } = about
    if (storable === false || (etag === null && last_modified === null && fresh_until_ms <= now())) return
    cache.set(url, { pcm, etag, last_modified, fresh_until_ms }, pcm.samples.byteLength)
  }

  return {
    get(url) {
      const shared = running.get(url)
      if (shared) return shared
      const work = fetch(url).finally(() => running.delete(url))
      running.set(url, work)
      return work
    },
  }
}

function conditions(kept: Kept | undefined): Record<string, string> {
  return {
    ...(kept?.etag ? { 'if-none-match': kept.etag } : {}),
    ...(kept?.last_modified ? { 'if-modified-since': kept.last_modified } : {}),
  }
}

function lifetime(headers: Readonly<Record<string, string>>, now_ms: number) {
  const control = (headers['cache-control'] ?? '').toLowerCase()
  const age = /(?:^|[\s,])max-age=(\d{1,9})/.exec(control)
  const seconds = age && !control.includes('no-cache') ? Math.min(Number(age[1]), MAX_FRESH_SECONDS) : 0
  return { fresh_until_ms: now_ms + seconds * 1000, storable: !control.includes('no-store') }
}

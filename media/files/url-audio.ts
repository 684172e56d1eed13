import { boundedBytes } from '../../core/domain/bounded-map.ts'
import { mediaAddress } from '../../core/domain/calls/media-address.ts'
import type { HttpClient } from '../../core/runtime/http/index.ts'
import { MAX_SOUND_BYTES } from '../protocol/schema.ts'
import type { AudioThreads, Owner } from './audio-threads.ts'
import { FairQueue } from './fair-queue.ts'
import type { Pcm } from './pcm.ts'

type Fetched =
  | { readonly pcm: Pcm }
  | { readonly refused: 'fetch_failed' | 'audio_unsupported'; readonly detail: string }

export interface UrlAudio {
  get(url: string, owner: Owner): Promise<Fetched>
}

interface Kept {
  readonly pcm: Pcm
  readonly etag: string | null
  readonly last_modified: string | null
  /** Until then it is played without revalidation (RFC 9111 §4.2). */
  readonly fresh_until_ms: number
}

const CACHE_BYTES = 64 * 1024 * 1024
/** The limits of downloads, per project and in total. */
const DOWNLOADS = { owner_at_once: 8, at_once: 64, owner_jobs: 200, owner_bytes: 200 * MAX_SOUND_BYTES }
const MAX_FRESH_SECONDS = 86_400

/**
 * Fetches audio by URL through the guarded HTTP client. Caches it decoded and revalidates it by ETag and Last-Modified.
 */
export function createUrlAudio(
  http: HttpClient,
  audio: Pick<AudioThreads, 'decode'>,
  { now, base_url }: { readonly now: () => number; readonly base_url: string | null },
): UrlAudio {
  const cache = boundedBytes<string, Kept>(CACHE_BYTES, ({ pcm }) => pcm.samples.byteLength)
  const downloads = new FairQueue(DOWNLOADS)
  const running = new Map<string, Promise<Fetched>>()

  const fetch = async (url: string, owner: Owner): Promise<Fetched> => {
    const kept = cache.get(url)
    if (kept && kept.fresh_until_ms > now()) return { pcm: kept.pcm }
    const answer = await http.request({
      url,
      headers: conditions(kept),
      max_bytes: MAX_SOUND_BYTES,
      total_timeout_ms: 30_000,
    })
    // When the server is unreachable, stale audio is better than silence (RFC 5861 §4).
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
    const decoded = await audio.decode(answer.body, answer.headers['content-type'] ?? null, owner)
    if ('refused' in decoded) return decoded
    const { headers } = answer
    const validators = { etag: headers['etag'] ?? null, last_modified: headers['last-modified'] ?? null }
    keep(url, decoded.pcm, { ...validators, ...lifetime(headers, now()) })
    return decoded
  }

  const keep = (url: string, pcm: Pcm, about: Omit<Kept, 'pcm'> & { storable?: boolean }) => {
    const { etag, last_modified, fresh_until_ms, storable } = about
    if (storable === false || (etag === null && last_modified === null && fresh_until_ms <= now())) return
    cache.set(url, { pcm, etag, last_modified, fresh_until_ms })
  }

  return {
    get(url, owner) {
      // Signaling reads our own recordings from the store, after it has checked whose they are.
      if (base_url !== null && mediaAddress(url, base_url) !== null)
        return Promise.resolve({ refused: 'fetch_failed', detail: 'a recording is not requested over HTTP' })
      // Each project has a turn of its own, so only its own requests share a job.
      const key = `${owner} ${url}`
      const shared = running.get(key)
      if (shared) return shared
      const fetched = downloads.run(owner, MAX_SOUND_BYTES, () => fetch(url, owner))
      if (!fetched) return Promise.resolve({ refused: 'fetch_failed', detail: 'the project fetches too much audio' })
      const work = fetched.finally(() => running.delete(key))
      running.set(key, work)
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

import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../core/runtime/clock.ts'
import type { SipRequest } from '../drachtio/types.ts'
import type { DigestCredential, Snapshot } from './snapshot.ts'

/** The digest check of trunks (RFC 3261 §22, RFC 7616, RFC 8760): qop=auth, MD5 and SHA-256, nonces that work once per nc. */

export type DigestOutcome =
  | { readonly kind: 'authenticated'; readonly trunk_id: string; readonly credential_id: string }
  | { readonly kind: 'challenge'; readonly challenges: readonly string[] }
  /** Nobody could authenticate here: there is no credential at all, or this source has guessed too often. */
  | { readonly kind: 'refused' }

const NONCE_LIFE_MS = 5 * 60_000
const MAX_NONCES = 20_000
const MAX_GUESSERS = 10_000
const GUESSES = 10
const GUESS_WINDOW_MS = 60_000

const ALGORITHMS = { MD5: 'md5', 'SHA-256': 'sha256' } as const

export class DigestAuthenticator {
  readonly #key = randomBytes(32)
  readonly #clock: Clock
  readonly #realm: string
  readonly #snapshot: () => Snapshot
  /** Highest nc seen of each nonce in use. */
  readonly #counts = new Map<string, number>()
  readonly #guesses = new Map<string, { count: number; since_ms: number }>()

  constructor(options: { readonly clock: Clock; readonly realm: string; readonly snapshot: () => Snapshot }) {
    this.#clock = options.clock
    this.#realm = options.realm
    this.#snapshot = options.snapshot
  }

  check(request: SipRequest): DigestOutcome {
    if (this.#snapshot().credentials.size === 0) return { kind: 'refused' }
    const { address } = request.source
    if (this.#guessing(address)) return { kind: 'refused' }
    const given = request.header('authorization')
    if (given === null) return this.#challenge(request, false)
    const fields = parseDigest(given)
    const nonce = fields?.['nonce'] ?? ''
    if (!fields || !this.#isOurs(nonce)) return this.#challenge(request, false)
    if (this.#expired(nonce)) return this.#challenge(request, true)
    const credential = this.#verified(fields, request)
    if (!credential) {
      this.#guessed(address)
      return this.#challenge(request, false)
    }
    if (!this.#countRises(nonce, fields['nc'] ?? '')) return this.#challenge(request, true)
    return { kind: 'authenticated', trunk_id: credential.trunk_id, credential_id: credential.id }
  }

  #challenge(request: SipRequest, stale: boolean): DigestOutcome {
    const nonce = this.#nonce()
    const realm = this.#realmFor(request)
    const of = (algorithm: string): string =>
      `Digest realm="${realm}", nonce="${nonce}", algorithm=${algorithm}, qop="auth"${stale ? ', stale=true' : ''}`
    // The stronger one first (RFC 8760 §2.4); clients that know MD5 alone take the second.
    return { kind: 'challenge', challenges: [of('SHA-256'), of('MD5')] }
  }

  /** That of the trunk whose signaling name is called, else the one that all credentials share, else our domain. */
  #realmFor(request: SipRequest): string {
    const snapshot = this.#snapshot()
    const host = /^sips?:(?:[^@]*@)?(\[[^\]]*\]|[^:;?>]+)/i.exec(request.uri)?.[1]?.toLowerCase()
    const realms = new Set<string>()
    for (const credentials of snapshot.credentials.values())
      for (const { realm, trunk_id } of credentials) {
        if (snapshot.trunks.get(trunk_id)?.signaling_fqdn.toLowerCase() === host) return realm
        if (realms.size < 2) realms.add(realm)
      }
    const [only] = realms
    return realms.size === 1 && only !== undefined ? only : this.#realm
  }

  /** Wrong user and wrong password take the same way, and the same time. */
  #verified(fields: Readonly<Record<string, string>>, request: SipRequest): DigestCredential | null {
    const { username = '', realm = '', uri = '', qop = '', nc = '', cnonce = '', response = '', nonce = '' } = fields
    const algorithm = (fields['algorithm'] ?? 'MD5').toUpperCase()
    if (algorithm !== 'MD5' && algorithm !== 'SHA-256') return null
    const hash = ALGORITHMS[algorithm]
    const named = this.#snapshot().credentials.get(username) ?? []
    const now_ms = this.#clock.now()
    const usable = named.filter(
      known => known.realm === realm && (known.valid_until_ms === null || known.valid_until_ms > now_ms),
    )
    const ha2 = digest(hash, `${request.method}:${uri}`)
    let found: DigestCredential | null = null
    for (const candidate of usable.length > 0 ? usable : [NOBODY]) {
      const ha1 = hash === 'md5' ? candidate.ha1_md5 : candidate.ha1_sha256
      const expected = digest(hash, `${ha1}:${nonce}:${nc}:${cnonce}:${qop}:${ha2}`)
      if (same(expected, response.toLowerCase()) && candidate !== NOBODY) found = candidate
    }
    // The URI in it must be the request's (threats §3); what a proxy on the way does to parameters is forgiven.
    return qop === 'auth' && sameUri(uri, request.uri) ? found : null
  }

  #nonce(): string {
    const body = `${this.#clock.monotonic_ms().toFixed(0)}.${randomBytes(9).toString('base64url')}`
    return `${body}.${this.#sign(body)}`
  }

  #sign(body: string): string {
    return createHmac('sha256', this.#key).update(body).digest('base64url').slice(0, 22)
  }

  #isOurs(nonce: string): boolean {
    const at = nonce.lastIndexOf('.')
    return at > 0 && nonce.length < 200 && same(this.#sign(nonce.slice(0, at)), nonce.slice(at + 1))
  }

  #expired(nonce: string): boolean {
    return this.#clock.monotonic_ms() - Number(nonce.split('.')[0]) > NONCE_LIFE_MS
  }

  #countRises(nonce: string, nc: string): boolean {
    if (!/^[0-9a-f]{8}$/i.test(nc)) return false
    const count = Number.parseInt(nc, 16)
    if (count <= (this.#counts.get(nonce) ?? 0)) return false
    this.#counts.delete(nonce)
    this.#counts.set(nonce, count)
    for (const known of this.#counts.keys()) {
      if (this.#counts.size <= MAX_NONCES && !this.#expired(known)) break
      this.#counts.delete(known)
    }
    return true
  }

  #guessing(address: string): boolean {
    const known = this.#guesses.get(address)
    if (!known) return false
    if (this.#clock.monotonic_ms() - known.since_ms > GUESS_WINDOW_MS) this.#guesses.delete(address)
    return known.count >= GUESSES && this.#guesses.has(address)
  }

  #guessed(address: string): void {
    const known = this.#guesses.get(address) ?? { count: 0, since_ms: this.#clock.monotonic_ms() }
    known.count++
    this.#guesses.set(address, known)
    const oldest = this.#guesses.keys().next().value
    if (this.#guesses.size > MAX_GUESSERS && oldest !== undefined) this.#guesses.delete(oldest)
  }
}

const NOBODY: DigestCredential = {
  id: '',
  trunk_id: '',
  realm: '',
  username: '',
  ha1_md5: '0'.repeat(32),
  ha1_sha256: '0'.repeat(64),
  valid_until_ms: null,
}

const digest = (hash: 'md5' | 'sha256', text: string): string => createHash(hash).update(text).digest('hex')

const same = (a: string, b: string): boolean => {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}

const sameUri = (a: string, b: string): boolean => {
  const bare = (uri: string): string => (uri.split(/[;?]/)[0] ?? '').toLowerCase()
  return bare(a) === bare(b)
}

/** The fields of `Digest a="b", c=d`, names in lower case; null when it is another scheme or absurdly long. */
export function parseDigest(value: string): Record<string, string> | null {
  if (value.length > 4096 || !/^\s*digest\s/i.test(value)) return null
  const fields: Record<string, string> = {}
  const rest = value.replace(/^\s*digest\s+/i, '')
  for (const match of rest.matchAll(/([A-Za-z0-9_-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/g)) {
    const name = match[1]?.toLowerCase() ?? ''
    if (!Object.hasOwn(fields, name)) fields[name] = (match[2] ?? match[3] ?? '').replace(/\\(.)/g, '$1')
  }
  return fields
}

import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import {
  type ClientToken,
  challenges,
  clientDomain,
  createReplayTable,
  type DigestAlgorithm,
  type DigestCrypto,
  forgetExpired,
  makeNonce,
  NONCE_LIFETIME_MS,
  parseAuthorization,
  type ReplayTable,
  readNonce,
  verifyDigest,
} from '../../core/domain/identity/index.ts'
import { clientPassword, readClientToken } from '../../core/runtime/client-token.ts'
import type { Clock } from '../../core/runtime/clock.ts'
import { digestHa1, digestHash } from '../../core/runtime/secrets.ts'
import type { SipRequest } from '../drachtio/types.ts'
import { hostOf } from '../drachtio/uri.ts'
import { Md5Clients } from './md5-clients.ts'
import type { Snapshot } from './snapshot.ts'

/**
 * The digest check of trunks (RFC 3261 §22, RFC 7616, RFC 8760): qop=auth, MD5 and SHA-256, counts that work once. The
 * rules are core/domain/identity's; here are the key, the clock and who guesses.
 */

export type DigestOutcome =
  | { readonly kind: 'authenticated'; readonly trunk_id: string; readonly credential_id: string }
  | { readonly kind: 'challenge'; readonly challenges: readonly string[] }
  /** Nobody could authenticate here: there is no credential at all, or this source has guessed too often. */
  | { readonly kind: 'refused' }

export type ClientOutcome =
  | { readonly kind: 'authenticated'; readonly token: ClientToken }
  | { readonly kind: 'challenge'; readonly challenges: readonly string[] }
  /** The account is closed, the token has run out, or this source has guessed too often. */
  | { readonly kind: 'refused' }

const MAX_GUESSERS = 10_000
const GUESSES = 10
const GUESS_WINDOW_MS = 60_000

const MD5_ALONE: readonly DigestAlgorithm[] = ['MD5']

export class DigestAuthenticator {
  readonly #crypto = cryptoWith(randomBytes(32))
  readonly #clock: Clock
  readonly #realm: string
  readonly #snapshot: () => Snapshot
  readonly #replays: ReplayTable = createReplayTable()
  readonly #guesses = new Map<string, { count: number; since_ms: number }>()
  readonly #md5_clients: Md5Clients
  #swept_ms = 0
  #realms: Realms = { snapshot: null, by_host: new Map(), common: null }

  constructor(options: { readonly clock: Clock; readonly realm: string; readonly snapshot: () => Snapshot }) {
    this.#clock = options.clock
    this.#realm = options.realm
    this.#snapshot = options.snapshot
    this.#md5_clients = new Md5Clients(options.clock)
  }

  check(request: SipRequest): DigestOutcome {
    const snapshot = this.#snapshot()
    if (snapshot.credentials.size === 0) return { kind: 'refused' }
    const { address } = request.source
    if (this.#guessing(address)) return { kind: 'refused' }
    const authorization = parseAuthorization(request.header('authorization')?.trim() ?? '')
    if (!authorization) return this.#challenge(request, false)
    this.#md5_clients.answered(request)
    // Nonces are of the clock that never jumps: a jump of the wall clock makes none of them stale.
    const now_ms = this.#clock.monotonic_ms()
    this.#sweep(now_ms)
    if (readNonce(this.#crypto, authorization.nonce, now_ms).state === 'forged') return this.#challenge(request, false)
    const wall_ms = this.#clock.now()
    const credentials = (snapshot.credentials.get(authorization.username) ?? []).filter(
      known => known.realm === authorization.realm && (known.valid_until_ms === null || known.valid_until_ms > wall_ms),
    )
    const { method, uri: request_uri } = request
    const facts = { authorization, method, request_uri, credentials, now_ms }
    const outcome = verifyDigest(this.#crypto, this.#replays, facts)
    if (outcome.kind === 'authenticated') {
      const { trunk_id, id } = outcome.credential
      return { kind: 'authenticated', trunk_id, credential_id: id }
    }
    // Who knows the password but repeats a count needs a new nonce, no less than who comes too late with one.
    if (outcome.kind === 'stale' || outcome.why === 'replayed') return this.#challenge(request, true)
    this.#guessed(address)
    return this.#challenge(request, false)
  }

  /**
   * A browser client of the project, by its token. `auth_token` is that of the project's voice account; null when the
   * project has none in force.
   */
  checkClient(
    request: SipRequest,
    { project_id, auth_token }: { readonly project_id: string; readonly auth_token: string | null },
  ): ClientOutcome {
    const { address } = request.source
    if (auth_token === null || this.#guessing(address)) return { kind: 'refused' }
    const realm = clientDomain(project_id, this.#realm)
    const authorization = parseAuthorization(request.header('authorization')?.trim() ?? '')
    if (!authorization) return this.#challenge(request, false, realm)
    const now_ms = this.#clock.monotonic_ms()
    this.#sweep(now_ms)
    const { username } = authorization
    const token = readClientToken(username)
    const password = token ? clientPassword(username, auth_token) : ''
    const credentials =
      token && authorization.realm === realm
        ? [
            {
              token,
              ha1_md5: digestHa1('md5', username, realm, password),
              ha1_sha256: digestHa1('sha256', username, realm, password),
            },
          ]
        : []
    const { method, uri: request_uri } = request
    const facts = { authorization, method, request_uri, credentials, now_ms }
    const outcome = verifyDigest(this.#crypto, this.#replays, facts)
    if (outcome.kind === 'authenticated') {
      const { token: known } = outcome.credential
      // Who held a good token is no guesser: it has run out, and a new challenge would not help.
      if (known.expires_at_seconds * 1000 <= this.#clock.now()) return { kind: 'refused' }
      return { kind: 'authenticated', token: known }
    }
    if (outcome.kind === 'stale' || outcome.why === 'replayed') return this.#challenge(request, true, realm)
    if (outcome.why !== 'forged_nonce') this.#guessed(address)
    return this.#challenge(request, false, realm)
  }

  #challenge(request: SipRequest, stale: boolean, realm = this.#realmFor(request)) {
    const nonce = makeNonce(this.#crypto, this.#clock.monotonic_ms(), randomBytes(12).toString('hex'))
    const { transport } = request.source
    // sip.js reads one challenge, the last, and knows MD5 alone: a second one would lock browsers out.
    const alone = transport === 'ws' || transport === 'wss' || this.#md5_clients.challenged(request)
    return { kind: 'challenge', challenges: challenges(realm, nonce, stale, alone ? MD5_ALONE : undefined) } as const
  }

  /** That of the trunk whose signaling name is called, else the one that all credentials share, else our domain. */
  #realmFor(request: SipRequest): string {
    const snapshot = this.#snapshot()
    if (this.#realms.snapshot !== snapshot) this.#realms = readRealms(snapshot)
    const host = hostOf(request.uri).toLowerCase()
    return this.#realms.by_host.get(host) ?? this.#realms.common ?? this.#realm
  }

  #sweep(now_ms: number): void {
    if (now_ms - this.#swept_ms < NONCE_LIFETIME_MS) return
    this.#swept_ms = now_ms
    forgetExpired(this.#replays, now_ms)
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

interface Realms {
  readonly snapshot: Snapshot | null
  readonly by_host: ReadonlyMap<string, string>
  /** The realm of all credentials; null when they have several. */
  readonly common: string | null
}

// Read once for a configuration, because a challenge to a stranger must be cheap.
function readRealms(snapshot: Snapshot): Realms {
  const by_host = new Map<string, string>()
  const realms = new Set<string>()
  for (const credentials of snapshot.credentials.values())
    for (const { realm, trunk_id } of credentials) {
      const host = snapshot.trunks.get(trunk_id)?.signaling_fqdn.toLowerCase()
      if (host !== undefined && !by_host.has(host)) by_host.set(host, realm)
      realms.add(realm)
    }
  const [only] = realms
  return { snapshot, by_host, common: realms.size === 1 && only !== undefined ? only : null }
}

const cryptoWith = (key: Buffer): DigestCrypto => ({
  hash: digestHash,
  hmac: text => createHmac('sha256', key).update(text).digest('hex'),
  equal(a, b) {
    const [left, right] = [Buffer.from(a), Buffer.from(b)]
    return left.length === right.length && timingSafeEqual(left, right)
  },
})

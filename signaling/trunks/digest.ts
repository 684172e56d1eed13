import { randomBytes } from 'node:crypto'
import { boundedMap } from '../../core/domain/bounded-map.ts'
import {
  type ClientToken,
  challenges,
  clientDomain,
  compileRealms,
  createReplayTable,
  type DigestAlgorithm,
  type DigestFacts,
  type DigestSecret,
  type DigestVerdict,
  forgetExpired,
  Md5Clients,
  makeNonce,
  NONCE_LIFETIME_MS,
  parseAuthorization,
  type Realms,
  type ReplayTable,
  readNonce,
  realmFor,
  takeNonce,
  verifyDigest,
} from '../../core/domain/identity/index.ts'
import { hostOf, uriOf } from '../../core/domain/sip/address.ts'
import { clientPassword, readClientToken } from '../../core/runtime/client-token.ts'
import type { Clock } from '../../core/runtime/clock.ts'
import { digestHa1, type Nonces } from '../../core/runtime/secrets.ts'
import type { SipRequest } from '../drachtio/types.ts'
import type { DigestCredential, Snapshot } from './snapshot.ts'

/**
 * Digest authentication of trunks and clients (RFC 3261 §22, RFC 7616, RFC 8760): qop=auth, MD5 and SHA-256, each nonce
 * count accepted once. core/domain/identity has the rules; this file has the key, the clock and the limit on guesses.
 */

export type DigestOutcome =
  | { readonly kind: 'authenticated'; readonly trunk_id: string; readonly credential_id: string }
  | { readonly kind: 'challenge'; readonly challenges: readonly string[] }
  /** No credential exists, or this source has guessed too often. */
  | { readonly kind: 'refused' }

export type ClientOutcome =
  | { readonly kind: 'authenticated'; readonly token: ClientToken }
  | { readonly kind: 'challenge'; readonly challenges: readonly string[] }
  /** The account is not active, the token has expired, or this source has guessed too often. */
  | { readonly kind: 'refused' }

const MAX_GUESSERS = 10_000
const MAX_NONCES = 100_000
const GUESSES = 10
const GUESS_WINDOW_MS = 60_000
/** After so many wrong passwords of one address the edge blocks it. */
const GUESSES_OF_A_STRANGER = 5
/** How long a flow that proved a password is exempt from the guess limit of its address. */
const PROVEN_MS = 2 * 3_600_000

const MD5_ALONE: readonly DigestAlgorithm[] = ['MD5']

export class DigestAuthenticator {
  readonly #nonces: Nonces
  readonly #claim: (nonce: string) => Promise<boolean>
  /** Claims that are being written, by nonce. */
  readonly #claiming = new Map<string, Promise<boolean>>()
  readonly #clock: Clock
  readonly #realm: string
  readonly #snapshot: () => Snapshot
  readonly #replays: ReplayTable
  readonly #guesses = boundedMap<string, { count: number; since_ms: number }>(MAX_GUESSERS)
  /** Flows that have proved a password, and until when. They do not share the guess limit of their address. */
  readonly #proven = boundedMap<string, number>(MAX_GUESSERS)
  readonly #md5_clients = new Md5Clients()
  readonly #provedBy: (trunk_id: string, address: string) => void
  readonly #guessedOf: (trunk_id: string, address: string) => void
  #swept_ms = 0
  #realms: { readonly of: Snapshot | null; readonly realms: Realms } = { of: null, realms: compileRealms([]) }

  constructor(options: {
    readonly clock: Clock
    readonly realm: string
    readonly snapshot: () => Snapshot
    /** The embedded edge makes its nonces in the same way. */
    readonly nonces: Nonces
    /** Claims a shared nonce for this process; false when one has claimed it before. Rejects as the state does. */
    readonly claim: (nonce: string) => Promise<boolean>
    /** Called whenever a trunk's peer has proved a password. */
    readonly proved: (trunk_id: string, address: string) => void
    /** Called once a minute for an address that guesses, with the trunk whose user it named last. */
    readonly guessed: (trunk_id: string, address: string) => void
  }) {
    this.#provedBy = options.proved
    this.#guessedOf = options.guessed
    this.#clock = options.clock
    this.#nonces = options.nonces
    this.#claim = options.claim
    const { shared } = options.nonces
    // Our predecessor forgot the counts of this machine's nonces when it ended. Claims of shared ones are kept.
    const since_ms = shared ? Number.NEGATIVE_INFINITY : options.nonces.now_ms(options.clock) - 1
    this.#replays = createReplayTable(MAX_NONCES, { shared, since_ms })
    this.#realm = options.realm
    this.#snapshot = options.snapshot
  }

  /** Authenticates a trunk's user. Only the first use of a shared nonce has to wait, for its claim. */
  check(request: SipRequest): Awaitable<DigestOutcome> {
    const snapshot = this.#snapshot()
    if (snapshot.credentials.size === 0) return { kind: 'refused' }
    if (this.#guessing(request)) return { kind: 'refused' }
    const authorization = parseAuthorization(request.header('authorization')?.trim() ?? '')
    if (!authorization) return this.#challenge(request, false)
    this.#md5_clients.answered(clientOf(request))
    const { crypto, now_ms: nowOf, ahead_ms } = this.#nonces
    const now_ms = nowOf(this.#clock)
    this.#sweep(now_ms)
    const holder = request.source
    const { state } = readNonce(crypto, authorization.nonce, now_ms, holder, ahead_ms)
    if (state === 'forged') return this.#challenge(request, false)
    const wall_ms = this.#clock.now()
    const credentials = (snapshot.credentials.get(authorization.username) ?? []).filter(
      known => known.realm === authorization.realm && (known.valid_until_ms === null || known.valid_until_ms > wall_ms),
    )
    const { method, uri: request_uri } = request
    const facts = { authorization, method, request_uri, credentials, now_ms, ahead_ms, holder }
    return after(this.#verify(facts), outcome => this.#judged(request, outcome, credentials))
  }

  #judged(
    request: SipRequest,
    outcome: Verified<DigestCredential>,
    credentials: readonly DigestCredential[],
  ): DigestOutcome {
    if (outcome.kind === 'authenticated') {
      this.#proved(request)
      const { trunk_id, id } = outcome.credential
      this.#provedBy(trunk_id, request.source.address)
      return { kind: 'authenticated', trunk_id, credential_id: id }
    }
    // A client with the right password but a repeated nonce count needs a new nonce, as with a stale one.
    if (outcome.kind === 'stale' || outcome.why === 'replayed') return this.#challenge(request, true)
    const named = credentials[0]
    if (this.#guessed(request) === GUESSES_OF_A_STRANGER && named)
      this.#guessedOf(named.trunk_id, request.source.address)
    return this.#challenge(request, false)
  }

  /**
   * Authenticates a browser client of the project by its token. `auth_token` belongs to the project's voice account; it
   * is null when the project has no active account.
   */
  checkClient(
    request: SipRequest,
    { project_id, auth_token }: { readonly project_id: string; readonly auth_token: string | null },
  ): Awaitable<ClientOutcome> {
    if (auth_token === null || this.#guessing(request)) return { kind: 'refused' }
    const realm = clientDomain(project_id, this.#realm)
    const authorization = parseAuthorization(request.header('authorization')?.trim() ?? '')
    if (!authorization) return this.#challenge(request, false, realm)
    const { now_ms: nowOf, ahead_ms } = this.#nonces
    const now_ms = nowOf(this.#clock)
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
    const facts = { authorization, method, request_uri, credentials, now_ms, ahead_ms, holder: request.source }
    return after(this.#verify(facts), outcome => this.#clientJudged(request, outcome, realm))
  }

  #clientJudged(request: SipRequest, outcome: Verified<{ readonly token: ClientToken }>, realm: string): ClientOutcome {
    if (outcome.kind === 'authenticated') {
      this.#proved(request)
      const { token: known } = outcome.credential
      // The token is valid but expired. That is no guess, and a new challenge would not help.
      if (known.expires_at_seconds * 1000 <= this.#clock.now()) return { kind: 'refused' }
      return { kind: 'authenticated', token: known }
    }
    if (outcome.kind === 'stale' || outcome.why === 'replayed') return this.#challenge(request, true, realm)
    if (outcome.why !== 'forged_nonce') this.#guessed(request)
    return this.#challenge(request, false, realm)
  }

  #verify<Credential extends DigestSecret>(facts: DigestFacts<Credential>): Awaitable<Verified<Credential>> {
    const { crypto } = this.#nonces
    const outcome = verifyDigest(crypto, this.#replays, facts)
    if (outcome.kind !== 'unclaimed') return outcome
    return this.#claimOnce(outcome.nonce, outcome.issued_ms).then(ours => {
      const again = ours ? verifyDigest(crypto, this.#replays, facts) : outcome
      return again.kind === 'unclaimed' ? { kind: 'stale' } : again
    })
  }

  /** Claims a nonce. Requests that use it meanwhile wait for the same claim. */
  #claimOnce(nonce: string, issued_ms: number): Promise<boolean> {
    const running = this.#claiming.get(nonce)
    if (running) return running
    const claimed = this.#claim(nonce)
      .then(ours => {
        if (ours) takeNonce(this.#replays, nonce, issued_ms)
        return ours
      })
      .finally(() => this.#claiming.delete(nonce))
    this.#claiming.set(nonce, claimed)
    return claimed
  }

  #challenge(request: SipRequest, stale: boolean, realm = this.#realmFor(request)) {
    const now_ms = this.#clock.monotonic_ms()
    const { crypto, now_ms: nowOf } = this.#nonces
    const nonce = makeNonce(crypto, nowOf(this.#clock), randomBytes(4).toString('hex'), request.source)
    const { transport } = request.source
    // sip.js reads only the last challenge and supports only MD5. A second challenge would lock browsers out.
    const alone = transport === 'ws' || transport === 'wss' || this.#md5_clients.challenged(clientOf(request), now_ms)
    return { kind: 'challenge', challenges: challenges(realm, nonce, stale, alone ? MD5_ALONE : undefined) } as const
  }

  #realmFor(request: SipRequest): string {
    const snapshot = this.#snapshot()
    if (this.#realms.of !== snapshot) this.#realms = { of: snapshot, realms: compileRealms(entriesOf(snapshot)) }
    return realmFor(this.#realms.realms, hostOf(request.uri), this.#realm)
  }

  #sweep(now_ms: number): void {
    if (now_ms - this.#swept_ms < NONCE_LIFETIME_MS) return
    this.#swept_ms = now_ms
    forgetExpired(this.#replays, now_ms)
  }

  #guessing({ source }: SipRequest): boolean {
    const key = holderKey(source)
    const known = this.#guesses.get(key)
    if (!known) return false
    const now_ms = this.#clock.monotonic_ms()
    if (now_ms - known.since_ms > GUESS_WINDOW_MS) this.#guesses.delete(key)
    if (known.count < GUESSES || !this.#guesses.has(key)) return false
    return (this.#proven.get(flowKey(source)) ?? 0) <= now_ms
  }

  /** Counts a guess. Returns how many the address has made in this minute. */
  #guessed({ source }: SipRequest): number {
    const key = holderKey(source)
    const known = this.#guesses.get(key) ?? { count: 0, since_ms: this.#clock.monotonic_ms() }
    known.count++
    this.#guesses.set(key, known)
    return known.count
  }

  #proved({ source }: SipRequest): void {
    this.#proven.set(flowKey(source), this.#clock.monotonic_ms() + PROVEN_MS)
  }
}

type Awaitable<T> = T | Promise<T>
type Verified<Credential> = Exclude<DigestVerdict<Credential>, { readonly kind: 'unclaimed' }>

/** Applies `then` at once when the value is known. */
const after = <T, R>(value: Awaitable<T>, then: (value: T) => R): Awaitable<R> =>
  value instanceof Promise ? value.then(then) : then(value)

type Source = SipRequest['source']

const holderKey = ({ transport, address }: Source): string => `${transport} ${address}`
const flowKey = ({ transport, address, port }: Source): string => `${transport} ${address} ${port}`
const clientOf = ({ source, header }: SipRequest): string => `${source.address} ${uriOf(header('from'))}`

const entriesOf = ({ credentials, trunks }: Snapshot) =>
  [...credentials.values()]
    .flat()
    .map(({ realm, trunk_id }) => ({ realm, host: trunks.get(trunk_id)?.signaling_fqdn ?? null }))

/**
 * Digest access authentication (RFC 7616, RFC 8760 for SIP). What we offer ourselves has qop=auth alone. Callers pass
 * in the hash functions.
 */
export type DigestAlgorithm = 'SHA-256' | 'MD5'

/** What a challenge of others may ask for. */
export type DigestHash = DigestAlgorithm | 'SHA-512-256'

/** Most preferred first (RFC 8760 §2.3). */
const DIGEST_ALGORITHMS: readonly DigestAlgorithm[] = ['SHA-256', 'MD5']

export interface DigestCrypto {
  /** Lowercase hexadecimal. */
  hash(algorithm: DigestHash, content: string | Uint8Array): string
  /** HMAC with the server's key, lowercase hexadecimal. */
  hmac(text: string): string
  /** Compares in constant time when the lengths are equal. */
  equal(a: string, b: string): boolean
}

/** The stored form of a password: H(username:realm:password) per algorithm. */
export interface DigestSecret {
  readonly ha1_md5: string
  readonly ha1_sha256: string
}

export const ha1 = (crypto: DigestCrypto, algorithm: DigestHash, user: string, realm: string, password: string) =>
  crypto.hash(algorithm, `${user}:${realm}:${password}`)

/** How long a nonce stays valid. */
export const NONCE_LIFETIME_MS = 5 * 60_000

/**
 * The client that a nonce is issued to. A source address can be spoofed, but only its holder receives the challenge.
 */
export interface NonceHolder {
  readonly transport: string
  readonly address: string
}

/**
 * Makes a nonce `<issued, base 36>.<random>.<hmac>`; `random` is hexadecimal. The server stores nothing until a client
 * answers. The HMAC covers the holder, so the nonce counts as forged from another address or transport. The nonce is
 * short because a challenge must not be much larger than the request, or it would amplify spoofed traffic.
 */
export function makeNonce(crypto: DigestCrypto, issued_ms: number, random: string, holder: NonceHolder): string {
  const body = `${Math.floor(issued_ms).toString(36)}.${random}`
  return `${body}.${macOf(crypto, body, holder)}`
}

const macOf = (crypto: DigestCrypto, body: string, { transport, address }: NonceHolder): string =>
  crypto.hmac(`${body} ${transport} ${address}`).slice(0, 24)

type NonceState = { readonly state: 'valid' | 'stale'; readonly issued_ms: number } | { readonly state: 'forged' }

/**
 * Reads a nonce. Nonces of other machines may come from a clock that is up to `ahead_ms` ahead; with the default, 0, a
 * nonce from the future is stale.
 */
export function readNonce(
  crypto: DigestCrypto,
  nonce: string,
  now_ms: number,
  holder: NonceHolder,
  ahead_ms = 0,
): NonceState {
  const match = /^([0-9a-z]{1,12})\.([0-9a-f]{8,64})\.([0-9a-f]{24})$/.exec(nonce)
  if (!match) return { state: 'forged' }
  const [, issued = '', random = '', mac = ''] = match
  if (!crypto.equal(macOf(crypto, `${issued}.${random}`, holder), mac)) return { state: 'forged' }
  const issued_ms = Number.parseInt(issued, 36)
  // A nonce from the future was issued before the clock was set back, so its age is unknown.
  const fresh = issued_ms <= now_ms + ahead_ms && now_ms - issued_ms <= NONCE_LIFETIME_MS
  return { state: fresh ? 'valid' : 'stale', issued_ms }
}

/** Returns the WWW-Authenticate (or Proxy-Authenticate) values, one header per algorithm, in this order. */
export const challenges = (
  realm: string,
  nonce: string,
  stale: boolean,
  algorithms: readonly DigestAlgorithm[] = DIGEST_ALGORITHMS,
): string[] =>
  algorithms.map(
    algorithm =>
      `Digest realm="${quoted(realm)}", nonce="${nonce}", algorithm=${algorithm}, qop="auth"` +
      (stale ? ', stale=true' : ''),
  )

export interface Authorization {
  readonly username: string
  readonly realm: string
  readonly nonce: string
  readonly uri: string
  readonly response: string
  readonly algorithm: DigestAlgorithm
  readonly cnonce: string
  /** Eight hexadecimal digits. */
  readonly nc: string
}

const MAX_HEADER_LENGTH = 4096
const PARAMETER = /\s*([A-Za-z0-9-]{1,32})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*))\s*(?:,|$)/y

/** Parses Authorization (or Proxy-Authorization); null when it is not digest with qop=auth or lacks a parameter. */
export function parseAuthorization(header: string): Authorization | null {
  if (header.length > MAX_HEADER_LENGTH || !/^digest\s/i.test(header)) return null
  const parameters = readParameters(header.slice(7))
  if (!parameters) return null
  const algorithm = algorithmOf(parameters.get('algorithm'))
  const [username, realm, nonce, uri, response, cnonce, nc] = [
    'username',
    'realm',
    'nonce',
    'uri',
    'response',
    'cnonce',
    'nc',
  ].map(name => parameters.get(name))
  if (!username || realm === undefined || !nonce || !uri || !response || !cnonce || !nc || !algorithm) return null
  if (parameters.get('qop')?.toLowerCase() !== 'auth' || !/^[0-9a-f]{8}$/i.test(nc)) return null
  return { username, realm, nonce, uri, response: response.toLowerCase(), algorithm, cnonce, nc: nc.toLowerCase() }
}

export function readParameters(text: string): Map<string, string> | null {
  const parameters = new Map<string, string>()
  PARAMETER.lastIndex = 0
  while (PARAMETER.lastIndex < text.length) {
    const match = PARAMETER.exec(text)
    if (!match) return null
    const name = (match[1] ?? '').toLowerCase()
    // A repeated parameter makes the header ambiguous, so the whole header is rejected.
    if (parameters.has(name)) return null
    parameters.set(name, match[2] === undefined ? (match[3] ?? '') : match[2].replace(/\\(.)/g, '$1'))
  }
  return parameters
}

const algorithmOf = (name = 'MD5'): DigestAlgorithm | null =>
  DIGEST_ALGORITHMS.find(algorithm => algorithm.toLowerCase() === name.toLowerCase()) ?? null

export interface DigestFacts<Credential extends DigestSecret> {
  readonly authorization: Authorization
  readonly method: string
  /** The request-URI, unmodified. */
  readonly request_uri: string
  /** The credentials of this username and realm that are valid now. During a rotation both old and new are valid. */
  readonly credentials: readonly Credential[]
  readonly now_ms: number
  /** See `readNonce`. */
  readonly ahead_ms?: number
  /** The client that sent the Authorization. */
  readonly holder: NonceHolder
}

export type DigestVerdict<Credential> =
  | { readonly kind: 'authenticated'; readonly credential: Credential }
  /** The response is correct but the nonce is too old: challenge again with stale=true and count no failure. */
  | { readonly kind: 'stale' }
  /** The response is correct, and another machine may have accepted the nonce: claim it first (`takeNonce`). */
  | { readonly kind: 'unclaimed'; readonly nonce: string; readonly issued_ms: number }
  | { readonly kind: 'refused'; readonly why: 'forged_nonce' | 'uri_mismatch' | 'wrong_password' | 'replayed' }

const NOBODY: DigestSecret = { ha1_md5: '0'.repeat(32), ha1_sha256: '0'.repeat(64) }

/**
 * Verifies that the Authorization answers one of our challenges, for this request, and for the first time. An unknown
 * user takes the same steps as a wrong password, so that timing does not reveal which users exist.
 */
export function verifyDigest<Credential extends DigestSecret>(
  crypto: DigestCrypto,
  replays: ReplayTable,
  facts: DigestFacts<Credential>,
): DigestVerdict<Credential> {
  const { authorization, method, request_uri, credentials, now_ms, ahead_ms, holder } = facts
  const right = matching(crypto, authorization, method, credentials)
  const nonce = readNonce(crypto, authorization.nonce, now_ms, holder, ahead_ms)
  if (nonce.state === 'forged') return { kind: 'refused', why: 'forged_nonce' }
  if (!right) return { kind: 'refused', why: 'wrong_password' }
  if (!sameUri(authorization.uri, request_uri)) return { kind: 'refused', why: 'uri_mismatch' }
  if (nonce.state === 'stale') return { kind: 'stale' }
  switch (acceptCount(replays, authorization.nonce, nonce.issued_ms, Number.parseInt(authorization.nc, 16))) {
    case 'accepted':
      return { kind: 'authenticated', credential: right }
    case 'forgotten':
      return { kind: 'stale' }
    case 'unclaimed':
      return { kind: 'unclaimed', nonce: authorization.nonce, issued_ms: nonce.issued_ms }
    case 'replayed':
      return { kind: 'refused', why: 'replayed' }
  }
}

function matching<Credential extends DigestSecret>(
  crypto: DigestCrypto,
  authorization: Authorization,
  method: string,
  credentials: readonly Credential[],
): Credential | null {
  let right: Credential | null = null
  for (const candidate of credentials)
    if (crypto.equal(digestResponse(crypto, candidate, authorization, method), authorization.response))
      right = candidate
  if (credentials.length === 0)
    crypto.equal(digestResponse(crypto, NOBODY, authorization, method), authorization.response)
  return right
}

/** Computes the response of RFC 7616 §3.4.1 with qop=auth. */
export function digestResponse(
  crypto: DigestCrypto,
  secret: DigestSecret,
  { algorithm, nonce, nc, cnonce, uri }: Omit<Authorization, 'username' | 'realm' | 'response'>,
  method: string,
): string {
  const first = algorithm === 'MD5' ? secret.ha1_md5 : secret.ha1_sha256
  const second = crypto.hash(algorithm, `${method}:${uri}`)
  return crypto.hash(algorithm, `${first}:${nonce}:${nc}:${cnonce}:auth:${second}`)
}

/** Compares scheme, user, host and port. URI parameters may differ, because proxies on the path add and remove them. */
function sameUri(a: string, b: string): boolean {
  return a === b || core(a) === core(b)
}

function core(uri: string): string {
  const bare = uri.replace(/[;?].*$/s, '')
  const at = bare.lastIndexOf('@')
  return at < 0 ? bare.toLowerCase() : `${bare.slice(0, at)}@${bare.slice(at + 1).toLowerCase()}`
}

/**
 * The nonce counts already used. The table is bounded and evicts the oldest nonce first. A nonce at least as old as an
 * evicted one gets a stale challenge, so eviction never lets a replay through. One process owns the table.
 *
 * The counts of a nonce are in one table only. When several machines accept the same nonces (`shared`), the first that
 * claims a nonce counts it, and the others answer it with a stale challenge.
 */
export interface ReplayTable {
  readonly max_nonces: number
  readonly shared: boolean
  readonly used: Map<string, { readonly issued_ms: number; highest: number; window: bigint }>
  forgotten_until_ms: number
}

/** `since_ms`: older nonces are stale, because an earlier process may have counted them. */
export const createReplayTable = (
  max_nonces = 100_000,
  { shared = false, since_ms = Number.NEGATIVE_INFINITY } = {},
): ReplayTable => ({ max_nonces, shared, used: new Map(), forgotten_until_ms: since_ms })

// UDP may reorder a user's requests. Each count less than this far behind the highest is accepted once.
const WINDOW = 64

/** Consumes a nonce count. Each count is accepted once. */
export function acceptCount(
  table: ReplayTable,
  nonce: string,
  issued_ms: number,
  count: number,
): 'accepted' | 'replayed' | 'forgotten' | 'unclaimed' {
  const known = table.used.get(nonce)
  if (!known) {
    if (issued_ms <= table.forgotten_until_ms) return 'forgotten'
    if (table.shared) return 'unclaimed'
    store(table, nonce, { issued_ms, highest: count, window: 1n })
    return 'accepted'
  }
  const ahead = count - known.highest
  if (ahead > 0) {
    known.window = ahead >= WINDOW ? 1n : BigInt.asUintN(WINDOW, known.window << BigInt(ahead)) | 1n
    known.highest = count
    return 'accepted'
  }
  const bit = 1n << BigInt(-ahead)
  if (-ahead >= WINDOW || (known.window & bit) !== 0n) return 'replayed'
  known.window |= bit
  return 'accepted'
}

/** Begins to count a nonce that this process has claimed. */
export const takeNonce = (table: ReplayTable, nonce: string, issued_ms: number): void =>
  store(table, nonce, { issued_ms, highest: 0, window: 0n })

type Counts = ReplayTable['used'] extends Map<string, infer Value> ? Value : never

function store(table: ReplayTable, nonce: string, counts: Counts): void {
  if (table.used.size >= table.max_nonces) forgetOldest(table)
  table.used.set(nonce, counts)
}

/** Removes expired nonces. Callers run it periodically. */
export function forgetExpired(table: ReplayTable, now_ms: number): void {
  for (const [nonce, { issued_ms }] of table.used)
    if (now_ms - issued_ms > NONCE_LIFETIME_MS) {
      table.used.delete(nonce)
      // If the clock is set back, the nonce would look fresh again.
      table.forgotten_until_ms = Math.max(table.forgotten_until_ms, issued_ms)
    }
}

function forgetOldest(table: ReplayTable): void {
  const oldest = table.used.entries().next().value
  if (!oldest) return
  table.used.delete(oldest[0])
  table.forgotten_until_ms = Math.max(table.forgotten_until_ms, oldest[1].issued_ms)
}

const quoted = (text: string): string => text.replace(/["\\\r\n]/g, '')

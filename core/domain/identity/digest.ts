/** Digest access authentication (RFC 7616 with RFC 8760 for SIP), qop=auth alone. The hashes are passed in. */
export type DigestAlgorithm = 'SHA-256' | 'MD5'

/** RFC 8760 §2.3: the one that we prefer stands first. */
const DIGEST_ALGORITHMS: readonly DigestAlgorithm[] = ['SHA-256', 'MD5']

export interface DigestCrypto {
  /** Lowercase hexadecimal. */
  hash(algorithm: DigestAlgorithm, text: string): string
  /** Keyed with the server's key, lowercase hexadecimal. */
  hmac(text: string): string
  /** Constant time for texts of equal length. */
  equal(a: string, b: string): boolean
}

/** What is stored of a password: H(username:realm:password) per algorithm. */
interface DigestSecret {
  readonly ha1_md5: string
  readonly ha1_sha256: string
}

export const ha1 = (crypto: DigestCrypto, algorithm: DigestAlgorithm, user: string, realm: string, password: string) =>
  crypto.hash(algorithm, `${user}:${realm}:${password}`)

/** How long a nonce may be used. */
export const NONCE_LIFETIME_MS = 5 * 60_000

/** To whom a nonce is issued. Anybody can send from another's address, but only its holder gets what is sent there. */
export interface NonceHolder {
  readonly transport: string
  readonly address: string
}

/**
 * `<issued, base 36>.<random>.<hmac>`: nothing is stored for a nonce that nobody answers. `random` is hexadecimal. The
 * holder is in the hmac: from elsewhere, or by another transport, the nonce is a forged one. It is short, because a
 * challenge may not be much larger than what was asked.
 */
export function makeNonce(crypto: DigestCrypto, issued_ms: number, random: string, holder: NonceHolder): string {
  const body = `${Math.floor(issued_ms).toString(36)}.${random}`
  return `${body}.${macOf(crypto, body, holder)}`
}

const macOf = (crypto: DigestCrypto, body: string, { transport, address }: NonceHolder): string =>
  crypto.hmac(`${body} ${transport} ${address}`).slice(0, 24)

type NonceState = { readonly state: 'valid' | 'stale'; readonly issued_ms: number } | { readonly state: 'forged' }

export function readNonce(crypto: DigestCrypto, nonce: string, now_ms: number, holder: NonceHolder): NonceState {
  const match = /^([0-9a-z]{1,12})\.([0-9a-f]{8,64})\.([0-9a-f]{24})$/.exec(nonce)
  if (!match) return { state: 'forged' }
  const [, issued = '', random = '', mac = ''] = match
  if (!crypto.equal(macOf(crypto, `${issued}.${random}`, holder), mac)) return { state: 'forged' }
  const issued_ms = Number.parseInt(issued, 36)
  // A nonce from the future was made before the clock was put back: it has no age that could be trusted.
  const fresh = issued_ms <= now_ms && now_ms - issued_ms <= NONCE_LIFETIME_MS
  return { state: fresh ? 'valid' : 'stale', issued_ms }
}

/** Values of WWW-Authenticate (or Proxy-Authenticate), one header per algorithm, in this order. */
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

/** An Authorization (or Proxy-Authorization) value; null when it is not digest with qop=auth or lacks something. */
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
    // A repeated parameter is ambiguous, and what is ambiguous does not authenticate anybody.
    if (parameters.has(name)) return null
    parameters.set(name, match[2] === undefined ? (match[3] ?? '') : match[2].replace(/\\(.)/g, '$1'))
  }
  return parameters
}

const algorithmOf = (name = 'MD5'): DigestAlgorithm | null =>
  DIGEST_ALGORITHMS.find(algorithm => algorithm.toLowerCase() === name.toLowerCase()) ?? null

interface DigestFacts<Credential extends DigestSecret> {
  readonly authorization: Authorization
  readonly method: string
  /** Request-URI as it stood in the request. */
  readonly request_uri: string
  /** Those of this username and realm that are valid now: while a rotation overlaps, the old and the new one. */
  readonly credentials: readonly Credential[]
  readonly now_ms: number
  /** Who answers. */
  readonly holder: NonceHolder
}

type DigestOutcome<Credential> =
  | { readonly kind: 'authenticated'; readonly credential: Credential }
  /** Right, but the nonce is too old: challenge again with stale=true, no failure is counted. */
  | { readonly kind: 'stale' }
  | { readonly kind: 'refused'; readonly why: 'forged_nonce' | 'uri_mismatch' | 'wrong_password' | 'replayed' }

const NOBODY: DigestSecret = { ha1_md5: '0'.repeat(32), ha1_sha256: '0'.repeat(64) }

/**
 * Whether the Authorization answers a challenge of ours, for this request and for the first time. An unknown user takes
 * the same steps as a wrong password.
 */
export function verifyDigest<Credential extends DigestSecret>(
  crypto: DigestCrypto,
  replays: ReplayTable,
  facts: DigestFacts<Credential>,
): DigestOutcome<Credential> {
  const { authorization, method, request_uri, credentials, now_ms, holder } = facts
  const right = matching(crypto, authorization, method, credentials)
  const nonce = readNonce(crypto, authorization.nonce, now_ms, holder)
  if (nonce.state === 'forged') return { kind: 'refused', why: 'forged_nonce' }
  if (!right) return { kind: 'refused', why: 'wrong_password' }
  if (!sameUri(authorization.uri, request_uri)) return { kind: 'refused', why: 'uri_mismatch' }
  if (nonce.state === 'stale') return { kind: 'stale' }
  switch (acceptCount(replays, authorization.nonce, nonce.issued_ms, Number.parseInt(authorization.nc, 16))) {
    case 'accepted':
      return { kind: 'authenticated', credential: right }
    case 'forgotten':
      return { kind: 'stale' }
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

/** RFC 7616 §3.4.1 with qop=auth. */
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

/** Parameters may differ, because edges on the way add and remove them; scheme, user, host and port may not. */
function sameUri(a: string, b: string): boolean {
  return a === b || core(a) === core(b)
}

function core(uri: string): string {
  const bare = uri.replace(/[;?].*$/s, '')
  const at = bare.lastIndexOf('@')
  return at < 0 ? bare.toLowerCase() : `${bare.slice(0, at)}@${bare.slice(at + 1).toLowerCase()}`
}

/**
 * Which nonce counts were used. Bounded: the oldest nonces are forgotten first, and a nonce as old as a forgotten one
 * is asked to be renewed, so that forgetting never lets a replay through. Owned by one process.
 */
export interface ReplayTable {
  readonly max_nonces: number
  readonly used: Map<string, { readonly issued_ms: number; highest: number; window: bigint }>
  forgotten_until_ms: number
}

export const createReplayTable = (max_nonces = 100_000): ReplayTable => ({
  max_nonces,
  used: new Map(),
  forgotten_until_ms: Number.NEGATIVE_INFINITY,
})

// UDP may reorder a user's requests. Each count less than this far behind the highest is accepted once.
const WINDOW = 64

/** Takes a count; each works once. */
export function acceptCount(
  table: ReplayTable,
  nonce: string,
  issued_ms: number,
  count: number,
): 'accepted' | 'replayed' | 'forgotten' {
  const known = table.used.get(nonce)
  if (!known) {
    if (issued_ms <= table.forgotten_until_ms) return 'forgotten'
    if (table.used.size >= table.max_nonces) forgetOldest(table)
    table.used.set(nonce, { issued_ms, highest: count, window: 1n })
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

/** Nonces that expired anyway: call it now and then. */
export function forgetExpired(table: ReplayTable, now_ms: number): void {
  for (const [nonce, { issued_ms }] of table.used)
    if (now_ms - issued_ms > NONCE_LIFETIME_MS) {
      table.used.delete(nonce)
      // The clock may be put back, and then the nonce would be fresh again.
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

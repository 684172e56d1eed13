import { type DigestCrypto, type DigestHash, ha1, readParameters } from './digest.ts'

/** A challenge from a remote server: the parameters that the answer needs (RFC 7616 §3.3). */
interface Challenge {
  readonly realm: string
  readonly nonce: string
  readonly algorithm: DigestHash
  /** The algorithm is one of those with `-sess`: its key belongs to one nonce. */
  readonly session: boolean
  /** With auth-int the answer covers the body too; null when the server is older than qop (RFC 2069). */
  readonly qop: 'auth' | 'auth-int' | null
  readonly opaque: string | null
  /** The credentials were right and only their nonce was too old (RFC 7616 §3.3). */
  readonly stale: boolean
}

/** Strongest first. */
const HASHES: readonly DigestHash[] = ['SHA-512-256', 'SHA-256', 'MD5']

/** auth first: a server on the way may change the body, which auth-int covers. */
const QOPS = ['auth', 'auth-int'] as const

/** The comma before another challenge: a scheme is followed by a space and its first parameter (RFC 9110 §11.6.1). */
const NEXT_CHALLENGE = /,\s*(?=[A-Za-z][\w-]*\s+[\w-]+\s*=)/

/**
 * Returns the challenges that we can answer, from the value of WWW-Authenticate or Proxy-Authenticate. Those with the
 * strongest algorithm come first. One value may hold several challenges, separated by commas.
 */
export function readChallenges(header: string): Challenge[] {
  const found: Challenge[] = []
  for (const one of header.slice(0, 8192).split(NEXT_CHALLENGE)) {
    const parameters = /^\s*Digest\s/i.test(one) ? readParameters(one.replace(/^\s*Digest\s+/i, '')) : null
    const [realm, nonce] = [parameters?.get('realm'), parameters?.get('nonce')]
    const [hash = '', session] = (parameters?.get('algorithm') ?? 'MD5').toUpperCase().split(/(-SESS)$/)
    const algorithm = HASHES.find(name => name === hash)
    if (!parameters || realm === undefined || !nonce || !algorithm) continue
    const qops = parameters
      .get('qop')
      ?.toLowerCase()
      .split(/[\s,]+/)
    const qop = qops ? QOPS.find(one => qops.includes(one)) : null
    if (qop === undefined) continue
    const stale = parameters.get('stale')?.toLowerCase() === 'true'
    const opaque = parameters.get('opaque') ?? null
    found.push({ realm, nonce, algorithm, session: session !== undefined, qop, opaque, stale })
  }
  return found.sort((a, b) => HASHES.indexOf(a.algorithm) - HASHES.indexOf(b.algorithm))
}

/** Returns the Authorization (or Proxy-Authorization) value that answers a challenge. Uses each nonce once: nc is 1. */
export function answerChallenge(
  crypto: Pick<DigestCrypto, 'hash'>,
  challenge: Challenge,
  facts: {
    readonly username: string
    readonly password: string
    readonly method: string
    readonly uri: string
    /** Hexadecimal. */
    readonly cnonce: string
    /** As the challenged request had it. */
    readonly body: string | Uint8Array
  },
): string {
  const { realm, nonce, algorithm, session, qop, opaque } = challenge
  const { username, password, method, uri, cnonce, body } = facts
  const nc = '00000001'
  const hash = (content: string | Uint8Array): string => crypto.hash(algorithm, content)
  const key = ha1(crypto as DigestCrypto, algorithm, username, realm, password)
  const first = session ? hash(`${key}:${nonce}:${cnonce}`) : key
  const second = hash(`${method}:${uri}${qop === 'auth-int' ? `:${hash(body)}` : ''}`)
  const response = hash(`${first}:${qop ? `${nonce}:${nc}:${cnonce}:${qop}` : nonce}:${second}`)
  const quoted = { username, realm, nonce, uri, response, ...(opaque === null ? {} : { opaque }) }
  return [
    `Digest ${Object.entries(quoted)
      .map(([name, value]) => `${name}="${value.replace(/[\\"]/g, '\\$&')}"`)
      .join(', ')}`,
    `algorithm=${algorithm}${session ? '-sess' : ''}`,
    ...(qop ? [`qop=${qop}`, `nc=${nc}`] : []),
    ...(qop || session ? [`cnonce="${cnonce}"`] : []),
  ].join(', ')
}

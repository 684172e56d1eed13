import { type DigestAlgorithm, type DigestCrypto, ha1, readParameters } from './digest.ts'

/** A challenge from a remote server: the parameters that the answer needs (RFC 7616 §3.3). */
interface Challenge {
  readonly realm: string
  readonly nonce: string
  readonly algorithm: DigestAlgorithm
  readonly qop: 'auth' | null
  readonly opaque: string | null
  /** The credentials were right and only their nonce was too old (RFC 7616 §3.3). */
  readonly stale: boolean
}

/** The comma before another challenge: a scheme is followed by a space and its first parameter (RFC 9110 §11.6.1). */
const NEXT_CHALLENGE = /,\s*(?=[A-Za-z][\w-]*\s+[\w-]+\s*=)/

/**
 * Returns the challenges that we can answer, strongest first, from the value of WWW-Authenticate or Proxy-Authenticate.
 * One value may hold several challenges, separated by commas.
 */
export function readChallenges(header: string): Challenge[] {
  const found: Challenge[] = []
  for (const one of header.slice(0, 8192).split(NEXT_CHALLENGE)) {
    const parameters = /^\s*Digest\s/i.test(one) ? readParameters(one.replace(/^\s*Digest\s+/i, '')) : null
    const [realm, nonce] = [parameters?.get('realm'), parameters?.get('nonce')]
    const given = (parameters?.get('algorithm') ?? 'MD5').toUpperCase()
    if (!parameters || realm === undefined || !nonce || (given !== 'MD5' && given !== 'SHA-256')) continue
    const qops = parameters
      .get('qop')
      ?.toLowerCase()
      .split(/[\s,]+/)
    // auth-int covers the body, and a SIP server may still change the body before it sends the request.
    if (qops && !qops.includes('auth')) continue
    const stale = parameters.get('stale')?.toLowerCase() === 'true'
    const qop = qops ? 'auth' : null
    found.push({ realm, nonce, algorithm: given, qop, opaque: parameters.get('opaque') ?? null, stale })
  }
  return found.sort((a, b) => Number(b.algorithm === 'SHA-256') - Number(a.algorithm === 'SHA-256'))
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
  },
): string {
  const { realm, nonce, algorithm, qop, opaque } = challenge
  const { username, password, method, uri, cnonce } = facts
  const nc = '00000001'
  const first = ha1(crypto as DigestCrypto, algorithm, username, realm, password)
  const second = crypto.hash(algorithm, `${method}:${uri}`)
  const between = qop ? `${nonce}:${nc}:${cnonce}:${qop}` : nonce
  const response = crypto.hash(algorithm, `${first}:${between}:${second}`)
  const quoted = { username, realm, nonce, uri, response, ...(opaque === null ? {} : { opaque }) }
  return [
    `Digest ${Object.entries(quoted)
      .map(([name, value]) => `${name}="${value.replace(/[\\"]/g, '\\$&')}"`)
      .join(', ')}`,
    `algorithm=${algorithm}`,
    ...(qop ? [`qop=${qop}`, `nc=${nc}`, `cnonce="${cnonce}"`] : []),
  ].join(', ')
}

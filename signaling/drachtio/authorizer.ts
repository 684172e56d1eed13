import { randomBytes } from 'node:crypto'
import { answerChallenge, readChallenges } from '../../core/domain/identity/index.ts'
import { digestHash } from '../../core/runtime/secrets.ts'
import type { Credentials, Headers, SipResponse } from './types.ts'

/** A request passes at most this many challengers: proxies on the way, then the peer. */
const MAX_ROUNDS = 4

/**
 * Answers the challenges of one peer with our credentials (RFC 3261 §22.2, §22.3, RFC 8760). The realms of the first
 * challenged request are the only ones answered within its dialog: a peer that names another host as its target cannot
 * collect digests for it.
 */
export class Authorizer {
  readonly #credentials: Credentials
  readonly #realms = new Set<string>()
  #bound = false

  constructor(credentials: Credentials) {
    this.#credentials = credentials
  }

  /** Starts a new request, whose challenges are answered one after the other. */
  request(): Challenged {
    const bound = this.#bound
    const headers: Record<string, string> = {}
    let rounds = 0
    return {
      answer: (response, { method, uri }) => {
        const proxy = response.status === 407
        if ((!proxy && response.status !== 401) || ++rounds > MAX_ROUNDS) return null
        const name = proxy ? 'Proxy-Authorization' : 'Authorization'
        const offered = readChallenges(response.header(proxy ? 'proxy-authenticate' : 'www-authenticate') ?? '')
        const challenge = offered.find(({ realm }) => !bound || this.#realms.has(realm))
        // A second challenge in the same realm says that the credentials are wrong, unless only its nonce was too old.
        const repeated = headers[name]?.includes(`realm="${challenge?.realm ?? ''}"`) ?? false
        if (!challenge || (repeated && !challenge.stale)) return null
        this.#realms.add(challenge.realm)
        this.#bound = true
        const cnonce = randomBytes(8).toString('hex')
        headers[name] = answerChallenge({ hash: digestHash }, challenge, { ...this.#credentials, method, uri, cnonce })
        return { ...headers }
      },
    }
  }
}

interface Challenged {
  /** Returns the headers with which to send the request again; null when the response is its result. */
  answer(response: SipResponse, request: { readonly method: string; readonly uri: string }): Headers | null
}

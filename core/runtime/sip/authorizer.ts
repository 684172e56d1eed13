import { randomBytes } from 'node:crypto'
import { answerChallenge, readChallenges } from '../../domain/identity/index.ts'
import { digestHash } from '../secrets.ts'

/** A digest user and its password. */
export interface Credentials {
  readonly username: string
  readonly password: string
}

/** What is needed of a response that may be a challenge. `header` joins several lines of a header by commas. */
interface Answered {
  readonly status: number
  header(name: string): string | null
}

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

  constructor(credentials: Credentials) {
    this.#credentials = credentials
  }

  /** Reads what `forEdge` wrote; null when it is not well formed. */
  static read(value: string): Authorizer | null {
    const [username, password, realms] = value.split(':')
    if (!username || password === undefined || realms === undefined) return null
    try {
      const known = new Authorizer({ username: decodeURIComponent(username), password: decodeURIComponent(password) })
      for (const realm of realms === '' ? [] : realms.split(',')) known.#realms.add(decodeURIComponent(realm))
      return known
    } catch {
      return null
    }
  }

  /** Returns the credentials and the realms as one line of printable ASCII. It holds the password. */
  forEdge(): string {
    const { username, password } = this.#credentials
    const realms = [...this.#realms].map(encodeURIComponent)
    return `${encodeURIComponent(username)}:${encodeURIComponent(password)}:${realms.join(',')}`
  }

  /** Starts a new request, whose challenges are answered one after the other. */
  request(): Challenged {
    const bound = this.#realms.size > 0
    const headers: Record<string, string> = {}
    let rounds = 0
    return {
      answer: (response, request) => {
        const proxy = response.status === 407
        if ((!proxy && response.status !== 401) || ++rounds > MAX_ROUNDS) return null
        const name = proxy ? 'Proxy-Authorization' : 'Authorization'
        const offered = readChallenges(response.header(proxy ? 'proxy-authenticate' : 'www-authenticate') ?? '')
        const challenge = offered.find(({ realm }) => !bound || this.#realms.has(realm))
        // A second challenge in the same realm says that the credentials are wrong, unless only its nonce was too old.
        const repeated = headers[name]?.includes(`realm="${challenge?.realm ?? ''}"`) ?? false
        if (!challenge || (repeated && !challenge.stale)) return null
        this.#realms.add(challenge.realm)
        const cnonce = randomBytes(8).toString('hex')
        headers[name] = answerChallenge({ hash: digestHash }, challenge, { ...this.#credentials, ...request, cnonce })
        return { ...headers }
      },
    }
  }
}

interface Challenged {
  /** Returns the headers with which to send the request again; null when the response is its result. */
  answer(
    response: Answered,
    /** As it was sent: the answer covers it. */
    request: { readonly method: string; readonly uri: string; readonly body: string | Uint8Array },
  ): Readonly<Record<string, string>> | null
}

/**
 * The header by which the signaling node hands the credentials of a dialog to the embedded edge, for requests that the
 * edge sends by itself. The edge takes it off each command, so that it reaches neither the network nor the ladder.
 */
export const CREDENTIALS_HEADER = 'Strowger-Credentials'

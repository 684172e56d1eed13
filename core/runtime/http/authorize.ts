import { randomBytes } from 'node:crypto'
import { answerChallenge, readChallenges } from '../../domain/identity/digest-answer.ts'
import type { HttpTarget } from '../../domain/webhooks/target.ts'
import { digestHash } from '../secrets.ts'
import type { HttpHop } from './types.ts'

type Credentials = NonNullable<HttpTarget['credentials']>

/** Returns the Basic credentials of a URL's user info (RFC 7617). */
export const basic = ({ username, password }: Credentials): string =>
  `Basic ${Buffer.from(`${username}:${password}`, 'utf8').toString('base64')}`

/** How often one request is answered: its challenge, and once more when only the nonce was too old. */
const MAX_ANSWERS = 2

/** Answers the Digest challenges (RFC 7616) that one request of an exchange meets. Credentials never change. */
export class DigestAnswers {
  readonly #credentials: Credentials | null
  #answers = 0

  /** @param credentials null when the request's origin must not have any */
  constructor(credentials: Credentials | null) {
    this.#credentials = credentials
  }

  /** Returns the Authorization to repeat the request with; null when the response is final. */
  to(answer: { readonly status: number; readonly challenge: string | undefined }, hop: HttpHop, target: HttpTarget) {
    if (answer.status !== 401 || answer.challenge === undefined || this.#credentials === null) return null
    const [challenge] = readChallenges(fromWire(answer.challenge))
    // A second refusal means that the password is wrong, unless the server says that it was right.
    if (!challenge || this.#answers >= MAX_ANSWERS || (this.#answers > 0 && !challenge.stale)) return null
    this.#answers++
    const { method, body } = hop
    const cnonce = randomBytes(16).toString('hex')
    const facts = { ...this.#credentials, method, uri: target.path, cnonce, body: body ?? '' }
    return toWire(answerChallenge({ hash: digestHash }, challenge, facts))
  }
}

/** Headers are bytes; Node shows each byte as one character. Realms and user names are UTF-8. */
const fromWire = (value: string): string => Buffer.from(value, 'latin1').toString('utf8')
const toWire = (value: string): string => Buffer.from(value, 'utf8').toString('latin1')

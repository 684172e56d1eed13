import { createHash, createPublicKey, type KeyObject, sign } from 'node:crypto'
import type { Clock } from '../../core/runtime/clock.ts'
import type { HttpAnswer, HttpClient } from '../../core/runtime/http/index.ts'

/** The authority refused, or could not be reached. The message is one sentence. */
export class AcmeRefusal extends Error {}

/** How the authority convinces itself that a name is ours: RFC 8555 §8.3, RFC 8737. */
export type ChallengeType = 'http-01' | 'tls-alpn-01'

export interface Challenge {
  readonly name: string
  readonly token: string
  /** RFC 8555 §8.1. */
  readonly key_authorization: string
}

/** Ends the proof that `Present` has shown. */
export type Withdraw = () => Promise<void> | void

/** Shows the proof of a challenge until the returned function is called. */
export type Present = (challenge: Challenge) => Promise<Withdraw>

interface AcmeOptions {
  /** URL of the authority's directory. */
  readonly directory: string
  /** Of the account: EC, P-256. */
  readonly key: KeyObject
  readonly email: string | null
  readonly type: ChallengeType
  readonly http: HttpClient
  readonly clock: Clock
  readonly present: Present
}

/** Objects of RFC 8555 §7.1, as far as they are read. */
interface Directory {
  readonly newNonce: string
  readonly newAccount: string
  readonly newOrder: string
}
interface Problem {
  readonly type?: string
  readonly detail?: string
}
interface Authorization {
  readonly status: string
  readonly identifier: { readonly value: string }
  readonly challenges: readonly { type: string; url: string; token: string; error?: Problem }[]
}
interface Order {
  readonly status: string
  readonly authorizations: readonly string[]
  readonly finalize: string
  readonly certificate?: string
  readonly error?: Problem
}
interface Answered<T> {
  readonly body: T
  readonly headers: HttpAnswer['headers']
}

/** An authority asks to repeat requests with stale nonces (RFC 8555 §6.5). */
const ATTEMPTS = 10
const FIRST_WAIT_MS = 1000
const LONGEST_WAIT_MS = 10_000
/** How long an authority may take to validate a name or to issue a certificate. */
const PATIENCE_MS = 120_000
const MAX_BYTES = 256 * 1024

const base64url = (value: string | Buffer): string => Buffer.from(value).toString('base64url')

/** Obtains a certificate for these names by a signing request (DER). Returns the chain (PEM). @throws AcmeRefusal */
export async function obtainCertificate(options: AcmeOptions, names: readonly string[], csr: Buffer): Promise<string> {
  const account = await openAccount(options)
  const identifiers = names.map(value => ({ type: 'dns', value }))
  const { body: placed, headers } = await account.post<Order>(account.directory.newOrder, { identifiers })
  for (const url of placed.authorizations) await prove(account, options, url)
  await account.post(placed.finalize, { csr: base64url(csr) })
  const url = headers['location'] ?? ''
  const order = await account.settled<Order>(url, ({ status }) => status !== 'processing' && status !== 'ready')
  if (order.certificate === undefined) throw new AcmeRefusal(`no certificate was issued: ${sentenceOf(order.error)}`)
  return (await account.postText(order.certificate)).toString('utf8')
}

/** Proves that one name is ours. */
async function prove(account: Account, { type, present }: AcmeOptions, url: string): Promise<void> {
  const { body: asked } = await account.post<Authorization>(url, null)
  // The authority may remember an earlier proof.
  if (asked.status === 'valid') return
  const { value: name } = asked.identifier
  const challenge = asked.challenges.find(one => one.type === type)
  if (!challenge) throw new AcmeRefusal(`the authority offers no ${type} for ${name}`)
  const { token } = challenge
  const withdraw = await present({ name, token, key_authorization: `${token}.${account.thumbprint}` })
  try {
    await account.post(challenge.url, {})
    const proved = await account.settled<Authorization>(url, ({ status }) => status !== 'pending')
    if (proved.status !== 'valid') {
      const error = proved.challenges.find(one => one.type === type)?.error
      throw new AcmeRefusal(`the authority did not find ${name} here: ${sentenceOf(error)}`)
    }
  } finally {
    await withdraw()
  }
}

const sentenceOf = (problem: Problem | undefined): string => problem?.detail ?? problem?.type ?? 'it gives no reason'

interface Account {
  readonly directory: Directory
  /** Of the account's key (RFC 7638). */
  readonly thumbprint: string
  /** Posts JSON; null reads (POST-as-GET, RFC 8555 §6.3). */
  post<T>(url: string, payload: object | null): Promise<Answered<T>>
  postText(url: string): Promise<Buffer>
  /** Reads until `done`. */
  settled<T>(url: string, done: (body: T) => boolean): Promise<T>
}

/** Opens the account of the key, which the first request makes. */
async function openAccount({ directory: url, key, email, http, clock }: AcmeOptions): Promise<Account> {
  const { crv, kty, x, y } = createPublicKey(key).export({ format: 'jwk' })
  const jwk = { crv, kty, x, y }
  let nonce: string | undefined
  let kid: string | undefined
  const ask = async (method: 'GET' | 'HEAD' | 'POST', at: string, body?: string): Promise<HttpAnswer> => {
    const headers = { 'content-type': 'application/jose+json' }
    const sent = {
      url: at,
      method,
      max_bytes: MAX_BYTES,
      max_redirects: 0,
      ...(body === undefined ? {} : { body, headers }),
    }
    const answer = await http.request(sent)
    if (!answer.ok) throw new AcmeRefusal(`the authority cannot be reached: ${answer.detail}`)
    nonce = answer.headers['replay-nonce'] ?? nonce
    return answer
  }
  const directory = jsonOf<Directory>(await ask('GET', url))
  const signed = async (at: string, payload: object | null): Promise<HttpAnswer> => {
    for (let attempt = 1; ; attempt++) {
      if (nonce === undefined) await ask('HEAD', directory.newNonce)
      const head = { alg: 'ES256', nonce, url: at, ...(kid === undefined ? { jwk } : { kid }) }
      nonce = undefined
      const body = {
        protected: base64url(JSON.stringify(head)),
        payload: payload === null ? '' : base64url(JSON.stringify(payload)),
      }
      const text = Buffer.from(`${body.protected}.${body.payload}`)
      // RFC 7518 §3.4: the two numbers, not their ASN.1.
      const signature = base64url(sign('sha256', text, { key, dsaEncoding: 'ieee-p1363' }))
      const answer = await ask('POST', at, JSON.stringify({ ...body, signature }))
      if (answer.status < 400) return answer
      const { type, detail } = jsonOf<Problem>(answer)
      if (type !== 'urn:ietf:params:acme:error:badNonce' || attempt === ATTEMPTS)
        throw new AcmeRefusal(`the authority refuses: ${detail ?? type ?? answer.status}`)
    }
  }
  const contact = email === null ? {} : { contact: [`mailto:${email}`] }
  kid = (await signed(directory.newAccount, { termsOfServiceAgreed: true, ...contact })).headers['location']
  const account: Account = {
    directory,
    // The members in this order (RFC 7638 §3.2).
    thumbprint: createHash('sha256').update(JSON.stringify(jwk)).digest('base64url'),
    async post<T>(at: string, payload: object | null) {
      const answer = await signed(at, payload)
      return { body: jsonOf<T>(answer), headers: answer.headers }
    },
    postText: async at => (await signed(at, null)).body,
    async settled<T>(at: string, done: (body: T) => boolean) {
      const until = clock.monotonic_ms() + PATIENCE_MS
      for (let wait_ms = FIRST_WAIT_MS; ; wait_ms = Math.min(2 * wait_ms, LONGEST_WAIT_MS)) {
        const { body } = await account.post<T>(at, null)
        if (done(body)) return body
        if (clock.monotonic_ms() > until) throw new AcmeRefusal('the authority did not answer in time')
        await new Promise<void>(resolve => void clock.after(wait_ms, resolve))
      }
    },
  }
  return account
}

function jsonOf<T>({ body, url, status }: HttpAnswer): T {
  try {
    return JSON.parse(body.toString('utf8')) as T
  } catch {
    throw new AcmeRefusal(`the authority answers ${status} without JSON at ${url}`)
  }
}

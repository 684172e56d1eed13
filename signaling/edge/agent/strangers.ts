import { randomBytes } from 'node:crypto'
import {
  challenges,
  type DigestAlgorithm,
  Md5Clients,
  makeNonce,
  type NonceHolder,
  parseAuthorization,
  projectOfClientDomain,
  type Realms,
  readNonce,
  realmFor,
} from '../../../core/domain/identity/index.ts'
import { strangerAdvice } from '../../../core/domain/reasons/index.ts'
import type { Nonces } from '../../../core/runtime/secrets.ts'
import { METHODS } from '../sip/headers.ts'
import { type Draft, draftResponse, type SipMessage } from '../sip/message.ts'
import { smallAnswer } from '../sip/small-answer.ts'
import { parseNameAddress, parseUri } from '../sip/uri.ts'
import { RETRY_AFTER_SECONDS, type SenderStanding } from '../transaction/layer.ts'
import { isReliable, type Received } from '../transport/types.ts'
import type { AgentCore } from './core.ts'
import type { SourceGuard } from './guard.ts'

// Requests of sources that are not configured (decision 0111). The answer is derived from the request: no transaction,
// no 100, no retransmission, no state, and over UDP at most 1.5 times the bytes received. A request that answers one of
// our challenges reaches the application, which verifies the password. Until then its sender counts as a stranger. The
// first few requests of each second reach the application too, because it may already know a newly configured source.

export interface StrangerOptions {
  /** The application must be able to read its nonces. */
  readonly nonces: () => Nonces
  /** The default realm, and the parent domain of browser clients. */
  readonly domain: string
  readonly realms: () => Realms
  /** Whether the configured sources are known yet. Until then every stranger gets 503. Default: they are. */
  readonly known?: (() => boolean) | undefined
  readonly isConfiguredSource: (host: string) => boolean
  /** Requests without credentials that reach the application per second. Default 20. */
  readonly heard_per_second?: number | undefined
}

const MD5_ALONE: readonly DigestAlgorithm[] = ['MD5']
/** How long the application's answer to one OPTIONS is reused for others. */
const PONG_MS = 1_000
/** Strangers' OPTIONS that reach the application per second while there is no fresh answer. */
const PINGS = 10
/** INVITE and REGISTER without credentials that reach the application per second, from all sources together. */
const HEARD = 20

interface Pong {
  readonly at_ms: number
  readonly status: number
  readonly headers: readonly { readonly name: string; readonly value: string }[]
}

export class Strangers {
  readonly #core: AgentCore
  readonly #guard: SourceGuard
  readonly #options: StrangerOptions
  readonly #md5_clients = new Md5Clients()
  #pong: Pong | undefined
  #second = { since_ms: Number.NEGATIVE_INFINITY, pings: 0, heard: 0 }

  constructor(core: AgentCore, guard: SourceGuard, options: StrangerOptions) {
    this.#core = core
    this.#guard = guard
    this.#options = options
  }

  /** Reports whether the credentials answer a challenge that we sent to their source. */
  answersOurs(request: SipMessage, received: Received): boolean {
    const authorization = parseAuthorization(request.get('authorization')?.trim() ?? '')
    if (!authorization) return false
    const { crypto, now_ms, ahead_ms } = this.#options.nonces()
    const now = now_ms(this.#core.clock)
    return readNonce(crypto, authorization.nonce, now, holderOf(received), ahead_ms).state !== 'forged'
  }

  /** Returns the standing of a request's sender. `done`: the request was answered or is dropped. */
  standing(request: SipMessage, received: Received): SenderStanding {
    if (this.#options.isConfiguredSource(received.source.host)) return 'peer'
    const { method, to_tag } = request
    if (to_tag !== '' && this.#core.legOf(request)) return 'peer'
    if (method === 'ACK' || !this.#guard.admits(received)) return 'done'
    if (this.#options.known?.() === false)
      return this.#answer(request, received, 503, [{ name: 'Retry-After', value: RETRY_AFTER_SECONDS }])
    if (to_tag !== '' || method === 'CANCEL') return this.#answer(request, received, 481)
    if (method === 'OPTIONS') return this.#ping(request, received)
    if (method === 'INVITE' || method === 'REGISTER') return this.#challenge(request, received)
    return this.#answer(request, received, 405, [{ name: 'Allow', value: METHODS.join(', ') }])
  }

  /** Stores the application's answer to an OPTIONS. Strangers get the same answer for PONG_MS. */
  learn(status: number, draft: Draft): void {
    const own = draft.headers.filter(({ id }) => LEARNT.has(id)).map(({ name, value }) => ({ name, value }))
    this.#pong = { at_ms: this.#core.clock.monotonic_ms(), status, headers: own }
  }

  #ping(request: SipMessage, received: Received): SenderStanding {
    const now_ms = this.#core.clock.monotonic_ms()
    const pong = this.#pong
    if (pong && now_ms - pong.at_ms <= PONG_MS) return this.#answer(request, received, pong.status, pong.headers)
    if (this.#thisSecond(now_ms).pings++ < PINGS) return 'unproven'
    return pong ? this.#answer(request, received, pong.status, pong.headers) : 'done'
  }

  #thisSecond(now_ms: number) {
    if (now_ms - this.#second.since_ms > 1_000) this.#second = { since_ms: now_ms, pings: 0, heard: 0 }
    return this.#second
  }

  #challenge(request: SipMessage, received: Received): SenderStanding {
    const { nonces, domain, realms } = this.#options
    const now_ms = this.#core.clock.monotonic_ms()
    const known = realms()
    const host = parseUri(request.uri)?.host ?? ''
    const is_client = projectOfClientDomain(host, domain) !== null
    const from = parseNameAddress(request.get('from') ?? '')?.uri ?? ''
    const client = `${received.source.host} ${from}`
    // The realms do not matter here: the application may have challenged for an account that is new to this edge.
    if (this.answersOurs(request, received)) {
      this.#md5_clients.answered(client)
      return 'unproven'
    }
    const most = this.#options.heard_per_second ?? HEARD
    if (this.#thisSecond(now_ms).heard++ < most) return 'unproven'
    // No account exists that could answer a challenge.
    if (!known.any && !is_client) {
      const advice = isReliable(received.protocol) ? Object.entries(strangerAdvice(received.source.host)) : []
      return this.#answer(
        request,
        received,
        403,
        advice.map(([name, value]) => ({ name, value })),
      )
    }
    const realm = is_client ? host.toLowerCase() : realmFor(known, host, domain)
    const { crypto, now_ms: nowOf } = nonces()
    const nonce = makeNonce(crypto, nowOf(this.#core.clock), randomBytes(4).toString('hex'), holderOf(received))
    // sip.js reads only the last challenge and supports only MD5.
    const web = received.protocol === 'ws' || received.protocol === 'wss'
    const alone = this.#md5_clients.challenged(client, now_ms) || web
    const values = challenges(realm, nonce, false, alone ? MD5_ALONE : undefined)
    const headers = values.map(value => ({ name: 'WWW-Authenticate', value }))
    return this.#answer(request, received, 401, headers)
  }

  #answer(request: SipMessage, received: Received, status: number, headers: Pong['headers'] = []): 'done' {
    // RFC 3261 §8.2.7: a stateless server gives each retransmission of a request the same tag.
    const tag = this.#options.nonces().crypto.hmac(`${request.branch} ${request.call_id}`).slice(0, 10)
    const draft = draftResponse(request, status, tag)
    for (const { name, value } of headers) draft.add(name, value)
    const text = smallAnswer(draft, received)
    if (text !== undefined) this.#core.stack.transactions.answerStranger(received, text)
    return 'done'
  }
}

const LEARNT: ReadonlySet<string> = new Set(['allow', 'accept', 'supported', 'retry-after'])

const holderOf = ({ protocol, source }: Received): NonceHolder => ({ transport: protocol, address: source.host })

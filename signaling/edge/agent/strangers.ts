import { randomBytes } from 'node:crypto'
import {
  challenges,
  type DigestAlgorithm,
  type DigestCrypto,
  Md5Clients,
  makeNonce,
  type NonceHolder,
  parseAuthorization,
  projectOfClientDomain,
  type Realms,
  readNonce,
  realmFor,
} from '../../../core/domain/identity/index.ts'
import { METHODS } from '../sip/headers.ts'
import { type Draft, draftResponse, type SipMessage } from '../sip/message.ts'
import { smallAnswer } from '../sip/small-answer.ts'
import { parseNameAddress, parseUri } from '../sip/uri.ts'
import type { Standing } from '../transaction/layer.ts'
import type { Received } from '../transport/types.ts'
import type { AgentCore } from './core.ts'
import type { SourceGuard } from './guard.ts'

// Requests of sources that nobody has configured (decision 0111). They are answered from the request alone: no
// transaction, no 100, no repetition, nothing kept, and never much more than came. Who has answered a challenge of ours
// comes as far as the application, which judges the password; until it does, the request is one of a stranger still.
// So do the first few of a second: the application may know already that the source has become somebody's.

export interface StrangerOptions {
  /** Its nonces are read by the application. */
  readonly crypto: DigestCrypto
  /** Realm of those who have none of their own, and of browser clients. */
  readonly domain: string
  readonly realms: () => Realms
  /** Whether the configured sources are known yet; until then everybody gets 503. Unset: they are. */
  readonly known?: (() => boolean) | undefined
  readonly isConfiguredSource: (host: string) => boolean
  /** Requests without credentials that the application hears in a second; default 20. */
  readonly heard_per_second?: number | undefined
}

const MD5_ALONE: readonly DigestAlgorithm[] = ['MD5']
/** How long the application's answer to one OPTIONS is good for others. */
const PONG_MS = 1_000
/** So many OPTIONS of strangers are asked in that time, when there is no answer yet. */
const PINGS = 10
/** So many INVITE and REGISTER without credentials the application hears in a second, all sources together. */
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

  /** Whether credentials answer a challenge that went to where they come from. */
  answersOurs(request: SipMessage, received: Received): boolean {
    const authorization = parseAuthorization(request.get('authorization')?.trim() ?? '')
    if (!authorization) return false
    const now_ms = this.#core.clock.monotonic_ms()
    return readNonce(this.#options.crypto, authorization.nonce, now_ms, holderOf(received)).state !== 'forged'
  }

  /** Whose request it is; one that is `done` has got its answer, or gets none. */
  standing(request: SipMessage, received: Received): Standing {
    if (this.#options.isConfiguredSource(received.source.host)) return 'peer'
    const { method, to_tag } = request
    if (to_tag !== '' && this.#core.legOf(request)) return 'peer'
    if (method === 'ACK' || !this.#guard.admits(received)) return 'done'
    if (this.#options.known?.() === false) return this.#answer(request, received, 503)
    if (to_tag !== '' || method === 'CANCEL') return this.#answer(request, received, 481)
    if (method === 'OPTIONS') return this.#ping(request, received)
    if (method === 'INVITE' || method === 'REGISTER') return this.#challenge(request, received)
    return this.#answer(request, received, 405, [{ name: 'Allow', value: METHODS.join(', ') }])
  }

  /** The application has answered an OPTIONS: strangers are told the same for a while. */
  learn(status: number, draft: Draft): void {
    const own = draft.headers.filter(({ id }) => LEARNT.has(id)).map(({ name, value }) => ({ name, value }))
    this.#pong = { at_ms: this.#core.clock.monotonic_ms(), status, headers: own }
  }

  #ping(request: SipMessage, received: Received): Standing {
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

  #challenge(request: SipMessage, received: Received): Standing {
    const { crypto, domain, realms } = this.#options
    const now_ms = this.#core.clock.monotonic_ms()
    const known = realms()
    const host = parseUri(request.uri)?.host ?? ''
    const is_client = projectOfClientDomain(host, domain) !== null
    const ours = this.answersOurs(request, received)
    const most = this.#options.heard_per_second ?? HEARD
    if (!ours && this.#thisSecond(now_ms).heard++ < most) return 'unproven'
    // Nobody could answer a challenge.
    if (!known.any && !is_client) return this.#answer(request, received, 403)
    const from = parseNameAddress(request.get('from') ?? '')?.uri ?? ''
    const client = `${received.source.host} ${from}`
    if (ours) {
      this.#md5_clients.answered(client)
      return 'unproven'
    }
    const realm = is_client ? host.toLowerCase() : realmFor(known, host, domain)
    const nonce = makeNonce(crypto, now_ms, randomBytes(4).toString('hex'), holderOf(received))
    // sip.js reads one challenge, the last, and knows MD5 alone.
    const web = received.protocol === 'ws' || received.protocol === 'wss'
    const alone = this.#md5_clients.challenged(client, now_ms) || web
    const values = challenges(realm, nonce, false, alone ? MD5_ALONE : undefined)
    const headers = values.map(value => ({ name: 'WWW-Authenticate', value }))
    return this.#answer(request, received, 401, headers)
  }

  #answer(request: SipMessage, received: Received, status: number, headers: Pong['headers'] = []): 'done' {
    // RFC 3261 §8.2.7: who keeps nothing gives a repeated request the same tag.
    const tag = this.#options.crypto.hmac(`${request.branch} ${request.call_id}`).slice(0, 10)
    const draft = draftResponse(request, status, tag)
    for (const { name, value } of headers) draft.add(name, value)
    const text = smallAnswer(draft, received)
    if (text !== undefined) this.#core.stack.transactions.answerStranger(received, text)
    return 'done'
  }
}

const LEARNT: ReadonlySet<string> = new Set(['allow', 'accept', 'supported', 'retry-after'])

const holderOf = ({ protocol, source }: Received): NonceHolder => ({ transport: protocol, address: source.host })

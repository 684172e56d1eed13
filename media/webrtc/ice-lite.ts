import { timingSafeEqual } from 'node:crypto'
import type * as werift from 'werift'

/**
 * ICE-lite, for a host at a known address (RFC 8445 §2.5). It sends no checks and only answers those of the browser. A
 * check with the right password proves the path and the consent (RFC 7675).
 */

export interface IceCredentials {
  readonly local_ufrag: string
  readonly local_pwd: string
}

export interface Path {
  readonly address: string
  readonly port: number
}

interface IceLiteOptions {
  readonly credentials: IceCredentials
  readonly stun: Pick<typeof werift, 'parseMessage' | 'Message' | 'classes' | 'methods'>
  readonly send: (packet: Buffer, path: Path) => void
  readonly now_ms: () => number
  /** Called with the path to use: the first one that was proved, then each that the browser nominates. */
  readonly onPath: (path: Path) => void
}

const CONFLICT = 487

export class IceLite {
  readonly #options: IceLiteOptions
  #remote_ufrag = ''
  #path: Path | null = null
  #nominated = false
  #proved_at_ms: number

  constructor(options: IceLiteOptions) {
    this.#options = options
    this.#proved_at_ms = options.now_ms()
  }

  get path(): Path | null {
    return this.#path
  }

  /** Returns the milliseconds since the peer last proved its consent. */
  silent_ms(): number {
    return this.#options.now_ms() - this.#proved_at_ms
  }

  /** Sets the peer's credentials. New ones are an ICE restart, which cancels an earlier nomination. */
  setRemote(ufrag: string): void {
    if (ufrag !== this.#remote_ufrag) this.#nominated = false
    this.#remote_ufrag = ufrag
  }

  /** Handles a STUN packet from any source. Ignores everything but authentic checks. */
  receive(packet: Buffer, from: Path): void {
    const { stun, credentials, send } = this.#options
    const key = Buffer.from(credentials.local_pwd)
    const message = stun.parseMessage(packet, key)
    if (!message || message.messageMethod !== stun.methods.BINDING || message.messageClass !== stun.classes.REQUEST)
      return
    const username = Buffer.from(String(message.getAttributeValue('USERNAME') ?? ''))
    const expected = Buffer.from(`${credentials.local_ufrag}:${this.#remote_ufrag}`)
    if (username.length !== expected.length || !timingSafeEqual(username, expected)) return
    const conflict = message.getAttributeValue('ICE-CONTROLLED') !== undefined
    const type = conflict ? stun.classes.ERROR : stun.classes.RESPONSE
    const reply = new stun.Message(stun.methods.BINDING, type, message.transactionId)
    // The peer claims to be controlled too. We never take the controlling role (RFC 8445 §7.3.1.1).
    if (conflict) reply.setAttribute('ERROR-CODE', [CONFLICT, 'Role Conflict'])
    else reply.setAttribute('XOR-MAPPED-ADDRESS', [from.address, from.port])
    reply.addMessageIntegrity(key).addFingerprint()
    send(reply.bytes, from)
    if (conflict) return
    this.#proved_at_ms = this.#options.now_ms()
    const nominates = message.getAttributeValue('USE-CANDIDATE') !== undefined
    this.#choose(from, nominates)
  }

  #choose(from: Path, nominates: boolean): void {
    if (this.#path && !nominates) return
    if (this.#nominated && !nominates) return
    this.#nominated ||= nominates
    if (this.#path?.address === from.address && this.#path.port === from.port) return
    this.#path = from
    this.#options.onPath(from)
  }
}

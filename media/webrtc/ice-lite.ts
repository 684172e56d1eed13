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
  /** Called with the path to use: the first that was proved, then what the browser uses, and what it nominates. */
  readonly onPath: (path: Path) => void
  /** Called before the answer to a check, with every pair that the browser may use now besides the path. */
  readonly onProved: (paths: readonly Path[]) => void
}

const CONFLICT = 487
/** The most checked pairs that are remembered before a nomination. A browser has a few addresses and families. */
const MAX_CHECKED = 32

const keyOf = ({ address, port }: Path): string => `${address} ${port}`

export class IceLite {
  readonly #options: IceLiteOptions
  #remote_ufrag = ''
  #path: Path | null = null
  /** The pairs that a check proved. */
  readonly #checked = new Map<string, Path>()
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
    if (ufrag !== this.#remote_ufrag) {
      this.#nominated = false
      this.#checked.clear()
      this.#options.onProved([])
    }
    this.#remote_ufrag = ufrag
  }

  /**
   * Reports whether data from this source counts. Until it nominates a pair, the browser may send over any that a check
   * proved, and we answer over the one that it uses (RFC 8445 §12.2).
   */
  uses(from: Path): boolean {
    if (this.#path && keyOf(this.#path) === keyOf(from)) return true
    if (this.#nominated || !this.#checked.has(keyOf(from))) return false
    this.#move(from)
    return true
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
    // The browser may send over a pair as soon as it has our answer, so what the check proves counts before.
    if (!conflict) this.#proved(from, message.getAttributeValue('USE-CANDIDATE') !== undefined)
    send(reply.bytes, from)
  }

  #proved(from: Path, nominates: boolean): void {
    this.#proved_at_ms = this.#options.now_ms()
    const isNew = !this.#checked.has(keyOf(from)) && this.#checked.size < MAX_CHECKED
    if (isNew) this.#checked.set(keyOf(from), from)
    const settled = this.#nominated
    this.#nominated ||= nominates
    if (this.#nominated && !settled) this.#options.onProved([])
    else if (isNew && !this.#nominated) this.#options.onProved([...this.#checked.values()])
    if (this.#path && !nominates) return
    if (!this.#path || keyOf(this.#path) !== keyOf(from)) this.#move(from)
  }

  #move(path: Path): void {
    this.#path = path
    this.#options.onPath(path)
  }
}

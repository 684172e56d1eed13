import { isIP } from 'node:net'
import { connect, createServer, type Server, type TLSSocket } from 'node:tls'
import { boundedMap } from '../../../core/domain/bounded-map.ts'
import type { Clock, Timer } from '../../../core/runtime/clock.ts'
import type { Beat, MachineAt } from '../../../core/runtime/edge-link.ts'
import { jsonLine, readJsonLines } from '../../../core/runtime/json-lines.ts'
import { MACHINE_TLS } from '../../../core/runtime/machine-tls.ts'
import { type GuardWord, isGuardWord } from '../agent/guard.ts'
import type { EdgeLog } from '../stack.ts'
import { ListenError } from '../transport/listen.ts'
import type { Address, Listener, Protocol, TransportDestination } from '../transport/types.ts'

// Links between the edges of an installation: JSON lines over TLS with a pre-shared key (RFC 5489). The key is derived
// from the master key, so whoever completes the handshake is a machine of ours, and nobody else hears or says anything.
// Each edge opens a link to each other one for what it says, and hears answers on it.

/** A flow: the protocol and the address of its peer. */
export interface Flow extends Address {
  readonly protocol: Protocol
}

/** What the peer of a new connection must prove. */
type Opens = Pick<TransportDestination, 'tls' | 'server_name'>

/** What one edge says to another. */
export type Frame =
  /** First: where I hear you. The other edge may not have learnt of this machine yet. */
  | { readonly kind: 'here'; readonly at: MachineAt }
  /**
   * Send this over your flow. The answer `failed` comes only if it cannot be sent. With `opens` you may open a
   * connection for it, whose peer must prove this: the sender has no listening points.
   */
  | {
      readonly kind: 'send'
      readonly id: number
      readonly flow: Flow
      readonly text: string
      readonly opens?: Opens | undefined
    }
  /** Are you there? The answer is `heard`. */
  | { readonly kind: 'ping' }
  /** My node says this to yours. */
  | { readonly kind: 'note'; readonly text: string }
  /** This came over a flow of mine at this listening point, and is yours. */
  | { readonly kind: 'received'; readonly flow: Flow; readonly listener: Listener; readonly text: string }
  /** My node says this. The answer is `heard`. */
  | { readonly kind: 'beat'; readonly beat: Beat }
  /** My guard says this to yours. */
  | { readonly kind: 'guard'; readonly word: GuardWord }

/** What the opened end answers. */
type Answer =
  /** First: where its peers reach it. */
  | ({ readonly kind: 'hello'; readonly listeners: readonly Listener[] } & Takes)
  | { readonly kind: 'failed'; readonly id: number }
  | ({ readonly kind: 'heard' } & Takes)

/** `takes`: its application is there and takes new requests. An older version does not say. */
interface Takes {
  readonly takes?: boolean
}

const HANDSHAKE_MS = 5_000
const CONNECT_MS = 3_000
/** How long the other end may leave a beat unanswered: packets are lost, or it stands still. */
const SILENT_MS = 5_000
/** How long an edge that could not be reached is not tried again. */
const REST_MS = 1_000
const MAX_UNSENT_BYTES = 4 * 1024 * 1024
const MAX_LINKS = 256
/** Messages of which the failure can still be told. */
const MAX_OPEN = 10_000
const MAX_TEXT = 256 * 1024
const PROTOCOLS: ReadonlySet<unknown> = new Set<Protocol>(['udp', 'tcp', 'tls', 'ws', 'wss'])

/** Opens the end to which other edges connect. Rejects with ListenError. */
export function listenForEdges(
  at: Address,
  {
    key,
    hello,
    takes,
    hear,
    log,
  }: {
    readonly key: Buffer
    readonly hello: () => readonly Listener[]
    readonly takes: () => boolean
    /** `from` is the machine's id as it names itself. `failed` tells it that a message could not be sent. */
    readonly hear: (from: string, frame: Frame, failed: () => void) => void
    readonly log: EdgeLog
  },
): Promise<{ close(): void }> {
  const names = new WeakMap<object, string>()
  const sockets = new Set<TLSSocket>()
  const server: Server = createServer({
    ...MACHINE_TLS,
    handshakeTimeout: HANDSHAKE_MS,
    pskIdentityHint: 'strowger',
    pskCallback: (socket, identity) => {
      names.set(socket, identity)
      return key
    },
  })
  server.maxConnections = MAX_LINKS
  server.on('secureConnection', socket => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', err => log.debug({ err }, 'the edge of another machine went away'))
    const say = (answer: Answer): void => void (socket.writable && socket.write(jsonLine(answer)))
    say({ kind: 'hello', listeners: hello(), takes: takes() })
    readJsonLines(socket, value => {
      if (isBeat(value) || isPing(value)) say({ kind: 'heard', takes: takes() })
      if (isBeat(value) || isFrame(value) || isOfGuard(value) || isHere(value))
        hear(names.get(socket) ?? '', value, () => 'id' in value && say({ kind: 'failed', id: value.id }))
    })
  })
  // Strangers cannot complete the handshake.
  server.on('tlsClientError', err => log.debug({ err }, 'a connection to the port of the machines was refused'))
  return new Promise((resolve, reject) => {
    server.once('error', cause => reject(new ListenError('tls', at.host, at.port, cause)))
    server.listen(at.port, at.host, () =>
      resolve({
        close() {
          server.close()
          for (const socket of sockets) socket.destroy()
        },
      }),
    )
  })
}

function isHere(value: unknown): value is Extract<Frame, { readonly kind: 'here' }> {
  const { kind, at } = value as { readonly kind?: unknown; readonly at?: Partial<MachineAt> }
  return kind === 'here' && typeof at?.machine_id === 'string' && typeof at.host === 'string' && isPort(at.port)
}

const isPort = (port: unknown): boolean => Number.isInteger(port) && Number(port) > 0 && Number(port) < 65_536

const isPing = (value: unknown): boolean => (value as { readonly kind?: unknown }).kind === 'ping'

function isBeat(value: unknown): value is Extract<Frame, { readonly kind: 'beat' }> {
  const { kind, beat } = value as { readonly kind?: unknown; readonly beat?: Partial<Beat> }
  return kind === 'beat' && typeof beat?.node_id === 'string' && Array.isArray(beat.hears)
}

const isOfGuard = (value: unknown): value is Extract<Frame, { readonly kind: 'guard' }> =>
  (value as { readonly kind?: unknown }).kind === 'guard' && isGuardWord((value as { readonly word?: unknown }).word)

/** Whether a value is a frame of this version. A newer edge may say more. */
function isFrame(value: unknown): value is Frame {
  const { kind, flow, text, id, listener } = value as Partial<
    Exclude<Frame, { kind: 'beat' | 'ping' | 'guard' | 'here' }> & { id: number; flow: Flow; listener: Listener }
  >
  if (typeof text !== 'string' || text.length > MAX_TEXT) return false
  if (kind === 'note') return true
  if (!flow || !PROTOCOLS.has(flow.protocol) || isIP(flow.host) === 0) return false
  return kind === 'send' ? typeof id === 'number' : kind === 'received' && typeof listener?.advertised_host === 'string'
}

/** The link to the edge of another machine. It opens with the first message, and again after it was lost. */
export class EdgeLink {
  readonly #own: MachineAt
  readonly #to: MachineAt
  readonly #key: Buffer
  readonly #clock: Clock
  readonly #log: EdgeLog
  /** Called when the other end has said hello, and when it is lost. */
  readonly #changed: () => void
  #socket: TLSSocket | undefined
  #listeners: readonly Listener[] | undefined
  /** Called once the other end has said hello, or cannot be reached. */
  #waiting: ((up: boolean) => void)[] = []
  #next_id = 1
  readonly #open = boundedMap<number, (error: Error) => void>(MAX_OPEN)
  #rests_until_ms = Number.NEGATIVE_INFINITY
  #closed = false
  #told_lost = false
  #takes = true
  /** Gives the link up when a beat is not answered. */
  #unheard: Timer | undefined

  constructor(
    to: MachineAt,
    own: { readonly at: MachineAt; readonly key: Buffer; readonly clock: Clock; readonly log: EdgeLog },
    changed: () => void,
  ) {
    this.#changed = changed
    this.#to = to
    this.#own = own.at
    this.#key = own.key
    this.#clock = own.clock
    this.#log = own.log
  }

  /** False after a failure, for a moment. */
  get usable(): boolean {
    return !this.#closed && this.#clock.monotonic_ms() >= this.#rests_until_ms
  }

  /** Whether the other edge has said last that its application takes new requests. */
  get takes(): boolean {
    return this.#takes
  }

  /** The listening points of the other edge; undefined while it is not connected. */
  get hello(): readonly Listener[] | undefined {
    return this.#listeners
  }

  /** The other edge speaks to us, so it can be reached again. */
  isBack(): void {
    this.#rests_until_ms = Number.NEGATIVE_INFINITY
  }

  /** Calls `then` with the listening points of the other edge; undefined when it cannot be reached. */
  listeners(then: (listeners: readonly Listener[] | undefined) => void): void {
    this.#ready(up => then(up ? this.#listeners : undefined))
  }

  /** Has the other edge send a message. `failed` is called later, at most once. */
  send(flow: Flow, text: string, failed: (error: Error) => void, opens?: Opens): void {
    const id = this.#next_id++
    this.#say({ kind: 'send', id, flow, text, opens }, error => {
      this.#open.delete(id)
      failed(error)
    })
    // The loss of a datagram is not reported.
    if (flow.protocol !== 'udp') this.#open.set(id, failed)
  }

  /** Hands over a message that belongs to the other edge. `failed` is called later, if that edge cannot be reached. */
  handOver(flow: Flow, listener: Listener, text: string, failed: () => void): void {
    this.#say({ kind: 'received', flow, listener, text }, failed)
  }

  /** Tells the other edge what our node says. A link whose other end does not answer it is closed. */
  beat(beat: Beat): void {
    this.#expect({ kind: 'beat', beat })
  }

  /** Opens the link when it is lost, and closes one whose other end does not answer. */
  ping(): void {
    this.#expect({ kind: 'ping' })
  }

  #expect(frame: Frame): void {
    this.#ready(up => {
      if (!up || !this.#socket) return
      this.#socket.write(jsonLine(frame))
      this.#unheard ??= this.#clock.after(SILENT_MS, () => this.#socket?.destroy(new Error('no answer')))
    })
  }

  /** Has the other edge hand a note to its node. */
  note(text: string, failed: (error: Error) => void): void {
    this.#say({ kind: 'note', text }, failed)
  }

  /** Has the other edge hand a word to its guard. */
  guard(word: GuardWord, failed: (error: Error) => void): void {
    this.#say({ kind: 'guard', word }, failed)
  }

  close(): void {
    this.#closed = true
    this.#socket?.destroy()
  }

  #say(frame: Frame, failed: (error: Error) => void): void {
    this.#ready(up => {
      const socket = this.#socket
      if (!up || !socket) failed(new Error('the edge of the machine cannot be reached'))
      else if (socket.writableLength > MAX_UNSENT_BYTES) failed(new Error('the edge of the machine does not read'))
      else socket.write(jsonLine(frame))
    })
  }

  #ready(then: (up: boolean) => void): void {
    if (this.#listeners) then(true)
    // Never at once, as a caller expects of a message that fails.
    else if (!this.usable) queueMicrotask(() => then(false))
    else {
      this.#waiting.push(then)
      if (!this.#socket) this.#connect()
    }
  }

  #connect(): void {
    const { host, port, machine_id } = this.#to
    const socket = connect({
      ...MACHINE_TLS,
      host,
      port,
      pskCallback: () => ({ psk: this.#key, identity: this.#own.machine_id }),
      // The key proves the other end; there are no certificates.
      checkServerIdentity: () => undefined,
    })
    this.#socket = socket
    const late = this.#clock.after(CONNECT_MS, () => socket.destroy(new Error('connect timed out')))
    socket.setNoDelay(true)
    socket.on('error', err => {
      // Beats try again every 2 s.
      if (!this.#told_lost) this.#log.warn({ err, machine_id, host, port }, 'the edge of a machine cannot be reached')
      this.#told_lost = true
    })
    socket.on('close', () => {
      late.cancel()
      this.#lost()
    })
    readJsonLines(socket, value => {
      const answer = value as Answer
      if (answer.kind !== 'failed') this.#takes = answer.takes !== false
      if (answer.kind === 'heard') this.#heard()
      else if (answer.kind === 'failed') this.#failed(answer.id)
      else if (answer.kind === 'hello') {
        late.cancel()
        socket.write(jsonLine({ kind: 'here', at: this.#own } satisfies Frame))
        this.#listeners = answer.listeners
        this.#told_lost = false
        this.#settle(true)
        this.#changed()
      }
    })
  }

  #heard(): void {
    this.#unheard?.cancel()
    this.#unheard = undefined
  }

  #failed(id: number): void {
    const failed = this.#open.get(id)
    this.#open.delete(id)
    failed?.(new Error('the connection is gone'))
  }

  #lost(): void {
    this.#socket = undefined
    this.#listeners = undefined
    this.#heard()
    this.#rests_until_ms = this.#clock.monotonic_ms() + REST_MS
    this.#settle(false)
    // What was sent may have arrived; what did not is repeated by its transaction, or times out.
    this.#open.clear()
    this.#changed()
  }

  #settle(up: boolean): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const then of waiting) then(up)
  }
}

import { hearPress, type Press, TONES_ECHO_MS } from '../../core/domain/calls/key-echo.ts'
import type { CodecName } from '../../core/domain/codecs/codec.ts'
import type { Settled } from '../../core/domain/codecs/negotiate.ts'
import { type Clock, iso } from '../../core/runtime/clock.ts'
import type { EngineEvent, PlayPiece, SampleRate, Stream } from '../../native/index.ts'
import type { DetectionSettings } from '../detect/answering-machine.ts'
import { Detection } from '../detect/detection.ts'
import type { Prompts } from '../files/prompts.ts'
import type { ConnectWebSocket } from '../forks/connect.ts'
import { Copy } from '../forks/copy.ts'
import { type ForkRequest, MediaStream } from '../forks/media-stream.ts'
import type { LegPolicy, LegStats, PlaySource, MediaEvent as ProtocolEvent } from '../protocol/schema.ts'
import { legStats } from '../quality/leg-stats.ts'
import { readVoipMetrics, type VoipMetrics } from '../quality/xr.ts'
import { Relay } from '../relay/session.ts'
import type { RelayRequest } from '../relay/types.ts'
import { Recognition, type RecognizeRequest } from '../speech/recognition.ts'
import type { Recognizer } from '../speech/recognizer.ts'
import type { BrowserState, BrowserTransport } from '../webrtc/browser-transport.ts'
import type { PreparedBrowser } from '../webrtc/browser-transports.ts'
import type { Conferences } from './conferences.ts'
import type { Negotiation } from './negotiation.ts'
import { Notice } from './notice.ts'
import { browserStreamDescription, promptRate, streamDescription } from './plan.ts'
import { Player } from './player.ts'

type KeySource = 'rfc4733' | 'inband'

interface LegOptions {
  readonly id: string
  readonly session_id: string
  /** The project whose share of decoding and speech the prompts use. */
  readonly owner: string
  readonly stream: Stream
  readonly policy: LegPolicy
  readonly negotiation: Negotiation
  readonly prompts: Prompts
  readonly clock: Clock
  readonly connectWebSocket: ConnectWebSocket
  /** Connects to where the control plane takes what listeners hear. */
  readonly connectListener: ConnectWebSocket
  readonly conferences: Conferences
  /** Returns a new id for the data plane, unique among all legs. */
  readonly nativeId: () => string
  /** Null unless the leg is a browser's. */
  readonly browser: PreparedBrowser | null
  readonly emit: (event: ProtocolEvent) => void
}

/** How a stream of the platform itself differs from one of a program. */
interface ForkWatch {
  readonly connect: ConnectWebSocket
  readonly started: () => void
  readonly ended: () => void
}

/** The most notes on the SDP of one leg. */
const MAX_NOTES = 60
/** The most changes of codec that one leg keeps. */
const MAX_CODECS = 32

/** One side of a call: its SDP, the stream that the SDP describes, and what is played to it. */
export class MediaLeg {
  readonly id: string
  readonly session_id: string
  readonly owner: string
  readonly stream: Stream
  readonly policy: LegPolicy
  readonly negotiation: Negotiation
  readonly player: Player
  readonly #options: LegOptions
  readonly #browser: BrowserTransport | null
  #browserState: BrowserState | null = null
  readonly #emit: (event: ProtocolEvent) => void
  readonly #forks = new Map<string, MediaStream>()
  readonly #copies = new Map<MediaLeg, Copy>()
  /** The legs whose copies go to this one. */
  readonly #copied = new Set<MediaLeg>()
  /** The listeners of the platform among the forks. */
  readonly listeners = new Set<string>()
  /** The notices of those who listen to this leg. */
  readonly #notices = new Set<Notice<MediaLeg>>()
  readonly #recognitions = new Map<string, Recognition>()
  #detection: Detection | null = null
  #relay: { readonly id: string; readonly session: Relay } | null = null
  readonly #noted = new Set<string>()
  /** The codecs of this leg, each with the time from which it held. */
  readonly #codecs: { codec: CodecName; from: string }[] = []
  readonly #sends = new Map<string, string>()
  #next_send = 1
  /** Recent keys that may still arrive a second time by the other method (RFC 4733 or in-band). */
  #pressed: readonly Press<KeySource>[] = []
  /** Whether in-band detection was requested. Null enables it only when keys can arrive by no other method. */
  #inband: boolean | null = null
  #listening = false
  #voice = false
  #linked: MediaLeg | null = null
  #latched: { address: string; port: number } | null = null
  #voipMetrics: VoipMetrics | null = null

  constructor(options: LegOptions) {
    this.id = options.id
    this.session_id = options.session_id
    this.owner = options.owner
    this.stream = options.stream
    this.policy = options.policy
    this.negotiation = options.negotiation
    this.#options = options
    this.#browser = this.#openBrowser(options)
    this.#emit = options.emit
    this.player = new Player(options.stream, options.prompts, options.owner, ended =>
      options.emit({ event: 'play.ended', leg_id: options.id, ...ended }),
    )
  }

  get codec(): CodecName | null {
    return this.negotiation.settled?.codec ?? null
  }

  /** Applies the settled offer and answer to the stream. A changed address unlatches it. */
  apply(settled: Settled | null): void {
    if (!settled) return
    this.#settled(settled.codec)
    this.#listen()
    if (!this.#browser) {
      this.stream.describe(streamDescription(settled))
      return
    }
    if (settled.dtls) this.#browser.setRemote(settled.dtls)
    this.stream.describe(browserStreamDescription(settled, this.#browserState))
  }

  #settled(codec: CodecName): void {
    if (this.#codecs.at(-1)?.codec === codec || this.#codecs.length >= MAX_CODECS) return
    this.#codecs.push({ codec, from: iso(this.#options.clock.now()) })
  }

  /** Tells what the reader of SDP forgave; each thing once. */
  noteSdp(): void {
    const notes = this.negotiation.noted.filter(note => !this.#noted.has(note))
    if (notes.length === 0 || this.#noted.size + notes.length > MAX_NOTES) return
    for (const note of notes) this.#noted.add(note)
    this.#emit({ event: 'leg.sdp_notes', leg_id: this.id, notes })
  }

  /** Records that this leg is bridged with another. Earlier bridges of both end. */
  link(other: MediaLeg): void {
    this.unlink()
    other.unlink()
    this.#linked = other
    other.#linked = this
    this.#listen()
    other.#listen()
    // Legs are linked in early media and again by the answer: while it rings, nobody is there to hear a sentence.
    for (const notice of this.#notices) notice.forget(other)
    for (const notice of other.#notices) notice.forget(this)
    this.partiesChanged()
    other.partiesChanged()
  }

  unlink(): void {
    const other = this.#linked
    this.#linked = null
    if (other) {
      other.#linked = null
      other.#listen()
    }
    this.#listen()
  }

  detectInband(enabled: boolean): void {
    this.#inband = enabled
    this.#listen()
  }

  detectVoice(enabled: boolean): void {
    this.#voice = enabled
    if (!this.stream.closed) this.stream.detect({ inband_keys: this.#listening, voice: enabled })
  }

  sendDigits(send_id: string, digits: string): void {
    const native_id = `d${this.#next_send++}`
    this.#sends.set(native_id, send_id)
    this.stream.sendKeys(native_id, digits, { on_ms: 100, gap_ms: 100 })
  }

  /** Takes a key that came by SIP INFO, perhaps also in the media. */
  hearKey(digit: string): void {
    if (!this.stream.closed) this.stream.hearKey(digit)
  }

  get forks(): ReadonlyMap<string, MediaStream> {
    return this.#forks
  }

  /** Sounds to this leg before all else. */
  announce(samples: Int16Array, rate_hz: SampleRate): void {
    if (!this.stream.closed) this.stream.announce(samples, rate_hz)
  }

  /** Others may hear this leg, or it others. */
  partiesChanged(): void {
    for (const notice of this.#notices) notice.tellNewcomers()
  }

  /** Returns what is said; null when it cannot be. */
  async speech(source: PlaySource): Promise<readonly PlayPiece[] | null> {
    const { settled } = this.negotiation
    if (!settled) return null
    const loaded = await this.#options.prompts.load(source, promptRate(settled), this.owner)
    return 'pieces' in loaded ? loaded.pieces : null
  }

  /** Streams the leg to a listener of the platform, and tells all who hear it or are heard by it. */
  startListening(request: ForkRequest, spoken: readonly PlayPiece[] | null): void {
    const { clock, conferences, connectListener } = this.#options
    const parties = () => new Set([this, ...(this.#linked ? [this.#linked] : []), ...conferences.around(this)])
    const notice = new Notice<MediaLeg>(spoken, parties)
    this.listeners.add(request.fork_id)
    this.startFork(request, {
      connect: connectListener,
      started: () => {
        this.#notices.add(notice)
        notice.begin(clock)
      },
      ended: () => {
        this.listeners.delete(request.fork_id)
        this.#notices.delete(notice)
        notice.end()
      },
    })
  }

  startFork(request: ForkRequest, { connect, started, ended }: Partial<ForkWatch> = {}): void {
    const { fork_id } = request
    const about = { leg_id: this.id, fork_id }
    const fork = new MediaStream({
      request,
      stream: this.stream,
      clock: this.#options.clock,
      tap_prefix: this.#options.nativeId(),
      connect: connect ?? this.#options.connectWebSocket,
      started: () => {
        started?.()
        this.#emit({ event: 'fork.started', ...about })
      },
      warned: (code, detail) => this.#emit({ event: 'fork.warning', ...about, code, detail }),
      ended: (reason, error_code, detail) => {
        this.#forks.delete(fork_id)
        ended?.()
        this.#emit({ event: 'fork.ended', ...about, reason, error_code, detail })
      },
    })
    this.#forks.set(fork_id, fork)
  }

  stopFork(fork_id: string): void {
    this.#forks.get(fork_id)?.stop('stopped')
  }

  /** Whether the leg is in the hands of a relay application. */
  get relay(): boolean {
    return this.#relay !== null
  }

  startRelay(request: RelayRequest, recognizer: Recognizer | null): void {
    const { nativeId, clock, connectWebSocket, prompts, owner } = this.#options
    const about = { leg_id: this.id, relay_id: request.relay_id }
    const session = new Relay({
      request,
      recognizer,
      clock,
      stream: this.stream,
      tap_prefix: nativeId(),
      connect: connectWebSocket,
      load: source => {
        const { settled } = this.negotiation
        if (!settled) return Promise.reject(new Error('the leg has no settled offer and answer'))
        return prompts.load(source, promptRate(settled), owner)
      },
      sendDigits: digits => this.sendDigits(request.relay_id, digits),
      warned: (code, detail) => this.#emit({ event: 'relay.warning', ...about, code, detail }),
      turn: figures => this.#emit({ event: 'relay.turn', ...about, ...figures }),
      ended: end => {
        this.#relay = null
        this.#emit({ event: 'relay.ended', ...about, ...end })
      },
    })
    this.#relay = { id: request.relay_id, session }
  }

  stopRelay(relay_id: string): void {
    if (this.#relay?.id === relay_id) this.#relay.session.stop()
  }

  get copies(): ReadonlyMap<MediaLeg, Copy> {
    return this.#copies
  }

  copyTo(other: MediaLeg, what: 'received' | 'sent'): void {
    this.#endCopy(other)
    this.#copies.set(other, new Copy(this.stream, other.stream, this.#options.nativeId(), what))
    other.#copied.add(this)
  }

  #endCopy(other: MediaLeg): void {
    this.#copies.get(other)?.stop()
    this.#copies.delete(other)
    other.#copied.delete(this)
  }

  get recognitions(): ReadonlyMap<string, Recognition> {
    return this.#recognitions
  }

  recognize(request: RecognizeRequest, recognizer: Recognizer): void {
    const about = { leg_id: this.id, recognize_id: request.recognize_id }
    const { nativeId, clock } = this.#options
    let over = false
    const recognition = new Recognition({
      request,
      recognizer,
      clock,
      stream: this.stream,
      tap_prefix: nativeId(),
      started: track => this.#emit({ event: 'recognize.started', ...about, track }),
      heard: result => this.#emit({ event: 'recognize.result', ...about, ...result }),
      warned: detail => this.#emit({ event: 'recognize.warning', ...about, detail }),
      ended: fault => {
        over = true
        this.#recognitions.delete(request.recognize_id)
        this.#emit({ event: 'recognize.ended', ...about, fault })
      },
    })
    if (!over) this.#recognitions.set(request.recognize_id, recognition)
  }

  get detecting(): boolean {
    return this.#detection !== null
  }

  /** Starts answering-machine detection. */
  startDetection(settings: DetectionSettings): void {
    const { nativeId, clock } = this.#options
    this.#detection = new Detection(this.stream, nativeId(), settings, clock, verdict => {
      this.#detection = null
      this.#emit({ event: 'amd.result', leg_id: this.id, ...verdict, evidence: [...verdict.evidence] })
    })
  }

  /**
   * Plays a short sound and stops the current play. `done` is called when the sound ends for any reason.
   */
  beep(piece: PlayPiece, done: () => void): void {
    this.player.sound(piece, done)
  }

  onNative(event: EngineEvent): void {
    const leg_id = this.id
    if (event.type === 'latched') {
      this.#latched = { address: event.address, port: event.port }
      this.#emit({ event: 'leg.latched', leg_id, address: event.address, port: event.port })
    } else if (event.type === 'first_packet') this.#emit({ event: 'leg.first_packet', leg_id })
    else if (event.type === 'silent') this.#emit({ event: 'leg.silent', leg_id, for_ms: event.for_ms })
    else if (event.type === 'srtp_failed') this.#emit({ event: 'leg.srtp_failed', leg_id })
    else if (event.type === 'key') this.#key(event)
    else if (event.type === 'play_ended') this.player.pieceEnded(event)
    else if (event.type === 'digits_sent') this.#digitsSent(event.send_id)
    else if (event.type === 'raw') this.#browser?.receive(event.packet, { address: event.address, port: event.port })
    else if (event.type === 'voice') this.#emit({ event: 'leg.voice', leg_id, speaking: event.speaking })
    else if (event.type === 'tap') this.#tapped(event)
    else if (event.type === 'mark') this.#marked(event)
    else if (event.type === 'speech' || event.type === 'feed_cut') this.#relay?.session.onNative(event)
    else if (event.type === 'rtcp') this.#voipMetrics = readVoipMetrics(event.packet) ?? this.#voipMetrics
  }

  stats(): LegStats {
    return legStats(this.stream.stats(), {
      settled: this.negotiation.settled,
      codecs: this.#codecs,
      latched: this.#latched,
      voip_metrics: this.#voipMetrics,
      browser: this.#browserState,
    })
  }

  close(): LegStats {
    this.player.stop()
    this.unlink()
    this.#detection?.stop()
    this.#browser?.close()
    for (const fork of [...this.#forks.values()]) fork.stop('leg_closed')
    for (const recognition of [...this.#recognitions.values()]) recognition.stop()
    this.#relay?.session.stop()
    for (const other of this.#copies.keys()) this.#endCopy(other)
    for (const other of this.#copied) other.#endCopy(this)
    const stats = this.stats()
    this.stream.close()
    return stats
  }

  /**
   * Switches in-band detection of keys. It is on when requested, or when the peer has no telephone-event and the leg is
   * not bridged (voice-compat.md §12.2). In a bridge the other side handles in-band keys, and detection would cost
   * decoding.
   */
  #listen(): void {
    const { settled } = this.negotiation
    const alone = settled !== null && settled.telephone_event === null && this.#linked === null
    const wanted = this.#inband ?? alone
    if (wanted === this.#listening || this.stream.closed) return
    this.#listening = wanted
    this.stream.detect({ inband_keys: wanted, voice: this.#voice })
  }

  #openBrowser({ browser, stream }: LegOptions): BrowserTransport | null {
    if (!browser) return null
    stream.takeRaw(true)
    return browser.open({
      send: (packet, path) => {
        if (!stream.closed) stream.sendRaw(packet, path.address, path.port)
      },
      onChange: state => {
        this.#browserState = state
        const { settled } = this.negotiation
        if (settled && !stream.closed) stream.describe(browserStreamDescription(settled, state))
      },
      onProved: paths => {
        if (!stream.closed) stream.prove(paths)
      },
      onSilent: for_ms =>
        this.#emit({ event: 'leg.silent', leg_id: this.id, for_ms: Math.round(for_ms), no_consent: true }),
      onFailed: () => this.#emit({ event: 'leg.srtp_failed', leg_id: this.id }),
    })
  }

  #tapped(event: Extract<EngineEvent, { type: 'tap' }>): void {
    if (this.#detection?.onTap(event) || this.#relay?.session.onNative(event)) return
    for (const recognition of this.#recognitions.values()) if (recognition.onTap(event)) return
    for (const copy of this.#copies.values()) if (copy.onTap(event)) return
    for (const fork of this.#forks.values()) if (fork.onNative(event)) return
  }

  #marked(event: Extract<EngineEvent, { type: 'mark' }>): void {
    if (this.#relay?.session.onNative(event)) return
    for (const fork of this.#forks.values()) if (fork.onNative(event)) return
  }

  #digitsSent(native_id: string): void {
    const send_id = this.#sends.get(native_id)
    this.#sends.delete(native_id)
    if (send_id !== undefined) this.#emit({ event: 'digits.sent', leg_id: this.id, send_id })
  }

  #key({ digit, duration_ms, source, heard_ms, echo }: Extract<EngineEvent, { type: 'key' }>): void {
    // Signaling knows the keys of INFO, and judges by itself which of two ways was the first.
    if (source !== 'info') {
      const press = { digit, way: source, held_ms: duration_ms, at_ms: heard_ms }
      const { isNew, pending } = hearPress(this.#pressed, press, TONES_ECHO_MS)
      this.#pressed = pending
      if (!isNew) return
      this.#emit({ event: 'dtmf', leg_id: this.id, digit, duration_ms, source })
    }
    if (echo) return
    for (const fork of this.#forks.values()) fork.key(digit)
    this.#relay?.session.key(digit)
  }
}

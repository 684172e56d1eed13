// The only door to the C++ media data plane: everything JavaScript may ask of it, typed and argument-checked.
// No packet of a relayed or transcoded call passes through here; commands go in, events and counters come out.
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { isIP } from 'node:net'
import { fileURLToPath } from 'node:url'
import {
  checkAddress,
  checkCidrs,
  checkDescription,
  checkInteger,
  checkPcm,
  checkPlay,
  checkRate,
  checkRecording,
} from './check.ts'

/** Sample rates in which PCM may be handed over, Hz. */
export type SampleRate = 8000 | 16000 | 24000 | 48000

/** Codecs whose audio the engine can decode and encode; any other name can still be relayed byte for byte. */
export type AudioCodec = 'PCMU' | 'PCMA' | 'G722' | 'G729' | 'OPUS'

/** SDES suites of RFC 4568, RFC 6188 and RFC 7714. */
export type SrtpSuite =
  | 'AES_CM_128_HMAC_SHA1_80'
  | 'AES_CM_128_HMAC_SHA1_32'
  | 'AES_256_CM_HMAC_SHA1_80'
  | 'AES_256_CM_HMAC_SHA1_32'
  | 'AEAD_AES_128_GCM'
  | 'AEAD_AES_256_GCM'

export type Direction = 'sendrecv' | 'sendonly' | 'recvonly' | 'inactive'

export interface EngineOptions {
  /** Packet threads, 1 to 64. A session lives on one of them, the least loaded at its opening. */
  readonly threads: number
  /** Address that media sockets are bound to: an IPv4 or IPv6 literal, such as '0.0.0.0'. */
  readonly bind_address: string
  /** Even port of the first pair and the last port that may be used, both inclusive; 0,0 lets the system choose pairs. */
  readonly port_min: number
  readonly port_max: number
  /** How long a pair of ports rests after its stream was closed (design section 5: 30 s). */
  readonly quarantine_ms: number
  /** Networks to which nothing is sent and from which nothing is accepted (RTPbleed and loop protection). */
  readonly denied?: readonly string[]
  /** Least time between two wake-ups of a packet thread, 0 to 1000 microseconds; 1000 halves the CPU at low load. */
  readonly coalesce_us?: number
  /** Events that may wait for JavaScript before new ones are dropped and counted. */
  readonly event_queue?: number
  /** Open the G.729 codec at run time when the machine has libbcg729-0 (GPL-3, never linked). */
  readonly g729?: boolean
  /** Opus encoder complexity, 0 to 10. */
  readonly opus_complexity?: number
}

export interface EngineFeatures {
  /** Codecs that can be transcoded; relay is possible for all. */
  readonly codecs: AudioCodec[]
  readonly srtp_suites: SrtpSuite[]
}

/** Who may send to a stream (design section 4). Fixed when the stream is opened. */
export interface StreamPolicy {
  /** strict: only the signalled address and `sources`; relaxed: symmetric RTP in the order of trust of design section 4. */
  readonly validation: 'strict' | 'relaxed'
  /** CIDRs of the peer's configured sources. */
  readonly sources: readonly string[]
  /** Address from which the peer's SIP came, or null. */
  readonly signalled_from: string | null
}

/** One payload type as negotiated. */
export interface PayloadType {
  readonly payload_type: number
  /** Encoding name as in SDP, upper case. */
  readonly codec: string
  /** RTP clock rate, Hz (G722: 8000, OPUS: 48000). */
  readonly clock_rate: number
}

/** What we send. */
export interface SendCodec extends PayloadType {
  /** Milliseconds of audio for each packet, 10 to 60 in tens. Relay keeps the sender's packets whatever is said here. */
  readonly ptime_ms: number
  /** Payload type of comfort noise (RFC 3389) that the peer takes, or null. */
  readonly comfort_noise?: number | null
  /** Opus: in-band FEC, discontinuous transmission, bits a second. */
  readonly fec?: boolean
  readonly dtx?: boolean
  readonly bitrate?: number
  /** G.729: may Annex B silence frames be sent. */
  readonly annexb?: boolean
}

export interface SrtpKeys {
  readonly suite: SrtpSuite
  /** Master key and salt with which the peer sends (decoded from its crypto line). */
  readonly receive_key: Uint8Array
  /** Master key and salt with which we send; never equal to the peer's. */
  readonly send_key: Uint8Array
}

/** The settled state of a stream: the whole is given anew at each change; what did not change goes on undisturbed. */
export interface StreamDescription {
  /** Where the peer said it listens; null until its SDP is known. A changed address or port unlatches the stream. */
  readonly remote: { readonly address: string; readonly rtp_port: number; readonly rtcp_port?: number | null } | null
  /** RTP and RTCP on one port (RFC 5761). */
  readonly rtcp_mux?: boolean
  /** As seen from us: 'recvonly' sends nothing but RTCP. */
  readonly direction: Direction
  /** Payload types that the peer may send (telephone-event and comfort noise left out). */
  readonly receive: readonly PayloadType[]
  readonly send: SendCodec | null
  /** Payload types of telephone-event that the peer may send, and the one that it takes. */
  readonly telephone_event?: { readonly receive: readonly PayloadType[]; readonly send: PayloadType | null }
  /** Payload types of comfort noise that the peer may send. */
  readonly comfort_noise?: readonly number[]
  /** null: plain RTP. With keys no plain packet is accepted. A changed key re-keys at once. */
  readonly srtp: SrtpKeys | null
}

/** A piece of audio to be played. PCM is mono int16. */
export type PlayPiece =
  | { readonly kind: 'pcm'; readonly samples: Int16Array; readonly rate_hz: SampleRate }
  | {
      readonly kind: 'tone'
      /** Up to four frequencies sounding together, Hz. */
      readonly hz: readonly number[]
      readonly on_ms: number
      readonly off_ms: number
      /** null: for ever. */
      readonly total_ms: number | null
      /** dBm0 of each frequency; -13 when absent. */
      readonly level_dbm0?: number
    }
  | { readonly kind: 'silence'; readonly ms: number }

export interface PlayOptions {
  /** Name of the play in its events; 1 to 64 characters. */
  readonly play_id: string
  readonly pieces: readonly PlayPiece[]
  /** Times that the pieces are played; 0 for ever. */
  readonly loop?: number
}

export type RecordEnd = 'stopped' | 'silence' | 'key' | 'max_length' | 'leg_closed' | 'disk_full' | 'failed'

export interface RecordOptions {
  readonly recording_id: string
  /** Absolute path of the WAV file to be made; its folder exists. */
  readonly file: string
  /** 2: left channel = received from `left`, right = received from `right`, or what is sent to `left` when `right` is null. 1: a mix. */
  readonly channels: 1 | 2
  readonly left: Stream
  readonly right: Stream | null
  /** Mono only: 'received' takes what comes from `left` (and `right`), 'both' also what is sent to `left`. */
  readonly what?: 'received' | 'both'
  readonly rate_hz?: 8000 | 16000
  readonly max_ms?: number | null
  /** Ends after so much silence on `left`; null never. */
  readonly silence_ms?: number | null
  /** Keys from `left` that end the recording. */
  readonly finish_keys?: string
  /** Cut silence at both ends. */
  readonly trim?: boolean
}

export interface ConferenceJoin {
  readonly muted?: boolean
  /** Hears nothing of the others (hold). */
  readonly deaf?: boolean
}

export interface TapOptions {
  readonly tap_id: string
  /** 'received': from the peer, 'sent': to the peer. */
  readonly what: 'received' | 'sent'
  readonly rate_hz: 8000 | 16000
  /** Milliseconds of audio for each event, 20 to 200 in twenties. */
  readonly chunk_ms?: number
}

/** Events of the data plane. Times (`at_ms`) are milliseconds since the epoch. */
export type MediaEvent =
  | { readonly type: 'latched'; readonly stream_id: number; readonly address: string; readonly port: number }
  | { readonly type: 'first_packet'; readonly stream_id: number; readonly at_ms: number }
  /** Repeated each 10 s while nothing is received that may be. */
  | { readonly type: 'silent'; readonly stream_id: number; readonly for_ms: number }
  /** SRTP is required and for 5 s nothing but packets that do not authenticate came. */
  | { readonly type: 'srtp_failed'; readonly stream_id: number }
  | {
      readonly type: 'key'
      readonly stream_id: number
      readonly digit: string
      readonly duration_ms: number
      readonly source: 'rfc4733' | 'inband'
    }
  | {
      readonly type: 'play_ended'
      readonly stream_id: number
      readonly play_id: string
      readonly reason: 'finished' | 'stopped' | 'closed'
      readonly played_ms: number
    }
  /** Audio of a feed up to this mark was sent, or the feed was cleared. */
  | { readonly type: 'mark'; readonly stream_id: number; readonly name: string }
  | { readonly type: 'digits_sent'; readonly stream_id: number; readonly send_id: string; readonly sent: boolean }
  | {
      readonly type: 'record_ended'
      readonly recording_id: string
      readonly reason: RecordEnd
      readonly key: string
      readonly detail: string
      readonly duration_ms: number
      readonly bytes: number
      readonly sha256: string
      /** Nothing was received from the recorded legs. */
      readonly empty: boolean
    }
  /** A valid (and, on SRTP, authenticated) RTCP packet for the slow path. */
  | { readonly type: 'rtcp'; readonly stream_id: number; readonly packet: Buffer }
  /** Speech began or ended, `lasted_ms` is the length of the segment that ended. */
  | { readonly type: 'voice'; readonly stream_id: number; readonly speaking: boolean; readonly lasted_ms: number }
  | { readonly type: 'tone'; readonly stream_id: number; readonly tone: 'cng' | 'ced' }
  | {
      readonly type: 'tap'
      readonly stream_id: number
      readonly tap_id: string
      readonly samples: Int16Array
      /** Since the tap began, ms. */
      readonly offset_ms: number
    }
  /** A datagram that is STUN or DTLS, of a stream that takes them. */
  | {
      readonly type: 'raw'
      readonly stream_id: number
      readonly packet: Buffer
      readonly address: string
      readonly port: number
    }
  /** So many events were dropped because JavaScript did not take them in time. */
  | { readonly type: 'events_lost'; readonly count: number }

export interface StreamStats {
  readonly packets_received: number
  readonly bytes_received: number
  readonly packets_sent: number
  readonly bytes_sent: number
  /** RFC 3550 cumulative loss of what we received, never negative. */
  readonly packets_lost: number
  readonly packets_duplicate: number
  readonly packets_reordered: number
  /** Losses of more than one packet in a row, and the longest. */
  readonly loss_bursts: number
  readonly longest_burst: number
  readonly jitter_ms: number
  readonly jitter_max_ms: number
  /** From the peer's receiver reports; null before the first. */
  readonly rtt_ms: number | null
  readonly remote_fraction_lost: number | null
  readonly remote_packets_lost: number | null
  readonly remote_jitter_ms: number | null
  /** Milliseconds since the epoch, null before the first. */
  readonly first_packet_at: number | null
  readonly last_packet_at: number | null
  readonly strangers_dropped: number
  readonly malformed_dropped: number
  readonly policed_dropped: number
  readonly unexpected_dropped: number
  readonly srtp_auth_failed: number
  readonly srtp_replayed: number
  readonly ssrc_changes: number
  readonly keys_received: number
  readonly send_failed: number
  readonly rtcp_received: number
  readonly rtcp_sent: number
  /** Jitter buffer, only where audio is decoded. */
  readonly concealed_frames: number
  readonly late_frames: number
  readonly jitter_buffer_ms: number
  /** Codec of the last packet received and sent; '' before the first. */
  readonly receive_codec: string
  readonly send_codec: string
  readonly latched: boolean
}

export interface ThreadStats {
  readonly thread: number
  readonly streams: number
  readonly packets_received: number
  readonly packets_sent: number
  readonly wakeups: number
  readonly cpu_seconds: number
  /** Times that a tick of a clocked source came more than 5 ms late. */
  readonly late_ticks: number
}

export interface EngineStats {
  readonly threads: ThreadStats[]
  readonly ports_in_use: number
  readonly ports_quarantined: number
  readonly ports_total: number
  readonly events_lost: number
  readonly recordings: number
  readonly recording_packets_dropped: number
}

/** What the add-on itself offers: numbers and checked values only. Not for use outside this file. */
interface NativeEngine {
  openSession(): number
  closeSession(session: number): void
  openStream(session: number, policy: StreamPolicy): { id: number; rtp_port: number; rtcp_port: number } | null
  closeStream(stream: number): void
  describe(stream: number, description: StreamDescription): void
  bridge(a: number, b: number): void
  unbridge(a: number): void
  relayKeys(stream: number, enabled: boolean): void
  play(stream: number, play: PlayOptions): void
  stopPlay(stream: number, playId: string): void
  feed(stream: number, samples: Int16Array, rateHz: number): number
  feedMark(stream: number, name: string): void
  feedClear(stream: number): void
  sendKeys(stream: number, sendId: string, digits: string, onMs: number, gapMs: number): void
  detect(stream: number, inband: boolean, voice: boolean, tones: boolean): void
  tap(stream: number, tapId: string, sent: boolean, rateHz: number, chunkMs: number): void
  untap(stream: number, tapId: string): void
  record(options: object): void
  stopRecord(recordingId: string): void
  pauseRecord(recordingId: string, paused: boolean): void
  openConference(rateHz: number): number
  closeConference(conference: number): void
  joinConference(conference: number, stream: number, muted: boolean, deaf: boolean): void
  leaveConference(stream: number): void
  sendRtcp(stream: number, packet: Uint8Array): void
  takeRaw(stream: number, enabled: boolean): void
  sendRaw(stream: number, packet: Uint8Array, address: string, port: number): void
  streamStats(stream: number): StreamStats | null
  stats(): EngineStats
  close(): void
}

interface Addon {
  createEngine(options: Required<EngineOptions>, onEvents: (events: MediaEvent[]) => void): NativeEngine
  features(g729: boolean): EngineFeatures
  resample(samples: Int16Array, fromHz: number, toHz: number): Int16Array
  encodeTest(codec: string, samples: Int16Array): Buffer
  decodeTest(codec: string, payload: Uint8Array): Int16Array
}

/** One RTP stream of a leg: a pair of ports, what comes in on them and what goes out. Ends with `close` or its session. */
export class Stream {
  readonly id: number
  readonly rtp_port: number
  readonly rtcp_port: number
  readonly #engine: NativeEngine
  #last: StreamStats | null = null
  #closed = false

  /** Made by `Session.openStream` only. */
  constructor(engine: NativeEngine, opened: { id: number; rtp_port: number; rtcp_port: number }) {
    this.#engine = engine
    this.id = opened.id
    this.rtp_port = opened.rtp_port
    this.rtcp_port = opened.rtcp_port
  }

  get closed(): boolean {
    return this.#closed
  }

  /** Puts the settled state of offer and answer into effect. */
  describe(description: StreamDescription): void {
    this.#engine.describe(this.id, checkDescription(description))
  }

  /** Whether keys (RFC 4733) of this stream pass on to the stream that it is bridged with; true at first. */
  relayKeys(enabled: boolean): void {
    this.#engine.relayKeys(this.id, enabled)
  }

  /** Plays to this stream in place of what its bridge or conference sends. A running play is stopped first. */
  play(options: PlayOptions): void {
    this.#engine.play(this.id, checkPlay(options))
  }

  /** Stops the play of that name, or any when none is given. */
  stopPlay(play_id = ''): void {
    this.#engine.stopPlay(this.id, play_id)
  }

  /**
   * Appends PCM to the live feed of this stream (media streams from a WebSocket); while the feed holds audio it replaces the bridge.
   * Up to 10 minutes are held. Returns the number of samples taken, fewer when the feed is full.
   */
  feed(samples: Int16Array, rate_hz: SampleRate): number {
    checkPcm(samples)
    checkRate(rate_hz)
    return this.#engine.feed(this.id, samples, rate_hz)
  }

  /** Event 'mark' follows when all that was fed before was sent. */
  feedMark(name: string): void {
    this.#engine.feedMark(this.id, String(name))
  }

  /** Throws away what was fed and not yet sent; its marks are reported at once. */
  feedClear(): void {
    this.#engine.feedClear(this.id)
  }

  /** Sends keys as RFC 4733, or as in-band tones where the peer takes none. `digits`: 0-9 A-D * # and w (0.5 s), W (1 s). */
  sendKeys(send_id: string, digits: string, options: { readonly on_ms?: number; readonly gap_ms?: number } = {}): void {
    if (!/^[0-9A-Da-d*#wW]{1,256}$/.test(digits)) throw new TypeError('digits: 1 to 256 of 0-9 A-D * # w W')
    const on_ms = checkInteger('on_ms', options.on_ms ?? 160, 40, 5000)
    const gap_ms = checkInteger('gap_ms', options.gap_ms ?? 100, 40, 5000)
    this.#engine.sendKeys(this.id, String(send_id), digits, on_ms, gap_ms)
  }

  /** What to look for in the received audio; each costs decoding, so ask for no more than is needed. */
  detect(what: { readonly inband_keys?: boolean; readonly voice?: boolean; readonly fax_tones?: boolean }): void {
    this.#engine.detect(this.id, what.inband_keys ?? false, what.voice ?? false, what.fax_tones ?? false)
  }

  /** Hands PCM to JavaScript by 'tap' events until `untap` or the end of the stream. */
  tap(options: TapOptions): void {
    const chunk_ms = checkInteger('chunk_ms', options.chunk_ms ?? 20, 20, 200)
    if (chunk_ms % 20 !== 0) throw new TypeError('chunk_ms: a multiple of 20')
    this.#engine.tap(this.id, String(options.tap_id), options.what === 'sent', checkRate(options.rate_hz), chunk_ms)
  }

  untap(tap_id: string): void {
    this.#engine.untap(this.id, String(tap_id))
  }

  /** Sends an RTCP packet that JavaScript composed (XR); SR, RR, SDES and BYE are the data plane's own. */
  sendRtcp(packet: Uint8Array): void {
    if (packet.byteLength < 8 || packet.byteLength > 1200) throw new TypeError('packet: 8 to 1200 bytes')
    this.#engine.sendRtcp(this.id, packet)
  }

  /** While enabled, STUN and DTLS on the RTP port (RFC 7983) come as 'raw' events, 200 a second at most, and are not malformed. */
  takeRaw(enabled: boolean): void {
    this.#engine.takeRaw(this.id, enabled)
  }

  /** Sends one datagram from the RTP port: STUN and DTLS of a browser's leg. */
  sendRaw(packet: Uint8Array, address: string, port: number): void {
    if (packet.byteLength < 1 || packet.byteLength > 2048) throw new TypeError('packet: 1 to 2048 bytes')
    checkAddress('address', address)
    this.#engine.sendRaw(this.id, packet, address, checkInteger('port', port, 1, 65535))
  }

  /** Counters, live; those of the last moment once closed. */
  stats(): StreamStats | null {
    const now = this.#closed ? null : this.#engine.streamStats(this.id)
    if (now) this.#last = now
    return this.#last
  }

  /** Sends RTCP BYE, closes the sockets and puts the ports into quarantine. Returns the last counters. */
  close(): StreamStats | null {
    if (this.#closed) return this.#last
    const last = this.stats()
    this.#closed = true
    this.#engine.closeStream(this.id)
    return last
  }
}

/** The streams of one call: all on one packet thread. */
export class Session {
  readonly id: number
  readonly #engine: NativeEngine
  readonly #streams = new Set<Stream>()
  #closed = false

  /** Made by `Engine.openSession` only. */
  constructor(engine: NativeEngine, id: number) {
    this.#engine = engine
    this.id = id
  }

  /** A stream with its pair of ports, bound on return; null when no port is left. */
  openStream(policy: StreamPolicy): Stream | null {
    if (this.#closed) throw new Error('the session is closed')
    checkCidrs('sources', policy.sources)
    if (policy.signalled_from !== null) checkAddress('signalled_from', policy.signalled_from)
    const opened = this.#engine.openStream(this.id, policy)
    if (!opened) return null
    const stream = new Stream(this.#engine, opened)
    this.#streams.add(stream)
    return stream
  }

  /** What each receives goes to the other: relayed where the codec is the same, transcoded otherwise. Ends earlier bridges of both. */
  bridge(a: Stream, b: Stream): void {
    if (a === b) throw new TypeError('a stream cannot be bridged with itself; use echo')
    if (!this.#streams.has(a) || !this.#streams.has(b)) throw new TypeError('both streams belong to this session')
    this.#engine.bridge(a.id, b.id)
  }

  /** What the stream receives goes back to it. */
  echo(stream: Stream): void {
    if (!this.#streams.has(stream)) throw new TypeError('the stream belongs to this session')
    this.#engine.bridge(stream.id, stream.id)
  }

  unbridge(stream: Stream): void {
    this.#engine.unbridge(stream.id)
  }

  /** Starts a recording; its end is told by a 'record_ended' event, exactly once. */
  record(options: RecordOptions): void {
    checkRecording(options)
    if (!this.#streams.has(options.left)) throw new TypeError('left belongs to this session')
    if (options.right && !this.#streams.has(options.right)) throw new TypeError('right belongs to this session')
    this.#engine.record({
      recording_id: options.recording_id,
      file: options.file,
      channels: options.channels,
      left: options.left.id,
      right: options.right ? options.right.id : 0,
      both: options.what === 'both',
      rate_hz: options.rate_hz ?? 8000,
      max_ms: options.max_ms ?? 0,
      silence_ms: options.silence_ms ?? 0,
      finish_keys: options.finish_keys ?? '',
      trim: options.trim ?? false,
    })
  }

  stopRecord(recording_id: string): void {
    this.#engine.stopRecord(recording_id)
  }

  /** While paused nothing is written and the file's time stands still. */
  pauseRecord(recording_id: string, paused: boolean): void {
    this.#engine.pauseRecord(recording_id, paused)
  }

  /** Closes all streams; recordings end with reason leg_closed. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    for (const stream of this.#streams) stream.close()
    this.#streams.clear()
    this.#engine.closeSession(this.id)
  }
}

/** A mix of up to 32 streams, of any sessions: each hears all others. */
export class Conference {
  readonly id: number
  readonly #engine: NativeEngine

  /** Made by `Engine.openConference` only. */
  constructor(engine: NativeEngine, id: number) {
    this.#engine = engine
    this.id = id
  }

  /** Joins, or changes muted and deaf of a stream that is in. */
  join(stream: Stream, options: ConferenceJoin = {}): void {
    this.#engine.joinConference(this.id, stream.id, options.muted ?? false, options.deaf ?? false)
  }

  leave(stream: Stream): void {
    this.#engine.leaveConference(stream.id)
  }

  close(): void {
    this.#engine.closeConference(this.id)
  }
}

/** The data plane: its threads, ports and queues. One for each media worker process. */
export class Engine {
  readonly #native: NativeEngine
  #closed = false

  /** Made by `createEngine` only. */
  constructor(native: NativeEngine) {
    this.#native = native
  }

  openSession(): Session {
    return new Session(this.#native, this.#native.openSession())
  }

  openConference(rate_hz: 8000 | 16000 = 8000): Conference {
    return new Conference(this.#native, this.#native.openConference(rate_hz))
  }

  stats(): EngineStats {
    return this.#native.stats()
  }

  /** Ends everything: recordings are finalised before it returns, and no event follows. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#native.close()
  }
}

let addon: Addon | null = null

/** Loads the add-on that the set-up built. From build/native/index.js and from native/index.ts alike. */
function load(): Addon {
  if (addon) return addon
  const places = ['../../native/build/Release/media.node', './build/Release/media.node']
  const file = places.map(place => fileURLToPath(new URL(place, import.meta.url))).find(existsSync)
  if (!file) throw new Error('native/build/Release/media.node is missing: run `npm run setup`')
  addon = createRequire(import.meta.url)(file) as Addon
  return addon
}

/**
 * Starts the data plane.
 * @param onEvent called for each event, in order; it must not throw.
 */
export function createEngine(options: EngineOptions, onEvent: (event: MediaEvent) => void): Engine {
  if (isIP(options.bind_address) === 0) throw new TypeError('bind_address: an IP literal')
  const port_min = checkInteger('port_min', options.port_min, 0, 65534)
  const port_max = checkInteger('port_max', options.port_max, 0, 65535)
  if (port_max < port_min || (port_min === 0) !== (port_max === 0)) throw new TypeError('port_min, port_max: a range')
  checkCidrs('denied', options.denied ?? [])
  const native = load().createEngine(
    {
      threads: checkInteger('threads', options.threads, 1, 64),
      bind_address: options.bind_address,
      port_min,
      port_max,
      quarantine_ms: checkInteger('quarantine_ms', options.quarantine_ms, 0, 3_600_000),
      denied: options.denied ?? [],
      coalesce_us: checkInteger('coalesce_us', options.coalesce_us ?? 1000, 0, 1000),
      event_queue: checkInteger('event_queue', options.event_queue ?? 16_384, 64, 1_048_576),
      g729: options.g729 ?? true,
      opus_complexity: checkInteger('opus_complexity', options.opus_complexity ?? 5, 0, 10),
    },
    events => {
      for (const event of events) onEvent(event)
    },
  )
  return new Engine(native)
}

/** What this build on this machine can do. */
export function features(options: { readonly g729?: boolean } = {}): EngineFeatures {
  return load().features(options.g729 ?? true)
}

/** Converts mono PCM between any two rates from 4,000 to 192,000 Hz, at once (for files, not for live audio). */
export function resample(samples: Int16Array, from_hz: number, to_hz: number): Int16Array {
  checkPcm(samples)
  checkInteger('from_hz', from_hz, 4000, 192_000)
  checkInteger('to_hz', to_hz, 4000, 192_000)
  return from_hz === to_hz ? samples : load().resample(samples, from_hz, to_hz)
}

/** Encodes PCM at the codec's own rate (G722 16 kHz, OPUS 48 kHz, others 8 kHz), frame by frame of 20 ms: for tests and fixtures. */
export function encodeAll(codec: AudioCodec, samples: Int16Array): Buffer[] {
  checkPcm(samples)
  const frame = codec === 'OPUS' ? 960 : codec === 'G722' ? 320 : 160
  const packed = load().encodeTest(codec, samples.subarray(0, samples.length - (samples.length % frame)))
  const frames: Buffer[] = []
  // The add-on answers with frames, each after its length in two bytes.
  for (let at = 0; at + 2 <= packed.length; ) {
    const length = packed.readUInt16BE(at)
    frames.push(packed.subarray(at + 2, at + 2 + length))
    at += 2 + length
  }
  return frames
}

/** Decodes frames to PCM at the codec's own rate: for tests and fixtures. */
export function decodeAll(codec: AudioCodec, frames: readonly Uint8Array[]): Int16Array {
  const packed = Buffer.concat(
    frames.flatMap(frame => [Buffer.from([frame.byteLength >> 8, frame.byteLength & 255]), Buffer.from(frame)]),
  )
  return load().decodeTest(codec, packed)
}

// The typed API of the C++ media data plane, and the only way into it. Checks the arguments of every call.
// Commands go in; events and counters come out. Packets of relayed and transcoded calls never pass through JavaScript.
import { isIP } from 'node:net'
import { load, type NativeEngine } from './addon.ts'
import {
  checkAddress,
  checkCidrs,
  checkDescription,
  checkInteger,
  checkPcm,
  checkPlay,
  checkRate,
  checkRecording,
  checkSpeechWatch,
} from './check.ts'

import {
  type AudioCodec,
  CODEC_RATES,
  type ConferenceJoin,
  type ConferenceRecordOptions,
  type EngineEvent,
  type EngineFeatures,
  type EngineOptions,
  type EngineStats,
  type HeardFrame,
  type PlayOptions,
  type RecordOptions,
  type SampleRate,
  type SpeechWatchOptions,
  type StreamDescription,
  type StreamPolicy,
  type StreamStats,
  type TapOptions,
} from './types.ts'

export * from './types.ts'

/**
 * One RTP stream of a leg: a pair of ports, and the media that they receive and send. It ends with `close` or with its
 * session.
 */
export class Stream {
  readonly id: number
  readonly rtp_port: number
  readonly rtcp_port: number
  readonly #engine: NativeEngine
  #last: StreamStats | null = null
  #closed = false

  /** Use `Session.openStream`. */
  constructor(engine: NativeEngine, opened: { id: number; rtp_port: number; rtcp_port: number }) {
    this.#engine = engine
    this.id = opened.id
    this.rtp_port = opened.rtp_port
    this.rtcp_port = opened.rtcp_port
  }

  get closed(): boolean {
    return this.#closed
  }

  /** Applies the outcome of an offer/answer exchange. */
  describe(description: StreamDescription): void {
    this.#engine.describe(this.id, checkDescription(description))
  }

  /** Sets whether the bridge relays keys (RFC 4733) that this stream receives. True by default. */
  relayKeys(enabled: boolean): void {
    this.#engine.relayKeys(this.id, enabled)
  }

  /**
   * Takes a key that the peer sent by SIP INFO: it ends recordings, and a 'key' event reports it. A peer may send a key
   * in the media too. The one that comes second is its echo, which ends no recording; of an INFO it is not reported.
   */
  hearKey(digit: string): void {
    if (!/^[0-9A-D*#]$/.test(digit)) throw new TypeError('digit: one of 0-9 A-D * #')
    this.#engine.hearKey(this.id, digit)
  }

  /** Plays audio to this stream instead of its bridge or conference. Stops a running play first. */
  play(options: PlayOptions): void {
    this.#engine.play(this.id, checkPlay(options))
  }

  /** Stops the play of this id. An empty id stops any play. */
  stopPlay(play_id = ''): void {
    this.#engine.stopPlay(this.id, play_id)
  }

  /**
   * Appends PCM to the live feed of this stream (media streams from a WebSocket). While the feed holds audio, the feed
   * replaces the bridge. It drops what comes while it holds more than 40 minutes, or 60,000 pieces and marks. `yields`:
   * the voice of a peer whose speech is watched clears the feed while these samples play.
   */
  feed(samples: Int16Array, rate_hz: SampleRate, yields = false): void {
    checkPcm(samples)
    checkRate(rate_hz)
    this.#engine.feed(this.id, samples, rate_hz, yields)
  }

  /** Sends PCM to this stream before all else: a play waits meanwhile and then goes on, and a bridge is replaced. */
  announce(samples: Int16Array, rate_hz: SampleRate): void {
    checkPcm(samples)
    checkRate(rate_hz)
    this.#engine.announce(this.id, samples, rate_hz)
  }

  /** Requests a 'mark' event once all audio fed before the mark has been sent. */
  feedMark(name: string): void {
    this.#engine.feedMark(this.id, String(name))
  }

  /** Discards fed audio that has not been sent. Reports its marks at once. */
  feedClear(): void {
    this.#engine.feedClear(this.id)
  }

  /**
   * Sends keys as RFC 4733 events, or as in-band tones when the peer takes no events. `digits` holds 0-9 A-D * # and
   * the pauses w (0.5 s) and W (1 s).
   */
  sendKeys(send_id: string, digits: string, options: { readonly on_ms?: number; readonly gap_ms?: number } = {}): void {
    if (!/^[0-9A-Da-d*#wW]{1,500}$/.test(digits)) throw new TypeError('digits: 1 to 500 of 0-9 A-D * # w W')
    const on_ms = checkInteger('on_ms', options.on_ms ?? 160, 40, 5000)
    const gap_ms = checkInteger('gap_ms', options.gap_ms ?? 100, 40, 5000)
    this.#engine.sendKeys(this.id, String(send_id), digits, on_ms, gap_ms)
  }

  /** Sets what to detect in the received audio. Any detection makes the engine decode the stream. */
  detect(what: { readonly inband_keys?: boolean; readonly voice?: boolean; readonly fax_tones?: boolean }): void {
    this.#engine.detect(this.id, what.inband_keys ?? false, what.voice ?? false, what.fax_tones ?? false)
  }

  /** Reports the peer's speech in 'speech' events, and lets it stop what yields to it, until `unwatchSpeech`. */
  watchSpeech(options: SpeechWatchOptions): void {
    this.#engine.watchSpeech(this.id, ...checkSpeechWatch(options))
  }

  unwatchSpeech(): void {
    this.#engine.unwatchSpeech(this.id)
  }

  /** Copies the stream's PCM to JavaScript in 'tap' events until `untap` or the end of the stream. */
  tap(options: TapOptions): void {
    const chunk_ms = checkInteger('chunk_ms', options.chunk_ms ?? 20, 20, 200)
    if (chunk_ms % 20 !== 0) throw new TypeError('chunk_ms: a multiple of 20')
    const { tap_id, what, suppress_noise = false } = options
    const rate_hz = checkRate(options.rate_hz)
    if (suppress_noise && rate_hz !== 8000) throw new TypeError('suppress_noise: at 8000 Hz only')
    this.#engine.tap(this.id, String(tap_id), what === 'sent', rate_hz, chunk_ms, suppress_noise)
  }

  untap(tap_id: string): void {
    this.#engine.untap(this.id, String(tap_id))
  }

  /** Sends an RTCP packet that JavaScript composed (XR). The data plane itself sends SR, RR, SDES and BYE. */
  sendRtcp(packet: Uint8Array): void {
    if (packet.byteLength < 8 || packet.byteLength > 1200) throw new TypeError('packet: 8 to 1200 bytes')
    this.#engine.sendRtcp(this.id, packet)
  }

  /**
   * Sets whether STUN and DTLS packets on the RTP port (RFC 7983) become 'raw' events, at most 200 a second, instead of
   * counting as malformed.
   */
  takeRaw(enabled: boolean): void {
    this.#engine.takeRaw(this.id, enabled)
  }

  /**
   * Sets the addresses, at most 64, from which the peer may send besides its own: those that ICE checks have proved
   * before one is nominated (RFC 8445 §12.2).
   */
  prove(paths: readonly { readonly address: string; readonly port: number }[]): void {
    if (paths.length > 64) throw new TypeError('paths: at most 64')
    for (const { address, port } of paths) {
      checkAddress('address', address)
      checkInteger('port', port, 1, 65535)
    }
    this.#engine.prove(this.id, paths)
  }

  /** Sends one datagram from the RTP port: STUN or DTLS of a browser's leg. */
  sendRaw(packet: Uint8Array, address: string, port: number): void {
    if (packet.byteLength < 1 || packet.byteLength > 2048) throw new TypeError('packet: 1 to 2048 bytes')
    checkAddress('address', address)
    this.#engine.sendRaw(this.id, packet, address, checkInteger('port', port, 1, 65535))
  }

  /** Returns the current counters, or the last ones after `close`. */
  stats(): StreamStats | null {
    const now = this.#closed ? null : this.#engine.streamStats(this.id)
    if (now) this.#last = now
    return this.#last
  }

  /** Sends RTCP BYE, closes the sockets and quarantines the ports. Returns the last counters. */
  close(): StreamStats | null {
    if (this.#closed) return this.#last
    const last = this.stats()
    this.#closed = true
    this.#engine.closeStream(this.id)
    return last
  }
}

/** The streams of one call. One packet thread runs all of them. */
export class Session {
  readonly id: number
  readonly #engine: NativeEngine
  readonly #streams = new Set<Stream>()
  #closed = false

  /** Use `Engine.openSession`. */
  constructor(engine: NativeEngine, id: number) {
    this.#engine = engine
    this.id = id
  }

  /** Opens a stream and binds its pair of ports. Returns null when no pair is free. */
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

  /**
   * Sends to each stream what the other receives. The engine relays equal codecs and transcodes others. Ends earlier
   * bridges of both streams.
   */
  bridge(a: Stream, b: Stream): void {
    if (a === b) throw new TypeError('a stream cannot be bridged with itself; use echo')
    if (!this.#streams.has(a) || !this.#streams.has(b)) throw new TypeError('both streams belong to this session')
    this.#engine.bridge(a.id, b.id)
  }

  /** Sends back to the stream what it receives. */
  echo(stream: Stream): void {
    if (!this.#streams.has(stream)) throw new TypeError('the stream belongs to this session')
    this.#engine.bridge(stream.id, stream.id)
  }

  unbridge(stream: Stream): void {
    this.#engine.unbridge(stream.id)
  }

  /** Starts a recording. Exactly one 'record_ended' event reports its end. */
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
      sent_only: options.what === 'sent',
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

  /** Pauses or resumes a recording. The file has silence for a `silent` pause, and leaves out the time of any other. */
  pauseRecord(recording_id: string, paused: boolean, silent = false): void {
    this.#engine.pauseRecord(recording_id, paused, silent)
  }

  /** Closes all streams. Their recordings end with the reason leg_closed. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    for (const stream of this.#streams) stream.close()
    this.#streams.clear()
    this.#engine.closeSession(this.id)
  }
}

/** A mix of up to 250 streams of any sessions. Each stream hears all others. */
export class Conference {
  readonly id: number
  readonly #engine: NativeEngine
  readonly #rate_hz: 8000 | 16000

  /** Use `Engine.openConference`. */
  constructor(engine: NativeEngine, id: number, rate_hz: 8000 | 16000) {
    this.#engine = engine
    this.id = id
    this.#rate_hz = rate_hz
  }

  /** Adds a stream, or changes the options of one that has joined. */
  join(stream: Stream, options: ConferenceJoin = {}): void {
    const { muted = false, deaf = false, heard_by } = options
    this.#engine.joinConference(this.id, stream.id, muted, deaf, heard_by?.id ?? 0)
  }

  leave(stream: Stream): void {
    this.#engine.leaveConference(stream.id)
  }

  /** Starts a recording of the mix. Exactly one 'record_ended' event reports its end. */
  record(options: ConferenceRecordOptions): void {
    checkRecording(options)
    this.#engine.recordConference(this.id, {
      recording_id: options.recording_id,
      file: options.file,
      channels: options.channels,
      left: options.named?.id ?? 0,
      rate_hz: this.#rate_hz,
      max_ms: options.max_ms ?? 0,
      trim: options.trim ?? false,
    })
  }

  stopRecord(recording_id: string): void {
    this.#engine.stopRecord(recording_id)
  }

  /** Pauses or resumes a recording. The file has silence for a `silent` pause, and leaves out the time of any other. */
  pauseRecord(recording_id: string, paused: boolean, silent = false): void {
    this.#engine.pauseRecord(recording_id, paused, silent)
  }

  close(): void {
    this.#engine.closeConference(this.id)
  }
}

/** The data plane with its threads, ports and queues. A media worker process has one. */
export class Engine {
  readonly #native: NativeEngine
  #closed = false

  /** Use `createEngine`. */
  constructor(native: NativeEngine) {
    this.#native = native
  }

  openSession(): Session {
    return new Session(this.#native, this.#native.openSession())
  }

  openConference(rate_hz: 8000 | 16000 = 8000): Conference {
    return new Conference(this.#native, this.#native.openConference(rate_hz), rate_hz)
  }

  stats(): EngineStats {
    return this.#native.stats()
  }

  /** Stops the data plane. Finalises recordings before it returns. No event follows. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#native.close()
  }
}

/**
 * Starts the data plane.
 * @param onEvent receives each event, in order. It must not throw.
 */
export function createEngine(options: EngineOptions, onEvent: (event: EngineEvent) => void): Engine {
  const { bind_address, second_bind_address } = options
  if (isIP(bind_address) === 0) throw new TypeError('bind_address: an IP literal')
  if (second_bind_address !== undefined && isIP(bind_address) + isIP(second_bind_address) !== 10)
    throw new TypeError('second_bind_address: an IP literal of the other family')
  const port_min = checkInteger('port_min', options.port_min, 0, 65534)
  const port_max = checkInteger('port_max', options.port_max, 0, 65535)
  if (port_max < port_min || (port_min === 0) !== (port_max === 0)) throw new TypeError('port_min, port_max: a range')
  checkCidrs('denied', options.denied ?? [])
  const native = load().createEngine(
    {
      threads: checkInteger('threads', options.threads, 1, 64),
      bind_address,
      second_bind_address: second_bind_address ?? '',
      port_min,
      port_max,
      quarantine_ms: checkInteger('quarantine_ms', options.quarantine_ms, 0, 3_600_000),
      denied: options.denied ?? [],
      coalesce_us: checkInteger('coalesce_us', options.coalesce_us ?? 1000, 0, 1000),
      io_uring: options.io_uring ?? true,
      packet_ring: options.packet_ring ?? true,
      realtime: options.realtime ?? true,
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

/** Returns the codecs and SRTP suites that this build supports on this machine. */
export function features(options: { readonly g729?: boolean } = {}): EngineFeatures {
  return load().features(options.g729 ?? true)
}

/** Resamples a whole piece of mono PCM between rates of 4,000 to 192,000 Hz. For files, not for live audio. */
export function resample(samples: Int16Array, from_hz: number, to_hz: number): Int16Array {
  checkPcm(samples)
  checkInteger('from_hz', from_hz, 4000, 192_000)
  checkInteger('to_hz', to_hz, 4000, 192_000)
  return from_hz === to_hz ? samples : load().resample(samples, from_hz, to_hz)
}

/**
 * Decodes GSM 06.10 to PCM: `frames` of 33 bytes for 160 samples each, or blocks of 65 bytes for 320, as WAV files have
 * them. A cut one at the end is left out.
 */
export function decodeGsm(bytes: Uint8Array, packing: 'frames' | 'wav'): Int16Array {
  if (!(bytes instanceof Uint8Array)) throw new TypeError('bytes: a Uint8Array')
  return load().decodeGsm(bytes, packing === 'wav')
}

/** Returns what `watchSpeech` hears, as a function of frames of 20 ms at 8 kHz, for a line without a stream. */
export function hearing(options: SpeechWatchOptions): (frame: Int16Array) => HeardFrame {
  const hear = load().hearing(...checkSpeechWatch(options))
  return frame => {
    if (frame.length !== 160) throw new TypeError('frame: 160 samples')
    return hear(frame)
  }
}

/** Encodes PCM at the codec's own rate in frames of 20 ms. For tests and fixtures. */
export function encodeAll(codec: AudioCodec, samples: Int16Array): Buffer[] {
  checkPcm(samples)
  const frame = CODEC_RATES[codec] / 50
  const packed = load().encodeTest(codec, samples.subarray(0, samples.length - (samples.length % frame)))
  const frames: Buffer[] = []
  // The add-on returns the frames in one buffer, each after a two-byte length.
  for (let at = 0; at + 2 <= packed.length; ) {
    const length = packed.readUInt16BE(at)
    frames.push(packed.subarray(at + 2, at + 2 + length))
    at += 2 + length
  }
  return frames
}

/** Decodes frames to PCM at the codec's own rate. For tests and fixtures. */
export function decodeAll(codec: AudioCodec, frames: readonly Uint8Array[]): Int16Array {
  const packed = Buffer.concat(
    frames.flatMap(frame => [Buffer.from([frame.byteLength >> 8, frame.byteLength & 255]), Buffer.from(frame)]),
  )
  return load().decodeTest(codec, packed)
}

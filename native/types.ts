// The types of the native API (native/index.ts): options, descriptions, events and counters of the data plane.
import type { Stream } from './index.ts'

/** Sample rates of PCM that the API accepts, in Hz. */
export type SampleRate = 8000 | 16000 | 24000 | 48000

/**
 * The codecs that the engine decodes and encodes, with their sample rates in Hz. The engine relays other codecs byte
 * for byte.
 */
export const CODEC_RATES = { PCMU: 8000, PCMA: 8000, G722: 16_000, G729: 8000, OPUS: 48_000 } as const
export type AudioCodec = keyof typeof CODEC_RATES

/** SDES suites of RFC 4568, RFC 6188 and RFC 7714. */
type SrtpSuite =
  | 'AES_CM_128_HMAC_SHA1_80'
  | 'AES_CM_128_HMAC_SHA1_32'
  | 'AES_256_CM_HMAC_SHA1_80'
  | 'AES_256_CM_HMAC_SHA1_32'
  | 'AEAD_AES_128_GCM'
  | 'AEAD_AES_256_GCM'

type Direction = 'sendrecv' | 'sendonly' | 'recvonly' | 'inactive'

export interface EngineOptions {
  /** Number of packet threads, 1 to 64. A session runs on the thread that is least loaded when it opens. */
  readonly threads: number
  /** Address that media sockets bind to: an IPv4 or IPv6 literal such as '0.0.0.0'. */
  readonly bind_address: string
  /** Address of the other family, for streams that ask for it. Both addresses share one range of ports. */
  readonly second_bind_address?: string
  /**
   * The even port of the first pair, and the last port, both inclusive. With 0 and 0 the system chooses the pairs.
   */
  readonly port_min: number
  readonly port_max: number
  /** The longest time that a pair of ports stays unused after its stream closes (design section 5: 30 s). */
  readonly quarantine_ms: number
  /** Networks that never become a stream's peer (protects against RTPbleed and loops). */
  readonly denied?: readonly string[]
  /**
   * The longest time for which a packet thread gathers packets between wake-ups, 0 to 1000 microseconds. 1000 halves
   * the CPU time at low load. Under heavy load the thread waits only until about a hundred packets have arrived.
   */
  readonly coalesce_us?: number
  /** Use io_uring where the kernel (Linux 6.1) and the sandbox allow it, and epoll elsewhere. True by default. */
  readonly io_uring?: boolean
  /**
   * Receive latched IPv4 streams through one ring of frames per packet thread (packet(7)). Needs CAP_NET_RAW; without
   * it the engine uses sockets only. True by default.
   */
  readonly packet_ring?: boolean
  /**
   * Run packet threads at the lowest real-time priority (SCHED_RR). Needs CAP_SYS_NICE or RLIMIT_RTPRIO. A thread that
   * is busy nearly all the time gives the priority up for a while. True by default.
   */
  readonly realtime?: boolean
  /**
   * Number of events that may wait for JavaScript, of which 'tap' events may be half. The engine drops and counts
   * events beyond it.
   */
  readonly event_queue?: number
  /** Load the G.729 codec at run time when the machine has libbcg729-0 (GPL-3, never linked). */
  readonly g729?: boolean
  /** Opus encoder complexity, 0 to 10. */
  readonly opus_complexity?: number
}

export interface EngineFeatures {
  /** Codecs that the engine can transcode. It can relay all codecs. */
  readonly codecs: AudioCodec[]
  readonly srtp_suites: SrtpSuite[]
}

/** The senders that a stream accepts (design section 4). Fixed when the stream opens. */
export interface StreamPolicy {
  /**
   * strict: only the host in the SDP and `sources` may send. relaxed: symmetric RTP, in the order of trust of design
   * section 4.
   */
  readonly validation: 'strict' | 'relaxed'
  /** Configured networks of the peer, in CIDR notation. */
  readonly sources: readonly string[]
  /** Source address of the peer's SIP, or null. */
  readonly signalled_from: string | null
  /** Family of the address to bind. Without an address of this family, the stream binds the first address. */
  readonly family?: 4 | 6
}

/** A negotiated payload type. */
export interface PayloadType {
  readonly payload_type: number
  /** Encoding name as in SDP, upper case. */
  readonly codec: string
  /** RTP clock rate, Hz (G722: 8000, OPUS: 48000). */
  readonly clock_rate: number
}

/** The codec of the packets that we send. */
interface SendCodec extends PayloadType {
  /**
   * Milliseconds of audio in each packet: 10 to 60, a multiple of 10. Relayed packets keep the length that their sender
   * chose, unless the peer takes no packets of that length.
   */
  readonly ptime_ms: number
  /** The most milliseconds of audio in a packet that the peer takes (`maxptime`), or null. */
  readonly max_ptime_ms?: number | null
  /** Payload type of the comfort noise (RFC 3389) that the peer accepts, or null. */
  readonly comfort_noise?: number | null
  /** Discontinuous transmission: the encoder stops sending in pauses (Opus, G.729 Annex B). */
  readonly dtx?: boolean
  /** G.729: the peer reads the silence frames of Annex B. Otherwise the relay removes them. */
  readonly silence_frames?: boolean
  /** Opus: in-band FEC. */
  readonly fec?: boolean
  /** Opus: bits per second. */
  readonly bitrate?: number
}

export interface SrtpKeys {
  readonly suite: SrtpSuite
  /** Master key and salt of the peer's packets, decoded from its crypto attribute. */
  readonly receive_key: Uint8Array
  /** Master key and salt of our packets. Never equal to the peer's. */
  readonly send_key: Uint8Array
}

/** The negotiated state of a stream. Each change passes the whole state; unchanged parts continue undisturbed. */
export interface StreamDescription {
  /** The media address in the peer's SDP; null before the SDP. A change of address or port unlatches the stream. */
  readonly remote: { readonly address: string; readonly rtp_port: number; readonly rtcp_port?: number | null } | null
  /** RTP and RTCP share one port (RFC 5761). */
  readonly rtcp_mux?: boolean
  /** The direction from our point of view: a 'recvonly' stream sends only RTCP. */
  readonly direction: Direction
  /** Payload types that the peer may send, except telephone-event and comfort noise. */
  readonly receive: readonly PayloadType[]
  readonly send: SendCodec | null
  /** Payload types of telephone-event that the peer may send, and the one that it accepts. */
  readonly telephone_event?: { readonly receive: readonly PayloadType[]; readonly send: PayloadType | null }
  /** Payload types of comfort noise that the peer may send. */
  readonly comfort_noise?: readonly number[]
  /** Send silence in the agreed codec while nothing else is sent to a peer that may receive. False by default. */
  readonly fills_idle?: boolean
  /** SRTP keys, or null for plain RTP. With keys the stream rejects plain packets. A new key takes effect at once. */
  readonly srtp: SrtpKeys | null
}

/** A piece of audio to play. PCM is mono int16. */
export type PlayPiece =
  | { readonly kind: 'pcm'; readonly samples: Int16Array; readonly rate_hz: SampleRate }
  | {
      readonly kind: 'tone'
      /** Up to four simultaneous frequencies, in Hz. */
      readonly hz: readonly number[]
      readonly on_ms: number
      readonly off_ms: number
      /** Length of the tone; null: endless. */
      readonly total_ms: number | null
      /** Level of each frequency in dBm0; -13 by default. */
      readonly level_dbm0?: number
    }
  | { readonly kind: 'silence'; readonly ms: number }

export interface PlayOptions {
  /** Identifies the play in events; 1 to 64 characters. */
  readonly play_id: string
  readonly pieces: readonly PlayPiece[]
  /** How many times to play the pieces; 0: endlessly. */
  readonly loop?: number
}

type RecordEnd = 'stopped' | 'silence' | 'key' | 'max_length' | 'leg_closed' | 'disk_full' | 'failed'

export interface RecordOptions {
  readonly recording_id: string
  /** Absolute path of the new WAV file. Its folder must exist. */
  readonly file: string
  /**
   * 1: one mixed channel. 2: the left channel holds audio received from `left`; the right channel holds audio received
   * from `right`, or audio sent to `left` when `right` is null.
   */
  readonly channels: 1 | 2
  readonly left: Stream
  readonly right: Stream | null
  /**
   * Mono only. 'received' mixes audio received from `left` and `right`; 'both' adds audio sent to `left`; 'sent' is
   * that alone.
   */
  readonly what?: 'received' | 'both' | 'sent'
  readonly rate_hz?: 8000 | 16000
  readonly max_ms?: number | null
  /** Ends the recording after this much silence on `left`; null: never. */
  readonly silence_ms?: number | null
  /** Keys from `left` that end the recording. */
  readonly finish_keys?: string
  /** Removes silence from both ends of the file. */
  readonly trim?: boolean
}

/** Options of the recording of a conference, which ends when the conference closes, if not before. */
export interface ConferenceRecordOptions extends Pick<RecordOptions, 'recording_id' | 'file' | 'max_ms' | 'trim'> {
  /** 1: the mix. 2: the left channel holds the audio received from `named`, the right one the mix. */
  readonly channels: 1 | 2
  readonly named: Stream | null
}

export interface ConferenceJoin {
  readonly muted?: boolean
  /** The stream does not hear the others (hold). */
  readonly deaf?: boolean
  /** The only stream that hears this one, which is a coach; null: all streams do. */
  readonly heard_by?: Stream | null
}

export interface TapOptions {
  readonly tap_id: string
  /** 'received': audio from the peer. 'sent': audio to the peer. */
  readonly what: 'received' | 'sent'
  readonly rate_hz: 8000 | 16000
  /** Milliseconds of audio in each event: 20 to 200, a multiple of 20. */
  readonly chunk_ms?: number
  /** Reduces steady noise, which adds 20 ms. At 8 kHz only. */
  readonly suppress_noise?: boolean
}

export interface SpeechWatchOptions {
  /** Milliseconds of voice that begin speech: 40 to 320, a multiple of 40. A fifth of the time may be unvoiced. */
  readonly onset_ms: number
  /** Milliseconds without voice that end speech: 200 to 5000. */
  readonly end_ms: number
  /** Reduces steady noise before, which adds 20 ms. */
  readonly suppress_noise?: boolean
}

type SpeechEdge = 'began' | 'paused' | 'resumed' | 'ended'

/** A frame of 20 ms as it was judged, and what was heard in it. `voiced`: the speech that has begun goes on. */
export interface HeardFrame {
  readonly samples: Int16Array
  readonly edges: readonly { readonly edge: SpeechEdge | 'voiced'; readonly quiet_ms: number }[]
}

/** Events of the data plane. Times (`at_ms`) are milliseconds since the epoch. */
export type EngineEvent =
  | { readonly type: 'latched'; readonly stream_id: number; readonly address: string; readonly port: number }
  | { readonly type: 'first_packet'; readonly stream_id: number; readonly at_ms: number }
  /** Repeated every 10 s while the stream may receive packets and none arrives. */
  | { readonly type: 'silent'; readonly stream_id: number; readonly for_ms: number }
  /** SRTP is required, and for 5 s every packet has failed authentication. */
  | { readonly type: 'srtp_failed'; readonly stream_id: number }
  | {
      readonly type: 'key'
      readonly stream_id: number
      readonly digit: string
      readonly duration_ms: number
      /** When the packet thread heard it, by its monotonic clock. */
      readonly heard_ms: number
      readonly source: 'rfc4733' | 'inband' | 'info'
      /** The key came by INFO before. */
      readonly echo: boolean
    }
  | {
      readonly type: 'play_ended'
      readonly stream_id: number
      readonly play_id: string
      readonly reason: 'finished' | 'stopped' | 'closed'
      readonly played_ms: number
    }
  /** The feed's audio before this mark was sent, or the feed was cleared. */
  | { readonly type: 'mark'; readonly stream_id: number; readonly name: string }
  | { readonly type: 'digits_sent'; readonly stream_id: number; readonly send_id: string; readonly sent: boolean }
  /** The packet thread has paused or resumed the recording: one event for each `pauseRecord`, in their order. */
  | { readonly type: 'record_changed'; readonly recording_id: string }
  | {
      readonly type: 'record_ended'
      readonly recording_id: string
      readonly reason: RecordEnd
      readonly key: string
      readonly detail: string
      readonly duration_ms: number
      readonly bytes: number
      readonly sha256: string
      /** The recorded legs received no audio. */
      readonly empty: boolean
      /** Where each pause begins in the file, and how long it lasted. */
      readonly pauses: readonly { readonly at_ms: number; readonly length_ms: number; readonly silent: boolean }[]
    }
  /** A valid RTCP packet for the slow path. With SRTP it has been authenticated. */
  | { readonly type: 'rtcp'; readonly stream_id: number; readonly packet: Buffer }
  /** Speech began or ended. `lasted_ms` is the length of the segment that ended. */
  | { readonly type: 'voice'; readonly stream_id: number; readonly speaking: boolean; readonly lasted_ms: number }
  /**
   * The peer's speech began, paused for 60 ms, went on, or ended. It is heard when packets arrive, ahead of taps, which
   * wait for the jitter buffer. `quiet_ms`: for how long there has been no voice.
   */
  | {
      readonly type: 'speech'
      readonly stream_id: number
      readonly edge: SpeechEdge
      readonly quiet_ms: number
    }
  /**
   * The peer's voice stopped the feed, and its marks follow. `mark` is the last one that was reached before, and
   * `played_ms` the length of what was played since.
   */
  | { readonly type: 'feed_cut'; readonly stream_id: number; readonly mark: string; readonly played_ms: number }
  | { readonly type: 'tone'; readonly stream_id: number; readonly tone: 'cng' | 'ced' }
  | {
      readonly type: 'tap'
      readonly stream_id: number
      readonly tap_id: string
      readonly samples: Int16Array
      /** Milliseconds since the tap began. */
      readonly offset_ms: number
    }
  /** A STUN or DTLS datagram on a stream with `takeRaw` enabled. */
  | {
      readonly type: 'raw'
      readonly stream_id: number
      readonly packet: Buffer
      readonly address: string
      readonly port: number
    }
  /** `count` events were dropped because JavaScript did not read them in time. */
  | { readonly type: 'events_lost'; readonly count: number }

export interface StreamStats {
  readonly packets_received: number
  readonly bytes_received: number
  readonly packets_sent: number
  readonly bytes_sent: number
  /** Cumulative loss of received packets (RFC 3550), never negative. */
  readonly packets_lost: number
  readonly packets_duplicate: number
  readonly packets_reordered: number
  /** The number of losses of more than one packet in a row, and the longest of them. */
  readonly loss_bursts: number
  readonly longest_burst: number
  readonly jitter_ms: number
  readonly jitter_max_ms: number
  /** The mean of the jitter at each second in which packets came. */
  readonly jitter_mean_ms: number
  /** Gaps of more than a second after the first packet, without holds and announced pauses. */
  readonly without_media_ms: number
  /** From the peer's receiver reports; null before the first report. */
  readonly rtt_ms: number | null
  readonly remote_fraction_lost: number | null
  readonly remote_packets_lost: number | null
  readonly remote_jitter_ms: number | null
  /** Milliseconds since the epoch; null before the first packet. */
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
  /** State of the jitter buffer, which only decoded streams have. */
  readonly concealed_frames: number
  readonly late_frames: number
  readonly jitter_buffer_ms: number
  /** Codecs of the last packet received and the last packet sent; '' before the first. */
  readonly receive_codec: string
  readonly send_codec: string
  readonly latched: boolean
}

interface ThreadStats {
  readonly thread: number
  readonly streams: number
  readonly packets_received: number
  readonly packets_sent: number
  readonly wakeups: number
  readonly cpu_seconds: number
  /** How the thread receives and sends packets: epoll when io_uring is disabled, too old or forbidden. */
  readonly io: 'io_uring' | 'epoll'
  /** Whether the thread receives latched streams through a packet ring. */
  readonly packet_ring: boolean
  /** Streams on the packet ring now, and packets lost since the start because the ring was full. */
  readonly packet_ring_streams: number
  readonly packet_ring_drops: number
  /** Whether the system granted the thread real-time priority. */
  readonly realtime: boolean
  /** Number of ticks that ran late: by more than 5 ms when sending, by more than 100 ms when decoding. */
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

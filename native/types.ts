// What may be said to the data plane and what it says: the types of the native door (native/index.ts).
import type { Stream } from './index.ts'

/** Sample rates in which PCM may be handed over, Hz. */
export type SampleRate = 8000 | 16000 | 24000 | 48000

/**
 * Codecs whose audio the engine can decode and encode, with the rate of their samples in Hz; any other name can still
 * be relayed byte for byte.
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
  /** Packet threads, 1 to 64. A session lives on one of them, the least loaded at its opening. */
  readonly threads: number
  /** Address that media sockets are bound to: an IPv4 or IPv6 literal, such as '0.0.0.0'. */
  readonly bind_address: string
  /** One of the other family, for streams that ask for it; pairs of ports at either come out of one range. */
  readonly second_bind_address?: string
  /**
   * Even port of the first pair and the last port that may be used, both inclusive; 0,0 lets the system choose
   * pairs.
   */
  readonly port_min: number
  readonly port_max: number
  /** How long a pair of ports rests after its stream was closed (design section 5: 30 s). */
  readonly quarantine_ms: number
  /** Networks to which nothing is sent and from which nothing is accepted (RTPbleed and loop protection). */
  readonly denied?: readonly string[]
  /**
   * Longest time between two wake-ups of a packet thread that packets are gathered for, 0 to 1000 microseconds; 1000
   * halves the CPU at low load. Under heavy load it shortens by itself to what brings some hundred packets.
   */
  readonly coalesce_us?: number
  /** Packets by io_uring where the kernel (Linux 6.1) and the sandbox allow it, the default; else by epoll. */
  readonly io_uring?: boolean
  /**
   * Latched IPv4 streams are received by one ring of frames for each packet thread (packet(7)), where the process may
   * have it: CAP_NET_RAW. The default.
   */
  readonly packet_ring?: boolean
  /**
   * Packet threads at real-time priority (SCHED_RR, the lowest) where the process may have it: CAP_SYS_NICE or
   * RLIMIT_RTPRIO. The default. A thread that is busy nearly all the time gives it back until it is not.
   */
  readonly realtime?: boolean
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
  /**
   * strict: only the signalled address and `sources`; relaxed: symmetric RTP in the order of trust of design
   * section 4.
   */
  readonly validation: 'strict' | 'relaxed'
  /** CIDRs of the peer's configured sources. */
  readonly sources: readonly string[]
  /** Address from which the peer's SIP came, or null. */
  readonly signalled_from: string | null
  /** Family of the address that the stream is bound to, where the engine has one of it; else the first. */
  readonly family?: 4 | 6
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
interface SendCodec extends PayloadType {
  /**
   * Milliseconds of audio for each packet, 10 to 60 in tens. Relay keeps the sender's packets whatever is said
   * here.
   */
  readonly ptime_ms: number
  /** Payload type of comfort noise (RFC 3389) that the peer takes, or null. */
  readonly comfort_noise?: number | null
  /** Discontinuous transmission: our encoder looks for pauses (Opus, G.729 Annex B). */
  readonly dtx?: boolean
  /** G.729: the peer reads the silence frames of Annex B; else they are taken out of what is relayed to it. */
  readonly silence_frames?: boolean
  /** Opus: in-band FEC, bits a second. */
  readonly fec?: boolean
  readonly bitrate?: number
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

type RecordEnd = 'stopped' | 'silence' | 'key' | 'max_length' | 'leg_closed' | 'disk_full' | 'failed'

export interface RecordOptions {
  readonly recording_id: string
  /** Absolute path of the WAV file to be made; its folder exists. */
  readonly file: string
  /**
   * 2: left channel = received from `left`, right = received from `right`, or what is sent to `left` when `right`
   * is null. 1: a mix.
   */
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
  /** The only one that hears it (a coach); null: all do. */
  readonly heard_by?: Stream | null
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

interface ThreadStats {
  readonly thread: number
  readonly streams: number
  readonly packets_received: number
  readonly packets_sent: number
  readonly wakeups: number
  readonly cpu_seconds: number
  /** How packets come and go; epoll where io_uring is switched off, too old or forbidden. */
  readonly io: 'io_uring' | 'epoll'
  /** Whether latched streams are received by a packet ring. */
  readonly packet_ring: boolean
  /** Streams that are now, and packets that were lost because the ring was full, since start. */
  readonly packet_ring_streams: number
  readonly packet_ring_drops: number
  /** Whether it was allowed real-time priority. */
  readonly realtime: boolean
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

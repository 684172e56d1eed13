// The types shared by the methods and events of the media worker.
import Type, { type Static, type TSchema } from 'typebox'
import { CODEC_NAMES } from '../../core/domain/codecs/codec.ts'

export const closed = { additionalProperties: false }
export const Id = Type.String({ minLength: 1, maxLength: 128 })
export const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])
export const words = <const T extends string[]>(...values: T) => Type.Enum<T>([...values])
export const Empty = Type.Object({}, closed)

export const CodecName = words(...CODEC_NAMES)
export type CodecName = Static<typeof CodecName>

/**
 * A direction as the owner of the SDP sees it (RFC 3264 §6.1): `sendonly` in our SDP means that we send and do not
 * receive.
 */
export const Direction = words('sendrecv', 'sendonly', 'recvonly', 'inactive')
export type Direction = Static<typeof Direction>

const Security = words('rtp', 'sdes_srtp_required')

export const LegPolicy = Type.Object(
  {
    /**
     * In order of preference. The first that the peer supports too is chosen, unless another one makes a relay
     * possible.
     */
    codecs: Type.Array(CodecName, { minItems: 1, maxItems: CODEC_NAMES.length }),
    security: Security,
    source_validation: words('relaxed', 'strict'),
    /** The networks (CIDR) from which media may come, in addition to the address in the SDP. */
    sources: Type.Array(Type.String({ maxLength: 64 }), { maxItems: 256 }),
    /** The source address of the leg's SIP messages: the second in order of trust when latching. */
    signalled_from: orNull(Type.String({ maxLength: 64 })),
    /** The address family of the peer's media. Default: the family of `signalled_from`. */
    family: Type.Optional(words('ipv4', 'ipv6')),
    telephone_event: Type.Boolean(),
  },
  closed,
)
export type LegPolicy = Static<typeof LegPolicy>

/** A speech engine of the installation (`core/domain/speech/engines.ts`). */
export const EngineName = Type.String({ minLength: 1, maxLength: 32 })

/** Where signaling puts sounds of the platform while they are played, relative to the data folder. */
export const SOUNDS_FOLDER = 'recordings/.sounds'
/** The largest file that is played. */
export const MAX_SOUND_BYTES = 48 * 1024 * 1024

export const PlaySource = Type.Union([
  Type.Object(
    {
      kind: Type.Literal('url'),
      url: Type.String({ minLength: 1, maxLength: 4096 }),
      /** The offset at which playing begins. */
      from_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: 86_400_000 })),
    },
    closed,
  ),
  /** A file of `SOUNDS_FOLDER`, by its path in the data folder. Any other path is refused. */
  Type.Object(
    {
      kind: Type.Literal('file'),
      path: Type.String({ minLength: 1, maxLength: 4096 }),
      from_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: 86_400_000 })),
    },
    closed,
  ),
  Type.Object(
    {
      kind: Type.Literal('speech'),
      /** Plain text, even if it looks like markup, unless `ssml` is set. The limit is the size of a document. */
      text: Type.String({ maxLength: 65_536 }),
      ssml: Type.Optional(Type.Boolean()),
      voice: Type.String({ maxLength: 64 }),
      language: Type.String({ maxLength: 32 }),
      engine: Type.Optional(EngineName),
    },
    closed,
  ),
  Type.Object(
    {
      kind: Type.Literal('tone'),
      hz: Type.Array(Type.Number({ minimum: 20, maximum: 20_000 }), { minItems: 1, maxItems: 4 }),
      on_ms: Type.Integer({ minimum: 1, maximum: 60_000 }),
      off_ms: Type.Integer({ minimum: 0, maximum: 60_000 }),
      /** Null plays until stopped. */
      total_ms: orNull(Type.Integer({ minimum: 1, maximum: 3_600_000 })),
    },
    closed,
  ),
  Type.Object({ kind: Type.Literal('silence'), ms: Type.Integer({ minimum: 0, maximum: 86_400_000 }) }, closed),
  /** The ring-back tone of a country (ISO 3166 alpha-2 in either case, also `uk` and `us-old`). Plays until stopped. */
  Type.Object({ kind: Type.Literal('ringback'), country: Type.String({ minLength: 2, maxLength: 8 }) }, closed),
])
export type PlaySource = Static<typeof PlaySource>

/**
 * The statistics of a leg so far. Counts are RTP packets unless named otherwise. Times are ISO 8601, null before the
 * first packet.
 */
export const LegStats = Type.Object(
  {
    codec: orNull(CodecName),
    secured: Type.Boolean(),
    packets_received: Type.Integer(),
    packets_sent: Type.Integer(),
    bytes_received: Type.Integer(),
    bytes_sent: Type.Integer(),
    /** RFC 3550 §A.3: expected minus received, never below 0. */
    packets_lost: Type.Integer(),
    packets_duplicate: Type.Integer(),
    packets_reordered: Type.Integer(),
    /** Losses of more than one consecutive packet, and the longest of them in packets. */
    loss_bursts: Type.Integer(),
    longest_burst: Type.Integer(),
    /** The jitter of what we receive (RFC 3550 §A.8). */
    jitter_ms: Type.Number(),
    jitter_max_ms: Type.Number(),
    /** Over the whole leg. */
    jitter_mean_ms: Type.Number(),
    /** Gaps of more than a second after the first packet, without holds and announced pauses. */
    without_media_ms: Type.Integer(),
    /** The codecs that offers and answers have settled, each with the time from which it held. */
    codecs: Type.Array(Type.Object({ codec: CodecName, from: Type.String() }, closed)),
    /** Packets that came too late to be decoded. A relay has none. */
    packets_late: Type.Integer(),
    /** Packets of the peer that are not used: duplicates, of unknown types, and those counted below as dropped. */
    packets_discarded: Type.Integer(),
    /** Packets of ours that the system refused to send. */
    packets_unsent: Type.Integer(),
    /** From the peer's last RTCP report about what we send; null when none came. */
    remote_packets_lost: orNull(Type.Integer()),
    remote_jitter_ms: orNull(Type.Number()),
    rtt_ms: orNull(Type.Number()),
    /** The E-model rating (ITU-T G.107) of what we receive; null before the first packet. */
    mos: orNull(Type.Number()),
    r_factor: orNull(Type.Number()),
    /** The listening quality that the peer reported in RTCP XR VoIP metrics (RFC 3611 §4.7); null when it sent none. */
    remote_mos: orNull(Type.Number()),
    first_packet_at: orNull(Type.String()),
    last_packet_at: orNull(Type.String()),
    /** Packets from addresses that the latching rules reject (design §5, RTPbleed). */
    strangers_dropped: Type.Integer(),
    /** Packets that failed SRTP authentication or were replayed. */
    srtp_dropped: Type.Integer(),
    /** Packets beyond three times the nominal rate. */
    policed_dropped: Type.Integer(),
    malformed_dropped: Type.Integer(),
    /** Where our packets go now, and the address in the peer's SDP. They differ behind NAT. */
    remote_address: orNull(Type.String()),
    remote_port: orNull(Type.Integer()),
    signalled_address: orNull(Type.String()),
    signalled_port: orNull(Type.Integer()),
  },
  closed,
)
export type LegStats = Static<typeof LegStats>

/** The input of the caller that stops what is being said to it. */
export const RelayInput = words('none', 'dtmf', 'speech', 'any')

export const OfLeg = Type.Object({ leg_id: Id }, closed)
export const OfRecording = Type.Object({ recording_id: Id }, closed)
export const SdpText = Type.String({ maxLength: 65_536 })
/** Addresses of the host names in c= lines of an SDP; '' stands for a missing c= line. */
export const Places = Type.Record(Type.String({ maxLength: 253 }), Type.String({ maxLength: 64 }))

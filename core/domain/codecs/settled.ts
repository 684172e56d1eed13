import type { AlsoReceived } from './beside-audio.ts'
import type { CodecName, EncoderSettings } from './codec.ts'
import type { Direction, DtlsLine } from './sdp.ts'
import type { MediaSecurity, OwnSecrets, SrtpKeys } from './security.ts'

/** The two ends of a leg, and what their offer and answer have settled. */

export interface MediaPolicy {
  /** In order of preference. */
  readonly codecs: readonly CodecName[]
  readonly security: MediaSecurity
  readonly telephone_event: boolean
}

/** Our end of the leg. */
export interface LocalSide extends OwnSecrets {
  readonly session_id: string
  readonly address: string
  readonly rtp_port: number
  readonly rtcp_port: number
  readonly policy: MediaPolicy
  /** The direction that we want. An answer may restrict it. */
  readonly direction: Direction
}

/** Facts about the other leg of a bridge that affect this leg's SDP. */
export interface OtherLeg {
  /** Its negotiated codec, or those of its pending offer. */
  readonly codecs: readonly CodecName[]
  /** Whether its peer sends comfort noise in pauses, or would. */
  readonly comfort_noise: boolean
  /** Whether its peer supports its codec's silence frames, or would. */
  readonly silence_frames: boolean
}

export interface PayloadUse {
  readonly codec: CodecName
  readonly payload_type: number
}

/** Payload types of one encoding: the peer's number for what we send, and ours for what it sends. */
interface PayloadPair {
  readonly send: number
  readonly receive: number
}

/** The negotiated session until the next offer and answer. Null fields were not agreed. */
export interface Settled {
  readonly codec: CodecName
  /** In the peer's numbering. */
  readonly send: PayloadUse
  /**
   * What is accepted: what the peer may send, in our numbering, and the numbers of its own answer. The first is the
   * codec.
   */
  readonly receive: readonly PayloadUse[]
  readonly ptime_ms: number
  readonly maxptime_ms: number | null
  readonly encoder: EncoderSettings
  readonly telephone_event: (PayloadPair & { readonly clock_rate_hz: number }) | null
  readonly comfort_noise: PayloadPair | null
  /** Key events and comfort noise that are accepted although they are not what was agreed. */
  readonly also_receive: AlsoReceived
  /** Whether both sides may send the codec's silence frames. */
  readonly silence_frames: boolean
  /** From our view. */
  readonly direction: Direction
  /** Whether the peer put us on hold. */
  readonly hold: boolean
  readonly remote: {
    /** Null when nothing may be sent (0.0.0.0). */
    readonly address: string | null
    readonly rtp_port: number
    readonly rtcp_port: number
    readonly rtcp_mux: boolean
  }
  readonly srtp: SrtpKeys | null
  /** The peer's ICE and DTLS parameters. Its address and keys come from them later. */
  readonly dtls: DtlsLine | null
}

/** The specification's TrunkCodec. */
export const CODEC_NAMES = ['PCMA', 'PCMU', 'G722', 'G729', 'OPUS'] as const
export type CodecName = (typeof CODEC_NAMES)[number]

/** A codec in SDP. native/src/codec/<name>.cc codes its samples. */
export interface Codec {
  readonly name: CodecName
  /** Encoding name in `a=rtpmap`; compared without case (RFC 4855 §3). */
  readonly encoding: string
  /** Other names that peers write in `a=rtpmap`. We never write them. */
  readonly also_named?: readonly string[]
  /** Clock rate of RTP timestamps. It may differ from the sample rate (G722, RFC 3551 §4.5.2). */
  readonly clock_rate_hz: number
  readonly sample_rate_hz: number
  /** Third part of `a=rtpmap`; null without one. */
  readonly channels: number | null
  /** RFC 3551 §6 table 4; null for dynamic ones. */
  readonly static_payload_type: number | null
  /** The payload type in our own offers. */
  readonly payload_type: number
  /** Whether comfort noise packets (RFC 3389) may fill its pauses, because it has no silence frames of its own. */
  readonly comfort_noise: boolean
  /** `a=fmtp` of our own offers and answers, null for none. */
  readonly fmtp: string | null
  /** Its own silence frames, which both sides must agree on: whether the peer's `a=fmtp` allows them, and ours. */
  readonly silence_frames?: { readonly fmtp: string; allowed(theirs: string | null): boolean }
  /** ITU-T G.113 appendix I: equipment impairment, and robustness against loss with concealment. */
  readonly impairment: { readonly ie: number; readonly bpl: number }
  /** Returns the encoder settings that the peer's `a=fmtp` (null: no such line) asks for. */
  settings(theirs: string | null): EncoderSettings
}

/** Settings that the peer requested for our encoder. Absent fields have the codec's default. */
export interface EncoderSettings {
  /** Opus: the peer uses forward error correction. */
  readonly fec?: boolean
  /** The peer accepts silence suppression (Opus DTX, G.729 Annex B). */
  readonly dtx?: boolean
  readonly max_bitrate?: number
  readonly max_playback_hz?: number
}

/** Parses `a=fmtp` parameters. Names become lower case; a parameter without a value is ''. */
export function fmtpParameters(text: string | null): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>()
  for (const part of (text ?? '').split(';')) {
    const [name = '', ...value] = part.split('=')
    if (name.trim()) parameters.set(name.trim().toLowerCase(), value.join('=').trim())
  }
  return parameters
}

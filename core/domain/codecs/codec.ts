/** The specification's TrunkCodec. */
export const CODEC_NAMES = ['PCMA', 'PCMU', 'G722', 'G729', 'OPUS'] as const
export type CodecName = (typeof CODEC_NAMES)[number]

/** The SDP face of a codec; its samples are native/src/codec/<name>.cc. */
export interface Codec {
  readonly name: CodecName
  /** Encoding name in `a=rtpmap`; compared without case (RFC 4855 §3). */
  readonly encoding: string
  /** Of RTP timestamps; not always the rate of the samples (G722, RFC 3551 §4.5.2). */
  readonly clock_rate_hz: number
  readonly sample_rate_hz: number
  /** Third part of `a=rtpmap`; null when there is none. */
  readonly channels: number | null
  /** RFC 3551 §6 table 4; null for dynamic ones. */
  readonly static_payload_type: number | null
  /** What we write for it in our own offers. */
  readonly payload_type: number
  /** Its pauses can be told by comfort noise packets (RFC 3389): it has no silence frames of its own. */
  readonly comfort_noise: boolean
  /** `a=fmtp` of our own offers and answers, null for none. */
  readonly fmtp: string | null
  /** Silence frames of its own that both sides have to agree on: what their `a=fmtp` allows, and ours when agreed. */
  readonly silence_frames?: { readonly fmtp: string; allowed(theirs: string | null): boolean }
  /** ITU-T G.113 appendix I: equipment impairment, and robustness against loss with concealment. */
  readonly impairment: { readonly ie: number; readonly bpl: number }
  /** What their `a=fmtp` (null: no such line) means for what we send to them. */
  settings(theirs: string | null): EncoderSettings
}

/** What the peer asked of our encoder; absent fields are at the codec's own default. */
export interface EncoderSettings {
  /** Opus: forward error correction is of use to the peer. */
  readonly fec?: boolean
  /** The peer takes silence suppressed (Opus DTX, G.729 Annex B). */
  readonly dtx?: boolean
  readonly max_bitrate?: number
  readonly max_playback_hz?: number
}

/** `a=fmtp` parameters; names in lower case, a parameter without a value is ''. */
export function fmtpParameters(text: string | null): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>()
  for (const part of (text ?? '').split(';')) {
    const [name = '', ...value] = part.split('=')
    if (name.trim()) parameters.set(name.trim().toLowerCase(), value.join('=').trim())
  }
  return parameters
}

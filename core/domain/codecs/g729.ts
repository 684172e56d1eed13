import { type Codec, fmtpParameters } from './codec.ts'

const annexb = (fmtp: string | null) => fmtpParameters(fmtp).get('annexb')?.toLowerCase()

/**
 * G.729 with Annex A, RFC 3551 §4.5.6. Annex B (silence frames) applies unless a side says `annexb=no` (RFC 7261 §3.2).
 * We agree to it only when the other leg can use it (docs/media.md).
 */
export const g729: Codec = {
  name: 'G729',
  encoding: 'G729',
  also_named: ['G729A', 'G729B', 'G729AB', 'G.729', 'G.729A'],
  clock_rate_hz: 8000,
  sample_rate_hz: 8000,
  channels: null,
  static_payload_type: 18,
  payload_type: 18,
  comfort_noise: false,
  fmtp: 'annexb=no',
  silence_frames: { fmtp: 'annexb=yes', allowed: theirs => annexb(theirs) !== 'no' },
  impairment: { ie: 11, bpl: 19 },
  // We detect voice only for a peer that explicitly requests it.
  settings: theirs => ({ dtx: annexb(theirs) === 'yes' }),
}

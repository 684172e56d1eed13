import { type Codec, fmtpParameters } from './codec.ts'

const annexb = (fmtp: string | null) => fmtpParameters(fmtp).get('annexb')?.toLowerCase()

/**
 * G.729 with Annex A, RFC 3551 §4.5.6. Annex B (silence frames) holds when neither side says `annexb=no`, which is
 * allowed where nothing is said (RFC 7261 §3.2); we agree to it where the other leg can do with it (decision 0252).
 */
export const g729: Codec = {
  name: 'G729',
  encoding: 'G729',
  clock_rate_hz: 8000,
  sample_rate_hz: 8000,
  channels: null,
  static_payload_type: 18,
  payload_type: 18,
  comfort_noise: false,
  fmtp: 'annexb=no',
  silence_frames: { fmtp: 'annexb=yes', allowed: theirs => annexb(theirs) !== 'no' },
  impairment: { ie: 11, bpl: 19 },
  // Voice detection of our own only for a peer that asks for it by name.
  settings: theirs => ({ dtx: annexb(theirs) === 'yes' }),
}

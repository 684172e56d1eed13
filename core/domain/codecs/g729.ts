import type { Codec } from './codec.ts'

/**
 * G.729 with Annex A, RFC 3551 §4.5.6. We say `annexb=no` in offers and answers alike: RFC 4856 §2.1.9 lets either side
 * switch Annex B off, and a relay between a leg with silence frames and one without would lose audio (decision 0252).
 */
export const g729: Codec = {
  name: 'G729',
  encoding: 'G729',
  clock_rate_hz: 8000,
  sample_rate_hz: 8000,
  channels: null,
  static_payload_type: 18,
  payload_type: 18,
  fmtp: 'annexb=no',
  settings: () => ({ dtx: false }),
}

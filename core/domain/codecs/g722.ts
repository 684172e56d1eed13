import type { Codec } from './codec.ts'

/**
 * G.722 at 64 kbit/s. Its clock rate is 8000 although its sample rate is 16000 Hz, because of a historical error (RFC
 * 3551 §4.5.2).
 */
export const g722: Codec = {
  name: 'G722',
  encoding: 'G722',
  clock_rate_hz: 8000,
  sample_rate_hz: 16000,
  channels: null,
  static_payload_type: 9,
  payload_type: 9,
  comfort_noise: true,
  fmtp: null,
  impairment: { ie: 0, bpl: 25.1 },
  settings: () => ({}),
}

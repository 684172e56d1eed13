import type { Codec } from './codec.ts'

/** G.711 A-law, RFC 3551 §4.5.14. */
export const pcma: Codec = {
  name: 'PCMA',
  encoding: 'PCMA',
  also_named: ['G711A', 'G.711A', 'ALAW'],
  clock_rate_hz: 8000,
  sample_rate_hz: 8000,
  channels: null,
  static_payload_type: 8,
  payload_type: 8,
  comfort_noise: true,
  fmtp: null,
  impairment: { ie: 0, bpl: 25.1 },
  settings: () => ({}),
}

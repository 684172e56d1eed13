import type { Codec } from './codec.ts'

/** G.711 µ-law, RFC 3551 §4.5.14. */
export const pcmu: Codec = {
  name: 'PCMU',
  encoding: 'PCMU',
  also_named: ['G711U', 'G.711U', 'ULAW'],
  clock_rate_hz: 8000,
  sample_rate_hz: 8000,
  channels: null,
  static_payload_type: 0,
  payload_type: 0,
  comfort_noise: true,
  fmtp: null,
  impairment: { ie: 0, bpl: 25.1 },
  settings: () => ({}),
}

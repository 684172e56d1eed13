/**
 * Comfort noise (RFC 3389) replaces audio in pauses, for codecs without silence frames of their own. They all have its
 * clock rate (docs/media.md).
 */
export const comfortNoise = {
  encoding: 'CN',
  clock_rate_hz: 8000,
  channels: null,
  /** Static (RFC 3551 §6 table 4). */
  payload_type: 13,
} as const

/**
 * Pauses told as noise of a level instead of audio (RFC 3389), for codecs with no silence frames of their own. All of
 * them have its clock (decision 0241).
 */
export const comfortNoise = {
  encoding: 'CN',
  clock_rate_hz: 8000,
  channels: null,
  /** Static (RFC 3551 §6 table 4). */
  payload_type: 13,
} as const

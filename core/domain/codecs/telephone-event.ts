/**
 * RFC 4733 key events. They share the timestamps of the audio that they interrupt, so there is one payload type for
 * each clock rate, and an answer holds only the one whose clock is the chosen codec's (decision 0251).
 */
export const telephoneEvent = {
  encoding: 'telephone-event',
  /** Keys 0-9 * # A-D; flash (16) is accepted by nobody here. */
  fmtp: '0-15',
  payloadType: (clock_rate_hz: number): number => (clock_rate_hz === 48_000 ? 110 : 101),
} as const

/**
 * RFC 4733 key events. They share the timestamps of the audio that they interrupt. So each clock rate has its payload
 * type, and an answer contains only that of the selected codec's clock rate (docs/media.md).
 */
export const telephoneEvent = {
  encoding: 'telephone-event',
  /** Keys 0-9 * # A-D. Flash (16) is not supported. */
  fmtp: '0-15',
  payloadType: (clock_rate_hz: number): number => (clock_rate_hz === 48_000 ? 110 : 101),
} as const

import { type Codec, fmtpParameters } from './codec.ts'

/** RFC 7587: SDP always has clock rate 48000 and two channels, whatever the stream contains. We send mono. */
export const opus: Codec = {
  name: 'OPUS',
  encoding: 'opus',
  clock_rate_hz: 48000,
  sample_rate_hz: 48000,
  channels: 2,
  static_payload_type: null,
  payload_type: 96,
  comfort_noise: false,
  fmtp: 'minptime=10;useinbandfec=1',
  impairment: { ie: 0, bpl: 34 },
  settings(theirs) {
    const parameters = fmtpParameters(theirs)
    const max_bitrate = within(parameters.get('maxaveragebitrate'), 6000, 510_000)
    const max_playback_hz = within(parameters.get('maxplaybackrate'), 8000, 48_000)
    return {
      fec: parameters.get('useinbandfec') === '1',
      dtx: parameters.get('usedtx') === '1',
      ...(max_bitrate === null ? {} : { max_bitrate }),
      ...(max_playback_hz === null ? {} : { max_playback_hz }),
    }
  },
}

function within(text: string | undefined, least: number, most: number): number | null {
  if (text === undefined || !/^\d{1,9}$/.test(text)) return null
  return Math.min(Math.max(Number(text), least), most)
}

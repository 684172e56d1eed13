import { choice, custom, flag, ignored, languageTag, method, text, url } from '../attributes.ts'
import { RECORDING_CALLBACK } from '../recording-callback.ts'
import { shape } from '../shape.ts'
import { parameter } from './parameters.ts'

const TRACKS = ['inbound_track', 'outbound_track', 'both_tracks'] as const

/** Nouns of Start and Stop: activities that run concurrently with the script. Stream is in stream.ts. */
export const recording = shape('Recording', {
  name: text({ max: 64 }),
  channels: choice(['dual', 'mono'], { default: 'dual' }),
  track: choice(['both', 'inbound', 'outbound'], { default: 'both' }),
  trim: choice(['trim-silence', 'do-not-trim'], { default: 'trim-silence', number: 13699 }),
  ...RECORDING_CALLBACK,
})

export const siprec = shape(
  'Siprec',
  {
    name: text({ max: 64 }),
    connectorName: text({ max: 64 }),
    track: choice(TRACKS, { default: 'both_tracks' }),
    statusCallback: url(),
    statusCallbackMethod: method(),
  },
  { nouns: [parameter] },
)

export const transcription = shape('Transcription', {
  name: text({ max: 64 }),
  track: choice(TRACKS, { default: 'both_tracks' }),
  languageCode: languageTag({ default: 'en-US' }),
  inboundTrackLabel: text({ max: 128 }),
  outboundTrackLabel: text({ max: 128 }),
  partialResults: flag(false),
  transcriptionEngine: text({ max: 64 }),
  speechModel: text({ max: 64 }),
  hints: custom<readonly string[]>('comma list', { default: [] }, value =>
    value
      .split(',')
      .map(hint => hint.trim())
      .filter(Boolean)
      .slice(0, 500),
  ),
  profanityFilter: flag(true),
  enableAutomaticPunctuation: flag(true),
  statusCallbackUrl: url(),
  statusCallbackMethod: method(),
  intelligenceService: ignored(),
})

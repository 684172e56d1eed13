import { choice, flag, ignored, integer, method, pattern, url } from '../attributes.ts'
import { RECORDING_CALLBACK } from '../recording-callback.ts'
import type { Node } from '../shape.ts'

const RECORD_MODES = [
  'do-not-record',
  'record-from-answer',
  'record-from-ringing',
  'record-from-answer-dual',
  'record-from-ringing-dual',
] as const

export const DIAL = {
  action: url(),
  method: method(13210),
  timeout: integer({ default: 30, min: 5, max: 600, clamp: true, number: 13212 }),
  timeLimit: integer({ default: 14_400, min: 1, max: 14_400, number: 13216 }),
  callerId: pattern(/^(?:\+?[0-9]{3,15}|client:[^\s]{1,250}|[A-Za-z0-9+\-_.]{1,64})$/, 'number or token', {
    default: null,
    number: 13214,
  }),
  answerOnBridge: flag(false, 13219),
  hangupOnStar: flag(false, 13213),
  record: choice(RECORD_MODES, {
    default: 'do-not-record',
    number: 13217,
    aliases: { true: 'record-from-answer', false: 'do-not-record' },
  }),
  recordingTrack: choice(['both', 'inbound', 'outbound'], { default: 'both' }),
  trim: choice(['trim-silence', 'do-not-trim'], { default: 'do-not-trim' }),
  ...RECORDING_CALLBACK,
  ringTone: pattern(/^[a-z]{2}(?:-[a-z]{2,8})?$/i, 'country code', { default: null, number: 13220 }),
  sequential: flag(false, 13218),
  referUrl: url(),
  referMethod: method(),
  callReason: ignored(),
  recordingConfigurationId: ignored(),
  events: ignored(),
  passports: ignored(),
}

export type DialNode = Node<typeof DIAL>

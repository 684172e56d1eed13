import type { Stream } from '../../native/index.ts'
import type { MethodParams } from '../protocol/schema.ts'

export type RelayRequest = MethodParams<'relay.start'>

/** The input of the caller that stops what is being said. */
export type Interruptible = RelayRequest['interruptible']

/** Reports whether `setting` includes an input. */
export const includes = (setting: Interruptible, input: 'dtmf' | 'speech'): boolean =>
  setting === 'any' || setting === input

export const MAX_DIGITS = 256

/** What a session needs of its leg's stream: the caller's audio and speech, and a feed of sound and marks. */
export type AudioLine = Pick<
  Stream,
  'closed' | 'tap' | 'untap' | 'watchSpeech' | 'unwatchSpeech' | 'feed' | 'feedMark' | 'feedClear'
>

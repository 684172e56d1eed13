import { POCKETSPHINX } from '../../core/domain/speech/engines.ts'
import { isInstalled } from '../../core/runtime/installed-programs.ts'
import { createAudioThreads } from '../../media/files/audio-threads.ts'
import { createSpeech } from '../../media/files/speech.ts'
import { pocketsphinx } from '../../media/speech/pocketsphinx.ts'
import type { RecognitionSettings } from '../../media/speech/recognizer.ts'
import type { Test } from './harness/index.ts'

/** Speech without a network in tests: espeak-ng as a person's voice, pocketsphinx as a person's ears. */

export const HAS_POCKETSPHINX = isInstalled(POCKETSPHINX)

export const SETTINGS: RecognitionSettings = {
  recognize_id: 'r1',
  account_sid: 'AC1',
  call_sid: 'CA1',
  language: 'en-US',
  hints: [],
  model: null,
  enhanced: false,
  profanity_filter: true,
  punctuation: true,
  partial: true,
  silence_ms: 500,
  max_speech_ms: 20_000,
  tracks: ['inbound'],
}

/** Returns a voice: it gives speech as a telephone carries it, at 8 kHz. */
export function person(t: Test): (text: string) => Promise<Int16Array> {
  const audio = createAudioThreads()
  t.teardown(() => audio.close())
  const voice = createSpeech(audio)
  return async text => {
    const said = await voice.speak({ text, voice: 'man', language: 'en-US', owner: 'p' })
    if ('refused' in said) throw new Error(said.detail)
    const fitted = await audio.fit(said.pcm, 8000, 0, 'p')
    if ('refused' in fitted) throw new Error(fitted.detail)
    return fitted.pcm.samples
  }
}

/** Resolves with which of the phrases is heard in samples at 8 kHz; with other words when it is none of them. */
export function understood(samples: Int16Array, phrases: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const session = pocketsphinx().open(
      { ...SETTINGS, hints: phrases, silence_ms: 2000 },
      {
        started: () => undefined,
        warned: () => undefined,
        heard: ({ text }) => {
          session.stop()
          resolve(text)
        },
        ended: fault => fault !== null && reject(new Error(fault)),
      },
    )
    session.audio('inbound', samples, 0)
    session.audio('inbound', new Int16Array(8 * 2500), samples.length / 8)
  })
}

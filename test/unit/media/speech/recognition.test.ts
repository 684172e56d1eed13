import type { AudioLine } from '../../../../media/relay/types.ts'
import { byUtterance } from '../../../../media/speech/by-utterance.ts'
import { Recognition, type RecognizeRequest } from '../../../../media/speech/recognition.ts'
import { RATE_HZ, type RecognitionListener } from '../../../../media/speech/recognizer.ts'
import { handClock } from '../../../support/hand-clock.ts'
import t from '../../../support/harness/index.ts'

const CHUNK_MS = 20
const LOOK_MS = 100

/** A recognition at a clock that the test moves, and what its engine gets: `s` is a frame of speech, `.` of silence. */
function listening() {
  const { clock, passes, fire } = handClock()
  let frames = ''
  const recognition = new Recognition({
    request: { leg_id: 'leg', engine: 'test', tracks: 'inbound' } as unknown as RecognizeRequest,
    stream: { closed: false, tap: () => undefined, untap: () => undefined } as unknown as AudioLine,
    tap_prefix: 'tap-',
    recognizer: {
      open: () => ({
        audio: (_track, samples) => {
          frames += samples.some(sample => sample !== 0) ? 's' : '.'
        },
        finish: () => undefined,
        stop: () => undefined,
      }),
    },
    clock,
    ...{ started: () => undefined, heard: () => undefined, warned: () => undefined, ended: () => undefined },
  })
  let offset_ms = 0
  const speaks = (ms: number): void => {
    for (let done = 0; done < ms; done += CHUNK_MS) {
      const samples = new Int16Array((RATE_HZ * CHUNK_MS) / 1000).fill(1000)
      recognition.onTap({ type: 'tap', tap_id: 'tap-i', samples, offset_ms } as Parameters<typeof recognition.onTap>[0])
      offset_ms += CHUNK_MS
    }
  }
  return {
    speaks,
    passes,
    look: fire,
    frames: () => frames,
  }
}

t.test('speech that waited while the process stood still is not split by silence', async t => {
  const one = listening()
  const lasts = (looks: number): void => {
    for (let at = 0; at < looks; at++) {
      one.passes(LOOK_MS)
      one.speaks(LOOK_MS)
      one.look()
    }
  }
  lasts(5)
  one.passes(2000)
  // Timers that fell due come first.
  one.look()
  one.speaks(2000)
  lasts(10)
  t.equal(one.frames(), 's'.repeat(3500 / CHUNK_MS))
})

t.test('silence fills what a silent peer does not send, but for the time that packets may take', async t => {
  const one = listening()
  one.passes(1000)
  one.speaks(1000)
  for (let at = 0; at < 19; at++) {
    one.passes(LOOK_MS)
    one.look()
  }
  t.equal(one.frames(), 's'.repeat(1000 / CHUNK_MS) + '.'.repeat((1900 - 300) / CHUNK_MS))
})

t.test('a process whose every look is late still ends an utterance', async t => {
  const one = listening()
  for (let at = 0; at < 5; at++) {
    one.passes(1000)
    one.look()
  }
  t.equal(one.frames(), '.'.repeat((4000 - 200) / CHUNK_MS))
})

t.test('the last words are awaited for a few seconds', async t => {
  let late = (): void => undefined
  const { clock } = handClock()
  const told: string[] = []
  const tell = (what: string) => () => {
    told.push(what)
  }
  let engine: RecognitionListener | null = null
  const recognition = new Recognition({
    request: { leg_id: 'leg', engine: 'test', tracks: 'inbound', last_words: true } as unknown as RecognizeRequest,
    stream: { closed: false, tap: tell('tap'), untap: tell('untap') } as unknown as AudioLine,
    tap_prefix: 'tap-',
    recognizer: {
      open: (_settings, listener) => {
        engine = listener
        return { audio: tell('audio'), finish: tell('finish'), stop: () => listener.ended(null) }
      },
    },
    clock: {
      ...clock,
      after: (_ms, run) => {
        late = run
        return { cancel: () => undefined }
      },
    },
    started: () => undefined,
    warned: detail => told.push(detail),
    heard: ({ text }) => told.push(text),
    ended: fault => told.push(`ended: ${fault}`),
  })
  const tap = { type: 'tap', tap_id: 'tap-i', samples: new Int16Array(160), offset_ms: 0 } as const
  const hears = () => recognition.onTap(tap as unknown as Parameters<typeof recognition.onTap>[0])
  const says = (text: string) => engine?.heard({ track: 'inbound', text, confidence: 1, final: true, language: null })
  hears()
  recognition.stop()
  recognition.stop()
  hears()
  says('good bye')
  late()
  says('too late')
  t.same(told, ['tap', 'audio', 'untap', 'finish', 'good bye', 'untap', 'ended: null'])
})

t.test('two prompts with a pause between them are two utterances of what a leg hears', async t => {
  const { clock, passes, fire } = handClock()
  const said: number[] = []
  const recognition = new Recognition({
    request: { leg_id: 'leg', engine: 'test', tracks: 'both', max_speech_ms: 60_000 } as unknown as RecognizeRequest,
    stream: { closed: false, tap: () => undefined, untap: () => undefined } as unknown as AudioLine,
    tap_prefix: 'tap-',
    recognizer: byUtterance(async ({ track, samples }) => {
      if (track === 'outbound') said.push(samples.length / (RATE_HZ / 1000))
      return { track, text: 'said', language: null, confidence: 1 }
    }),
    clock,
    ...{ started: () => undefined, heard: () => undefined, warned: () => undefined, ended: () => undefined },
  })
  const lasts = (ms: number, level: number): void => {
    for (let done = 0; done < ms; done += LOOK_MS) {
      passes(LOOK_MS)
      for (let at = 0; at < LOOK_MS && level > 0; at += CHUNK_MS) {
        const samples = new Int16Array((RATE_HZ * CHUNK_MS) / 1000).fill(level)
        const event = { type: 'tap', tap_id: 'tap-o', samples, offset_ms: 0 }
        recognition.onTap(event as Parameters<typeof recognition.onTap>[0])
      }
      fire()
    }
  }
  for (let prompt = 0; prompt < 2; prompt++) {
    lasts(1000, 8000)
    lasts(3000, 0)
  }
  await new Promise(setImmediate)
  t.equal(said.length, 2)
  t.ok(said.every(ms => ms >= 1000 && ms < 3000))
})

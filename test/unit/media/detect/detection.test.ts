import { Detection } from '../../../../media/detect/detection.ts'
import type { Stream } from '../../../../native/index.ts'
import { handClock } from '../../../support/hand-clock.ts'
import t from '../../../support/harness/index.ts'

const RATE_HZ = 8000
const LOOK_MS = 100
const SETTINGS = {
  mode: 'enable',
  timeout_ms: 30_000,
  speech_threshold_ms: 2400,
  speech_end_threshold_ms: 1200,
  silence_timeout_ms: 5000,
} as const

/** Returns noise as loud as speech, the same each time. */
function voice(ms: number): Int16Array {
  let drawn = 1
  return Int16Array.from({ length: (RATE_HZ * ms) / 1000 }, () => {
    drawn = (drawn * 48_271) % 0x7fff_ffff
    return (drawn % 8000) - 4000
  })
}

/** A detection at a clock that the test moves. */
function detecting() {
  const { clock, passes, fire } = handClock()
  const verdicts: string[] = []
  const stream = { closed: false, tap: () => undefined, untap: () => undefined } as unknown as Stream
  const detection = new Detection(stream, 'tap', SETTINGS, clock, verdict => verdicts.push(verdict.answered_by))
  const hears = (samples: Int16Array): void =>
    void detection.onTap({ type: 'tap', tap_id: 'tap', samples } as Parameters<typeof detection.onTap>[0])
  return { passes, fire, hears, verdicts }
}

t.test('a greeting that waited while the process stood still is a machine’s', async t => {
  const one = detecting()
  for (let at = 0; at < 5; at++) {
    one.passes(LOOK_MS)
    one.hears(voice(LOOK_MS))
    one.fire()
  }
  one.passes(2000)
  // Timers that fell due come first.
  one.fire()
  one.hears(voice(2000))
  t.same(one.verdicts, ['machine_start'])
})

t.test('a person who says a word and is silent is one, without a packet of silence', async t => {
  const one = detecting()
  one.passes(500)
  one.hears(voice(500))
  for (let at = 0; at < 20; at++) {
    one.passes(LOOK_MS)
    one.fire()
  }
  t.same(one.verdicts, ['human'])
})

import { Phrases } from '../../../media/relay/phrases.ts'
import { NoiseSuppression } from '../../../media/speech/noise-suppression.ts'
import { SpeechEdges } from '../../../media/speech/voice-activity.ts'
import { levelDbm0, tone } from '../../support/audio.ts'
import t from '../../support/harness/index.ts'

t.test('tokens become phrases as soon as a sentence or a long clause is complete', t => {
  const rows: [name: string, tokens: string[], phrases: string[]][] = [
    ['sentences', ['Hel', 'lo. ', 'How are', ' you? Fine'], ['Hello. ', 'How are you? ', 'Fine']],
    [
      'numbers, names and addresses stay whole',
      ['It is 3.5 at ', 'a.example for Dr. Who.'],
      ['It is 3.5 at a.example for Dr. Who.'],
    ],
    ['a short clause waits', ['Yes, ', 'sir.'], ['Yes, sir.']],
    [
      'a long clause is spoken',
      ['When all of the others have gone home, ', 'we stay.'],
      ['When all of the others have gone home, we stay.'],
    ],
    [
      'a longer clause is spoken by itself',
      ['When all of the others have finally gone home, ', 'we stay.'],
      ['When all of the others have finally gone home, ', 'we stay.'],
    ],
    ['lines', ['one\ntwo'], ['one\n', 'two']],
    ['other scripts', ['你好。', '再见'], ['你好。', '再见']],
    ['white space alone is not spoken', [' ', '\n', ' '], []],
  ]
  for (const [name, tokens, expected] of rows) {
    const phrases = new Phrases()
    const spoken = tokens.flatMap(token => phrases.add(token))
    const rest = phrases.end()
    t.strictSame(rest === null ? spoken : [...spoken, rest], expected, name)
    t.equal(phrases.end(), null)
  }
  const phrases = new Phrases()
  const cut = phrases.add('word '.repeat(100))
  t.equal(cut[0], 'word '.repeat(60), 'text without an end is cut at a space')
  t.end()
})

const noise = (ms: number, amplitude: number) => {
  let seed = 7
  return Int16Array.from({ length: ms * 8 }, () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
    return Math.round((seed / 2 ** 30 - 1) * amplitude)
  })
}
const add = (left: Int16Array, right: Int16Array) => left.map((sample, index) => sample + (right[index] ?? 0))
const joined = (...parts: Int16Array[]) => Int16Array.from(parts.flatMap(part => [...part]))

t.test('noise suppression takes a steady noise off, and keeps the voice above it', t => {
  const quieter = new NoiseSuppression()
  const voice = tone(300, 1000, 8000, -18)
  const line = joined(noise(2000, 600), add(voice, noise(1000, 600)), noise(1000, 600))
  const heard: number[] = []
  for (let at = 0; at + 160 <= line.length; at += 160) heard.push(...quieter.take(line.subarray(at, at + 160)))
  const after = Int16Array.from(heard)
  const level = (samples: Int16Array, from_ms: number, to_ms: number) =>
    levelDbm0(samples.subarray(from_ms * 8, to_ms * 8))
  t.ok(level(after, 1000, 2000) < level(line, 1000, 2000) - 8, 'the noise before it')
  t.ok(Math.abs(level(after, 2200, 2900) - level(voice, 200, 900)) < 1.5, 'the voice')
  t.ok(level(after, 3300, 4000) < level(line, 3300, 4000) - 8, 'the noise after it')
  const silence = new NoiseSuppression()
  t.ok(
    silence.take(new Int16Array(160)).every(sample => sample === 0),
    'silence stays silent',
  )
  t.end()
})

/** Returns what a detector reports, with the milliseconds at which each frame ends. */
function edges(audio: Int16Array, sensitivity: 'high' | 'medium' | 'low' = 'high'): string[] {
  const detector = new SpeechEdges(sensitivity, 600)
  const found: string[] = []
  for (let at = 0; at + 160 <= audio.length; at += 160) {
    const edge = detector.take(audio.subarray(at, at + 160))
    if (edge === 'began' || edge === 'ended') found.push(`${edge} ${(at + 160) / 8}`)
  }
  return found
}

t.test('speech begins after two voiced frames, or more when less sensitive, and ends after 600 ms of silence', t => {
  const vowel = tone(220, 400, 8000, -20)
  const audio = joined(new Int16Array(4000), vowel, new Int16Array(8000))
  t.strictSame(edges(audio), ['began 540', 'ended 1500'])
  t.strictSame(edges(audio, 'medium'), ['began 580', 'ended 1500'])
  t.strictSame(edges(audio, 'low'), ['began 660', 'ended 1500'])
  t.strictSame(edges(joined(new Int16Array(4000), vowel.subarray(0, 160), new Int16Array(8000))), [], 'a click')
  t.strictSame(edges(noise(3000, 3000)), [], 'loud noise of the line')
  t.strictSame(edges(joined(noise(1000, 200), add(vowel, noise(400, 200)), noise(1000, 200))), [
    'began 1040',
    'ended 2000',
  ])
  t.strictSame(edges(joined(tone(200, 3000, 8000, -50), vowel)), ['began 3040'], 'hum is no speech')
  t.end()
})

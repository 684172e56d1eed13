import { hearPress, INFO_ECHO_MS, type Press, TONES_ECHO_MS } from '../../../../../core/domain/calls/key-echo.ts'
import t from '../../../../support/harness/index.ts'

/** What counts of these presses. */
function counted<Way extends string>(presses: readonly Press<Way>[], limit_ms: number): string {
  let pending: readonly Press<Way>[] = []
  const counting = presses.filter(press => {
    const heard = hearPress(pending, press, limit_ms)
    pending = heard.pending
    return heard.isNew
  })
  return counting.map(({ digit }) => digit).join('')
}

t.test('a key received by INFO and in the media counts as one press, in either order', async t => {
  const info = (digit: string, at_ms: number) => ({ digit, way: 'info', held_ms: 0, at_ms }) as const
  const media = (digit: string, held_ms: number, at_ms: number) => ({ digit, way: 'media', held_ms, at_ms }) as const
  const rows: [title: string, pressed: Press<'info' | 'media'>[], counts: string][] = [
    ['INFO after the event', [media('5', 100, 1100), info('5', 1150)], '5'],
    ['INFO when the key goes down, the event when it is let go', [info('5', 1000), media('5', 3000, 4010)], '5'],
    ['both when a long press is let go', [media('5', 3000, 4010), info('5', 4030)], '5'],
    ['twice, both ways, out of step', [info('7', 0), info('7', 200), media('7', 100, 210), media('7', 100, 400)], '77'],
    ['two presses of one way', [info('1', 0), info('1', 150)], '11'],
    ['different keys', [info('1', 0), media('2', 100, 50)], '12'],
    ['long after each other', [info('1', 0), media('1', 100, 2900)], '11'],
  ]
  for (const [title, pressed, counts] of rows) t.equal(counted(pressed, INFO_ECHO_MS), counts, title)
})

t.test('an RFC 4733 event and its audible tones count as one press, however long the key is held', async t => {
  const event = (digit: string, held_ms: number, at_ms: number) => ({ digit, way: 'rfc4733', held_ms, at_ms }) as const
  const tones = (digit: string, at_ms: number) => ({ digit, way: 'inband', held_ms: 50, at_ms }) as const
  const rows: [title: string, pressed: Press<'rfc4733' | 'inband'>[], counts: string][] = [
    ['tones that a gateway lets through before the event', [tones('5', 60), event('5', 1000, 1000)], '5'],
    ['tones that come late', [event('5', 100, 100), tones('5', 300)], '5'],
    [
      'the same key again, soon after the tones of the first',
      [event('5', 100, 100), tones('5', 160), event('5', 100, 350)],
      '55',
    ],
    ['by tones long after an event', [event('5', 100, 100), tones('5', 600)], '55'],
  ]
  for (const [title, pressed, counts] of rows) t.equal(counted(pressed, TONES_ECHO_MS), counts, title)
})

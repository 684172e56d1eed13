import { WebSocket } from 'ws'
import { AppSocket } from '../../../media/relay/app-socket.ts'
import { Phrases } from '../../../media/relay/phrases.ts'
import { standingClock } from '../../support/clock.ts'
import t from '../../support/harness/index.ts'
import { relayApp } from '../../support/relay-app.ts'

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

t.test('an application that connects late gets the setup first, and then what happened before', async t => {
  const app = await relayApp(t)
  const nothing = () => undefined
  const socket = new AppSocket({ clock: standingClock(), message: nothing, fault: nothing, closed: nothing })
  t.teardown(() => socket.close())
  for (let digit = 0; digit < 200; digit++) socket.send({ type: 'dtmf', digit: String(digit) })
  const connected = new WebSocket(app.url)
  connected.once('open', () => {
    socket.open(connected, { type: 'setup' })
    socket.send({ type: 'interrupt' })
  })
  await app.told('interrupt')
  const told = app.messages.map(({ type, digit }) => (digit === undefined ? type : digit))
  t.same(told, ['setup', ...Array.from({ length: 100 }, (_value, digit) => String(digit)), 'interrupt'])
})

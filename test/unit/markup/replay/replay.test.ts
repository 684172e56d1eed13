import { replay } from '../../../../markup/replay/replay.ts'
import t from '../../../support/harness/index.ts'
import { call, response } from '../phone.ts'

t.test('replaying a log gives the same commands and the same run', async t => {
  const phone = call(t, response('<Gather numDigits="2" action="/a"><Say>x</Say></Gather>')).keys('12')
  phone.fetched(response('<Dial>+2348030000001</Dial>')).childAnswered().bridged().hangup()
  const result = replay(phone.log())
  t.equal(result.same, true)
  if (result.same) {
    t.equal(result.steps, phone.log().split('\n').length)
    t.strictSame(result.run, phone.run)
  }
})

t.test('reports the line, command and character of the first difference', async t => {
  const log = call(t, response('<Say>Hello</Say>', '<Say>World</Say>')).played().log()
  const changed = log.replace('"text":"World"', '"text":"Mars!"')
  t.match(replay(changed), {
    same: false,
    difference: {
      line: 3,
      event: 'play_ended',
      command: 0,
      logged: /Mars!/,
      replayed: /World/,
      detail: /character 64/,
    },
  })
  const fewer = log.replace(/,"commands":\[\{"type":"play","id":"play-3".*\]\}$/m, ',"commands":[]}')
  t.match(replay(fewer), { same: false, difference: { logged: null, replayed: /World/, detail: /a command more/ } })
  const more = log.replace(/\]\}$/, ',{"type":"hangup"}]}')
  t.match(replay(more), { same: false, difference: { logged: /hangup/, replayed: null, detail: /a command less/ } })
})

t.test('rejects a text that is not a run log', async t => {
  const log = call(t, response('<Pause/>')).log()
  const [first = '', second = ''] = log.split('\n')
  t.match(replay(''), { same: false, difference: { detail: 'the log is empty' } })
  t.match(replay('{'), { same: false, difference: { line: 1, detail: 'not JSON' } })
  t.match(replay('7'), { same: false, difference: { line: 1, detail: 'not a line of a run log' } })
  t.match(replay(second), { same: false, difference: { line: 1, detail: 'the first line has no facts' } })
  t.match(replay(`${first}\n${first}`), { same: false, difference: { line: 2, detail: 'a second start' } })
})

t.test('a log contains neither typed keys nor a card number that a document repeats', async t => {
  const card = '4111111111111111'
  const phone = call(t, response('<Gather method="GET" action="/a"/>')).keys(`${card}#`)
  phone.fetched(
    response(
      `<Say>You typed 4111 1111 1111 1111</Say><Gather sensitive="true" action="/paid?card=${card}" finishOnKey="*"/>`,
    ),
    'text/xml',
    `https://app.example.test/b?Digits=${card}`,
  )
  t.match(phone.last('play').items, [{ text: 'You typed 4111 1111 1111 1111' }], 'the call itself still has the number')
  phone.played().keys('975310*')
  t.match(phone.last('fetch'), { parameters: { Digits: '975310' }, secret: ['Digits', 'SpeechResult'] })
  const log = phone.log()
  t.notMatch(log.replace(/[ -]/g, ''), card)
  t.notMatch(log, '975310')
  const keys = [...log.matchAll(/"digit":"(.)"/g)].map(([, key]) => key)
  t.equal(keys.join(''), `${'x'.repeat(16)}#${'x'.repeat(6)}*`, 'only keys that end the input are logged')
})

t.test('a log contains no key of a bridged call except the one that ended it', async t => {
  const bridge = call(t, response('<Dial hangupOnStar="true">+2348030000001</Dial>')).childAnswered().bridged()
  bridge.keys('4*')
  t.match(bridge.log(), /"digit":"x"[\s\S]*"digit":"\*"/)
  t.notMatch(bridge.log(), '"digit":"4"')
})

t.test('a log contains no speech of a sensitive Gather', async t => {
  const facts = { speech: { recognizer: true } }
  const document = response('<Gather input="speech" sensitive="true" action="/a" partialResultCallback="/p"/>')
  const phone = call(t, document, facts)
  t.equal(phone.last('recognize').partial, null, 'partial results would be stored in the outbox')
  const { id } = phone.last('recognize')
  phone.send({ type: 'speech_result', id, text: 'nine seven', confidence: 1, language: null })
  t.match(phone.last('fetch').parameters, { SpeechResult: 'nine seven' })
  t.notMatch(phone.log(), 'nine seven')
})

import t from 'tap'
import { replay } from '../../../markup/replay/replay.ts'
import { call, response } from './phone.ts'

t.test('a log replays to the same commands, and to the same run', async t => {
  const phone = call(t, response('<Gather numDigits="2" action="/a"><Say>x</Say></Gather>')).keys('12')
  phone.fetched(response('<Dial>+2348030000001</Dial>')).childAnswered().bridged().hangup()
  const result = replay(phone.log())
  t.equal(result.same, true)
  if (result.same) {
    t.equal(result.steps, phone.log().split('\n').length)
    t.strictSame(result.run, phone.run)
  }
})

t.test('the first difference is shown: which line, which command, which character', async t => {
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

t.test('what is no log is said to be none', async t => {
  const log = call(t, response('<Pause/>')).log()
  const [first = '', second = ''] = log.split('\n')
  t.match(replay(''), { same: false, difference: { detail: 'the log is empty' } })
  t.match(replay('{'), { same: false, difference: { line: 1, detail: 'not JSON' } })
  t.match(replay('7'), { same: false, difference: { line: 1, detail: 'not a line of a run log' } })
  t.match(replay(second), { same: false, difference: { line: 1, detail: 'the first line has no facts' } })
  t.match(replay(`${first}\n${first}`), { same: false, difference: { line: 2, detail: 'a second start' } })
})

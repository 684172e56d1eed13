import { valueParams } from '../../../../../core/domain/sip/uri.ts'
import {
  hasToken,
  parseCSeq,
  readHops,
  readPrivacy,
  readRAck,
  readReasons,
  readSeconds,
  readSessionExpires,
  readToken,
  statusIn,
} from '../../../../../core/domain/sip/values.ts'
import t from '../../../../support/harness/index.ts'

t.test('seconds are read beside parameters and comments, and nothing else is a number', async t => {
  for (const text of ['120', ' 120 ', '120;x=y', '120 ; duration=3600', '120 (in a meeting)', '"120"'])
    t.equal(readSeconds(text), 120, text)
  for (const text of [null, undefined, '', 'x', '-1', '1e3', '1.5', '0 10', '99999999999', ';x=1'])
    t.equal(readSeconds(text), null, String(text))
  t.equal(readHops(' 70 '), 70)
  for (const text of [null, '256', 'many', '7 0']) t.equal(readHops(text), null, String(text))
})

t.test('session timers are read with parameters in any form and order', async t => {
  t.same(readSessionExpires('1800'), { seconds: 1800, refresher: null })
  t.same(readSessionExpires('1800 ;x="a;refresher=uac" ; Refresher = UAS'), { seconds: 1800, refresher: 'uas' })
  t.same(readSessionExpires('90;refresher=somebody'), { seconds: 90, refresher: null })
  for (const text of [null, '', 'x', '-1', '1e3', '99999999999', ';refresher=uac'])
    t.equal(readSessionExpires(text), null, String(text))
})

t.test('a token counts whole, in any case, and whatever its parameters are', async t => {
  t.ok(hasToken('timer, 100rel', '100REL'))
  t.ok(hasToken('path,,Replaces ;q=1', 'replaces'))
  t.notOk(hasToken('100relax, x-100rel', '100rel'))
  t.notOk(hasToken(null, '100rel'))
  t.equal(readToken('Terminated ; reason=timeout'), 'terminated')
  t.equal(readToken('refer;id=93809824'), 'refer')
  t.equal(readToken(null), '')
})

t.test('causes are read past texts with and without quotes, and texts are no causes', async t => {
  t.same(readReasons('q.850 ;cause=16 ;text="bye, then; cause=1", SIP;text=Call completed;cause="200"'), [
    { protocol: 'Q.850', cause: 16 },
    { protocol: 'SIP', cause: 200 },
  ])
  t.same(readReasons('SIP;text="cause=487"'), [])
  t.same(readReasons(null), [])
  t.same(
    [...valueParams('Q.850;text=Normal call clearing;cause=16;open="')],
    [
      ['text', 'Normal'],
      ['cause', '16'],
    ],
    'text that is no parameter is left out',
  )
})

t.test('numbers of requests and acknowledged responses are read, and malformed ones are none', async t => {
  t.same(parseCSeq('314159  INVITE'), { seq: 314159, method: 'INVITE' })
  for (const text of [undefined, '', '1', 'INVITE', '4294967296 INVITE', '-1 INVITE'])
    t.equal(parseCSeq(text), undefined)
  t.same(readRAck(' 776656 \t 1 INVITE'), { rseq: 776656, cseq: { seq: 1, method: 'INVITE' } })
  for (const text of [null, '', '1', '1 INVITE', '1 2', 'x 1 INVITE', '4294967296 1 INVITE'])
    t.equal(readRAck(text), null, String(text))
  t.equal(statusIn('SIP/2.0 200 OK\r\n'), 200)
  for (const text of ['SIP/2.0 2000 OK', 'INVITE sip:x SIP/2.0 200', '']) t.equal(statusIn(text), null, text)
})

t.test('privacy is read with semicolons, commas, quotes and capitals', async t => {
  t.same(readPrivacy('ID; "user" ,Critical;'), ['id', 'user', 'critical'])
  t.same(readPrivacy(null), [])
})

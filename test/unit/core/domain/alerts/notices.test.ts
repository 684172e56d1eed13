import { attempted, quietFor, smsRoute } from '../../../../../core/domain/alerts/index.ts'
import t from '../../../../support/harness/index.ts'

t.test('where short messages go', async t => {
  t.same(smsRoute('https://sms.example.com/send'), { via: 'http', url: 'https://sms.example.com/send' })
  t.same(smsRoute('voice:'), { via: 'voice' })
  t.same(smsRoute('sip:192.0.2.1'), { via: 'sip', scheme: 'sip', host: '192.0.2.1', parameters: '' })
  t.match(smsRoute('sips:gw.example.com:5061'), { scheme: 'sips', host: 'gw.example.com:5061' })
  t.match(smsRoute('sip:[2001:db8::1]:5060;transport=tcp'), {
    host: '[2001:db8::1]:5060',
    parameters: ';transport=tcp',
  })
  for (const wrong of ['', 'ftp://x', 'sip:', 'sip:a b', 'sip:user@host', 'sip:host;lr', 'voice:+234', 'nonsense'])
    t.equal(smsRoute(wrong), null, wrong)
})

t.test('a failed message is retried with a doubling delay, for a day', async t => {
  const created_ms = 1_000_000
  const after = (attempts: number, now_ms = created_ms, jitter = 0) =>
    attempted({ attempts, created_ms, failed: 'now' }, now_ms, jitter)
  t.same(after(1), { state: 'pending', next_attempt_ms: created_ms + 10_000 })
  t.same(after(2), { state: 'pending', next_attempt_ms: created_ms + 20_000 })
  t.equal(after(30).next_attempt_ms, created_ms + 3_600_000, 'an hour at most')
  t.equal(after(1, created_ms, 1).next_attempt_ms, created_ms + 12_000, 'and up to a fifth more')
  t.equal(after(30, created_ms + 23 * 3_600_000).state, 'pending')
  t.equal(after(30, created_ms + 23 * 3_600_000 + 1).state, 'failed')
  t.equal(attempted({ attempts: 1, created_ms, failed: 'final' }, created_ms, 0).state, 'failed')
  t.equal(attempted({ attempts: 9, created_ms, failed: false }, created_ms, 0).state, 'delivered')
})

t.test('quiet times', async t => {
  const night = { quiet_from: '22:00', quiet_to: '06:30' }
  const noon = { quiet_from: '12:00', quiet_to: '13:00' }
  const minutes = (severity: 'critical' | 'warning' | 'info', quiet: typeof night, clock: string) =>
    quietFor(severity, quiet, clock) / 60_000
  t.equal(minutes('warning', night, '21:59'), 0)
  t.equal(minutes('warning', night, '22:00'), 510)
  t.equal(minutes('info', night, '00:00'), 390)
  t.equal(minutes('warning', night, '06:29'), 1)
  t.equal(minutes('warning', night, '06:30'), 0)
  t.equal(minutes('critical', night, '00:00'), 0)
  t.equal(minutes('warning', noon, '12:15'), 45)
  t.equal(minutes('warning', noon, '11:59'), 0)
  t.equal(quietFor('warning', { quiet_from: null, quiet_to: null }, '00:00'), 0)
})

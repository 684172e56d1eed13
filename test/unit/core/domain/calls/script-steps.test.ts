import { stepsOf } from '../../../../../core/domain/calls/script-steps.ts'
import t from '../../../../support/harness/index.ts'

const at = '2026-11-25T10:00:00.000Z'
const log = (...lines: readonly object[]): string => lines.map(line => JSON.stringify({ at, ...line })).join('\n')
const told = (...lines: readonly object[]): string[] =>
  stepsOf(log(...lines)).map(({ detail }) => `${detail.verb}: ${detail.text}`)

t.test('tells what a script did, and what came of it', async t => {
  const items = [
    { kind: 'speech', text: 'Hello' },
    { kind: 'silence', ms: 1500 },
    { kind: 'url', url: 'https://a.example/x.wav?token=s3cret' },
  ]
  const lines = told(
    {
      facts: {},
      commands: [
        { type: 'answer', id: 'a-1' },
        { type: 'start_timer', id: 't-1', ms: 5 },
      ],
    },
    { event: { type: 'answered' }, commands: [{ type: 'play', id: 'p-2', items }] },
    {
      event: { type: 'play_ended' },
      commands: [{ type: 'dial_child', target: { kind: 'number', number: '+2348030000001' } }],
    },
    { event: { type: 'child_ended', status: 'busy' }, commands: [{ type: 'record', max_seconds: 30 }] },
    { event: { type: 'record_ended', recording: { duration_seconds: 7 } }, commands: [{ type: 'hangup' }] },
  )
  t.same(lines, [
    'Answer: the call is answered',
    ...['Say: Hello', 'Pause: 1.5 s', 'Play: https://a.example/x.wav', 'Dial: +2348030000001', 'Dial: ended: busy'],
    ...['Record: records for at most 30 s', 'Record: recorded 7 s', 'Hangup: the script ends the call'],
  ])
})

t.test('tells no key, no password, and no query of a URL', async t => {
  const uris = [{ uri: 'sip:ada:s3cret@192.0.2.1:5060;token=s3cret?X-A=s3cret', password: 's3cret' }]
  const lines = told(
    { event: { type: 'digit', digit: '7' }, commands: [{ type: 'send_digits', digits: '12w34' }] },
    { event: {}, commands: [{ type: 'dial_child', target: { kind: 'sip', uris } }] },
    { event: {}, commands: [{ type: 'start_stream', url: 'wss://a.example/s?key=s3cret' }] },
  )
  t.same(lines, ['Keys: a key was pressed', 'Play: sends 4 keys', 'Dial: ada@192.0.2.1', 'Stream: wss://a.example/s'])
})

t.test('leaves out lines that are cut off, of another form, or without a time', async t => {
  const whole = log({ event: {}, commands: [{ type: 'hangup' }] })
  t.equal(stepsOf(`${whole}\n{"at":"${at}","comm\n[]\nnull\n{"commands":[{"type":"hangup"}]}\n`).length, 1)
  t.same(stepsOf(''), [])
  const long = stepsOf(
    log({ event: {}, commands: [{ type: 'play', items: [{ kind: 'speech', text: 'x'.repeat(5000) }] }] }),
  )
  t.equal(long[0]?.detail.text.length, 200)
})

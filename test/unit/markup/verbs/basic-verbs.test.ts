import t from '../../../support/harness/index.ts'
import { BASE, call, RECORDING, response } from '../phone.ts'

t.test('fetches a document, runs its verbs in order and hangs up at its end', async t => {
  const phone = call(t, response('<Say>Hello</Say>', '<Pause length="2"/>', '<Play>beep.wav</Play>'))
  t.equal(phone.all[0]?.type, 'fetch')
  phone.expect('play')
  t.match(phone.last('play').items, [
    { kind: 'speech', text: 'Hello', ssml: null, voice: 'man', language: 'en-US', loop: 1 },
  ])
  phone.played().expect('start_timer')
  t.equal(phone.last('start_timer').ms, 2000)
  phone.timer().expect('play')
  t.strictSame(phone.last('play').items, [{ kind: 'url', url: 'https://app.example.test/ivr/beep.wav', loop: 1 }])
  phone.played().expect('hangup done')
  t.equal(phone.last('done').outcome, 'hangup')
  t.equal(phone.run.phase.name, 'done')
})

t.test('answers an unanswered call before the first verb that needs it', async t => {
  const phone = call(t, response('<Pause length="3"/>', '<Say>Hi</Say>'), { answered: false })
  phone.expect('start_timer', 'a leading Pause delays the answer')
  phone.timer().expect('answer')
  phone.answered().expect('play')
})

t.test('Reject rejects an unanswered call without answering it', async t => {
  for (const [verb, sip_code, status] of [
    ['<Reject/>', 603, 'no-answer'],
    ['<Reject reason="busy"/>', 486, 'busy'],
    ['<Reject reason="tired"/>', 603, 'no-answer'],
  ] as const) {
    const phone = call(t, response(verb, '<Say>never</Say>'), { answered: false })
    t.strictSame(phone.last('reject'), { type: 'reject', sip_code, status })
    t.equal(phone.last('done').outcome, 'rejected')
  }
  call(t, response('<Reject/>')).expect('hangup done', 'Reject hangs up an answered call')
})

t.test('Hangup and an empty document answer an unanswered call, then hang up', async t => {
  for (const text of [response('<Hangup/>'), '<Response/>', '']) {
    const phone = call(t, text, { answered: false })
    phone.expect('answer')
    phone.answered().expect('hangup done')
  }
})

t.test('Say uses the voices and languages of the engine and cuts long text', async t => {
  const cases: [string, object, string[]][] = [
    ['<Say voice="woman" language="fr-CA">Salut</Say>', { voice: 'woman', language: 'fr-CA' }, []],
    ['<Say voice="polly.joanna">a</Say>', { voice: 'polly.joanna', language: 'en-US' }, []],
    ['<Say voice="Polly.Nobody">a</Say>', { voice: 'man' }, ['warning 13511 2:1']],
    ['<Say language="zz-ZZ">a</Say>', { language: 'en-US' }, ['warning 13512 2:1']],
    ['<Say loop="0">a</Say>', { loop: 1000 }, []],
    ['<Say loop="x">a</Say>', { loop: 1 }, ['warning 13510 2:6']],
    ['<Say>  two \n  words </Say>', { text: 'two words' }, []],
    [`<Say>${'x'.repeat(5000)}</Say>`, { text: 'x'.repeat(4096) }, ['warning 13521 2:1']],
    [
      '<Say>Pay <say-as interpret-as="digits">12</say-as><break time="1s"/> &amp; <bad>go</bad></Say>',
      {
        text: 'Pay 12 & go',
        ssml: '<speak>Pay <say-as interpret-as="digits">12</say-as><break time="1s"/> &amp; go</speak>',
      },
      ['warning 12200 2:76'],
    ],
    [
      '<Say><prosody rate="warp">x</prosody></Say>',
      { ssml: '<speak><prosody>x</prosody></speak>' },
      ['warning 12200 2:15'],
    ],
    [
      '<Say>a<break time="10s"/>b<break time="2900s"/></Say>',
      { ssml: '<speak>a<break time="10s"/>b<break/></speak>' },
      ['warning 12200 2:34'],
    ],
    ['<Say><sub alias="World Wide Web">WWW</sub></Say>', { text: 'World Wide Web' }, []],
  ]
  for (const [verb, expected, notes] of cases) {
    const phone = call(t, response(verb))
    t.match(phone.last('play').items[0], expected, verb.slice(0, 60))
    t.strictSame(phone.notes(), notes, verb.slice(0, 60))
  }
  const silent = call(t, response('<Say> </Say>', '<Hangup/>'))
  t.equal(silent.types(), 'note hangup done', 'skips an empty Say')
  t.strictSame(silent.notes(), ['warning 13520 2:1'])
})

t.test('Play plays a URL, sends digits, and continues when the audio cannot be fetched', async t => {
  const phone = call(t, response('<Play loop="3">https://cdn.example.test/a.mp3</Play>', '<Say>b</Say>'))
  t.equal(phone.last('play').items[0]?.kind, 'url')
  t.match(phone.last('play').items[0], { loop: 3 })
  phone.played([{ item: 0, number: 11200, detail: '404' }]).expect('note play')
  t.strictSame(phone.notes(), ['warning 11200 2:1'])

  const digits = call(t, response('<Play digits="12w#"/>', '<Play digits="9">x.wav</Play>'))
  t.match(digits.last('send_digits'), { leg: 'self', digits: '12w#' })
  digits.send({ type: 'digits_sent', id: digits.last('send_digits').id })
  digits.send({ type: 'digits_sent', id: digits.last('send_digits').id })
  digits.expect('play', 'a Play with digits and a URL sends the digits first')

  const faults = call(t, response('<Play digits="12x">a.wav</Play>', '<Play/>', '<Play loop="-1">b.wav</Play>'))
  t.strictSame(faults.notes(), ['warning 13430 2:7', 'warning 12200 3:1', 'warning 13410 4:7'])
  t.equal(faults.types().endsWith('play'), true)

  const inline = call(t, response('<Play>a.wav</Play>', '<Hangup/>'), { inline: true })
  t.strictSame(inline.notes(), ['warning 11100 2:1'], 'a relative URL of an inline document cannot be played')
  inline.expect('note hangup done')
})

t.test('Pause waits for whole seconds: zero skips it, and a bad length means one second', async t => {
  call(t, response('<Pause length="0"/>', '<Hangup/>')).expect('hangup done')
  const bad = call(t, response('<Pause length="soon"/>'))
  t.equal(bad.last('start_timer').ms, 1000)
  t.strictSame(bad.notes(), ['warning 13910 2:8'])
})

t.test('Redirect replaces the document, and no later verb runs', async t => {
  const phone = call(t, response('<Redirect method="GET"> ../menu?a=1&amp;b=2 </Redirect>', '<Say>never</Say>'))
  t.match(phone.last('fetch'), { document: 'redirect', method: 'GET', url: 'https://app.example.test/menu?a=1&b=2' })
  phone.fetched('<Response><Redirect/></Response>')
  t.match(
    phone.last('fetch'),
    { method: 'POST', url: 'https://app.example.test/menu?a=1&b=2' },
    'an empty Redirect requests the current document',
  )

  const inline = call(t, response('<Redirect>next</Redirect>'), { inline: true })
  t.strictSame(inline.notes(), ['error 11100 2:1'])
  inline.expect('note play', 'plays the spoken notice of a failed application')
  inline.played().expect('hangup done')
})

t.test('Record requests its action after a recording; without one the next verb runs', async t => {
  const verb =
    '<Record action="/done" timeout="3" finishOnKey="#*" maxLength="60" playBeep="false" trim="do-not-trim" ' +
    'recordingStatusCallback="rec" recordingStatusCallbackEvent="completed absent"/>'
  const phone = call(t, response(verb, '<Say>nothing</Say>'))
  t.match(phone.last('record'), {
    beep: false,
    silence_seconds: 3,
    finish_on_key: '#*',
    max_seconds: 60,
    trim: false,
    callback: { url: 'https://app.example.test/ivr/rec', method: 'POST', events: ['completed', 'absent'] },
    transcribe: null,
  })
  phone.recorded(7, 'key', '#')
  t.match(phone.last('fetch'), { document: 'action', url: 'https://app.example.test/done', method: 'POST' })
  t.strictSame(phone.last('fetch').parameters, {
    RecordingUrl: RECORDING.url,
    RecordingSid: RECORDING.sid,
    RecordingDuration: '7',
    Digits: '#',
  })

  call(t, response(verb, '<Say>nothing</Say>')).recorded(null).expect('play')

  const own = call(t, response('<Record/>')).recorded(5)
  t.equal(own.last('fetch').url, BASE, 'without an action Record requests the current document')
  t.equal(own.last('fetch').parameters['Digits'], '')
  t.match(own.last('record'), {
    beep: true,
    silence_seconds: 5,
    finish_on_key: '1234567890*#',
    max_seconds: 3600,
    trim: true,
  })
})

t.test('a hang-up during Record sends the action request and ignores its response', async t => {
  for (const order of ['hangup first', 'recording first']) {
    const phone = call(t, response('<Record action="/done"/>', '<Say>never</Say>'))
    if (order === 'hangup first') {
      phone.hangup().expect('')
      t.equal(phone.run.phase.name, 'closing')
      phone.recorded(4, 'hangup')
    } else phone.recorded(4, 'hangup')
    phone.expect('callback done', order)
    t.match(phone.last('callback'), {
      about: 'action',
      url: 'https://app.example.test/done',
      parameters: { Digits: 'hangup' },
    })
    t.equal(phone.last('done').outcome, 'gone')
  }
  call(t, response('<Record/>')).recorded(null, 'hangup').expect('done', 'sends no request when nothing was recorded')
})

t.test('Record in an inline document without an absolute action ends the call with a warning', async t => {
  const phone = call(t, response('<Record/>', '<Say>never</Say>'), { inline: true }).recorded(3)
  phone.expect('note hangup done')
  t.strictSame(phone.notes(), ['warning 11100 2:1'])
})

t.test('each bad attribute of Record causes a warning with its own number', async t => {
  const verb =
    '<Record method="PUT" timeout="-" maxLength="1" finishOnKey="a" playBeep="maybe" trim="hair" ' +
    'recordingStatusCallback="ftp://x/" recordingStatusCallbackEvent="lost" transcribe="perhaps"/>'
  const phone = call(t, response(verb))
  const numbers = phone.notes().map(note => note.split(' ')[1])
  t.strictSame(numbers, ['13610', '13611', '13612', '13613', '13616', '13699', '13256', '13621', '13614'])
  t.match(phone.last('record'), {
    silence_seconds: 5,
    max_seconds: 3600,
    finish_on_key: '1234567890*#',
    callback: null,
  })
})

t.test(
  'transcription without an engine reports one failure; with an engine it limits Record to two minutes',
  async t => {
    const verb = '<Record transcribe="true" maxLength="300" transcribeCallback="/text"/>'
    const without = call(t, response(verb))
    t.strictSame(without.notes(), ['warning 13615 2:27', 'warning 13617 2:1'])
    t.equal(without.last('record').transcribe, null)
    without.recorded(5)
    t.match(without.last('callback'), { about: 'transcription', parameters: { TranscriptionStatus: 'failed' } })
    without.expect('callback fetch')

    const engine = call(t, response(verb), { speech: { transcriber: true } })
    t.match(engine.last('record'), {
      max_seconds: 120,
      transcribe: { callback: { url: 'https://app.example.test/text' } },
    })
    engine.recorded(5).expect('fetch')
  },
)

t.test('skips unknown and misplaced elements with a warning that has their place', async t => {
  const phone = call(t, response('<Spell>x</Spell>', '<Leave/>', '<Number>123</Number>', 'words', '<Hangup loop="2"/>'))
  t.strictSame(phone.notes(), [
    'warning 12200 1:1',
    'warning 12200 2:1',
    'warning 12200 3:1',
    'warning 12200 4:1',
    'warning 12200 6:9',
  ])
  phone.expect('note note note note note hangup done')
})

t.test('fetching the same document again does not repeat its warnings', async t => {
  const phone = call(t, response('<Say loop="x">a</Say>', '<Redirect/>'))
  t.equal(phone.notes().length, 1)
  phone.played().fetched(response('<Say loop="x">a</Say>', '<Redirect/>'))
  t.equal(phone.notes().length, 1)
})

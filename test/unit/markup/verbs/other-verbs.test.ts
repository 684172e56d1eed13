import t from '../../../support/harness/index.ts'
import { CHILD_SID, call, RECORDING, response } from '../phone.ts'

const NEW = { type: 'update', entry: { kind: 'inline', text: response('<Pause/>') } } as const

t.test('Enqueue answers, waits, and reports its result to the action', async t => {
  const verb =
    '<Enqueue action="/out" method="GET" waitUrl="/wait" waitUrlMethod="GET" maxQueueSize="7"> support </Enqueue>'
  const phone = call(t, response(verb, '<Say>never</Say>'), { answered: false })
  phone.expect('answer')
  phone.answered().expect('enqueue')
  t.match(phone.last('enqueue'), {
    name: 'support',
    max_size: 7,
    wait: { url: 'https://app.example.test/wait', method: 'GET' },
  })
  const { id } = phone.last('enqueue')
  phone.send({ type: 'queue_joined', id, queue_sid: 'QU1' })
  phone.send({ type: 'queue_bridged', id })
  phone.expect('')
  phone.send({ type: 'queue_left', id, result: 'bridged', queue_sid: 'QU1', queue_time_seconds: 31 })
  t.match(phone.last('fetch'), { method: 'GET', url: 'https://app.example.test/out' })
  t.strictSame(phone.last('fetch').parameters, { QueueResult: 'bridged', QueueSid: 'QU1', QueueTime: '31' })
})

t.test('Enqueue without an action continues with the next verb; a full queue causes a warning', async t => {
  const phone = call(t, response('<Enqueue>q</Enqueue>', '<Say>full</Say>'))
  t.match(phone.last('enqueue'), { max_size: null, wait: null })
  const { id } = phone.last('enqueue')
  phone.send({ type: 'queue_left', id, result: 'queue-full', queue_sid: null, queue_time_seconds: 0 })
  phone.expect('note play')
  t.strictSame(phone.notes(), ['warning 14207 2:1'])
})

t.test('a hang-up or update in a queue requests the action and ignores its response', async t => {
  const text = response('<Enqueue action="/out">q</Enqueue>')
  const gone = call(t, text).hangup()
  gone.expect('leave_queue done')
  t.strictSame(gone.last('leave_queue').farewell?.parameters, { QueueResult: 'hangup' })

  const told = call(t, text)
  const { id } = told.last('enqueue')
  told.send({ type: 'queue_left', id, result: 'hangup', queue_sid: 'QU1', queue_time_seconds: 9 })
  told.expect('callback done')
  t.match(told.last('callback').parameters, { QueueResult: 'hangup', QueueTime: '9' })

  const moved = call(t, text)
  moved.send(NEW)
  moved.expect('leave_queue start_timer')
  t.strictSame(moved.last('leave_queue').farewell?.parameters, { QueueResult: 'redirected' })

  const bridged = call(t, text)
  bridged.send({ type: 'queue_joined', id, queue_sid: 'QU1' })
  bridged.send({ type: 'queue_bridged', id })
  bridged.send(NEW)
  const { farewell } = bridged.last('leave_queue')
  t.strictSame(farewell?.parameters, { QueueResult: 'redirected-from-bridged', QueueSid: 'QU1' })
})

t.test('faults of Enqueue stop the document; workflows give an error result', async t => {
  for (const [verb, number] of [
    ['<Enqueue method="x">q</Enqueue>', 14201],
    ['<Enqueue waitUrl="ftp://x">q</Enqueue>', 14202],
    ['<Enqueue action="ftp://x">q</Enqueue>', 14203],
    ['<Enqueue></Enqueue>', 14204],
    [`<Enqueue>${'q'.repeat(65)}</Enqueue>`, 14205],
    ['<Enqueue waitUrlMethod="x">q</Enqueue>', 14206],
  ] as const) {
    const phone = call(t, response('<Pause length="0"/>', verb))
    phone.expect('note play')
    t.match(phone.last('note'), { number, level: 'error', line: 3 })
  }
  for (const verb of [
    '<Enqueue workflowSid="WW1" action="/out"/>',
    '<Enqueue action="/out"><Task>{}</Task></Enqueue>',
  ]) {
    const phone = call(t, response(verb))
    phone.expect('note fetch')
    t.match(phone.last('fetch').parameters, { QueueResult: 'error' })
  }
})

t.test('Refer reports the outcome of a transfer to its action', async t => {
  const text = response(
    '<Refer action="/r" method="GET"><Sip>sip:carol@pbx.example.test?X-Ticket=5&amp;Via=no</Sip></Refer>',
  )
  for (const [accepted, sip_code, notify_code, expected] of [
    [202, 202, 200, { ReferCallStatus: 'completed', ReferSipResponseCode: '202', NotifySipResponseCode: '200' }],
    [202, 202, 486, { ReferCallStatus: 'busy', ReferSipResponseCode: '202', NotifySipResponseCode: '486' }],
    [202, null, 503, { ReferCallStatus: 'failed', ReferSipResponseCode: '202', NotifySipResponseCode: '503' }],
    [202, 202, 180, { ReferCallStatus: 'failed', ReferSipResponseCode: '202', NotifySipResponseCode: '180' }],
    [null, 405, null, { ReferCallStatus: 'failed', ReferSipResponseCode: '405' }],
    [null, null, null, { ReferCallStatus: 'failed' }],
  ] as const) {
    const phone = call(t, text)
    phone.expect('note refer start_timer')
    t.match(phone.last('refer'), { uri: 'sip:carol@pbx.example.test', headers: [['X-Ticket', '5']] })
    t.equal(phone.last('start_timer').ms, 60_000)
    const { id } = phone.last('refer')
    if (accepted) phone.send({ type: 'refer_accepted', id, sip_code: accepted })
    phone.send({ type: 'refer_ended', id, sip_code, notify_code })
    phone.expect('cancel_timer fetch')
    t.strictSame(phone.last('fetch').parameters, expected)
    t.equal(phone.last('fetch').method, 'GET')
  }
  const silent = call(t, text)
  silent.send({ type: 'refer_accepted', id: silent.last('refer').id, sip_code: 202 })
  silent.timer().expect('fetch')
  t.strictSame(silent.last('fetch').parameters, { ReferCallStatus: 'failed', ReferSipResponseCode: '202' })
})

t.test('Refer without an action ends the leg after success and continues after failure', async t => {
  const text = response('<Refer><Sip>sip:carol@pbx.example.test</Sip></Refer>', '<Say>failed</Say>')
  const good = call(t, text)
  good.send({ type: 'refer_ended', id: good.last('refer').id, sip_code: 202, notify_code: 200 })
  good.expect('cancel_timer hangup done')
  t.equal(good.last('done').outcome, 'transferred')
  const bad = call(t, text)
  bad.send({ type: 'refer_ended', id: bad.last('refer').id, sip_code: 603, notify_code: null })
  bad.expect('cancel_timer play')
  const cut = call(t, text)
  cut.send(NEW)
  cut.expect('cancel_timer start_timer')
})

t.test('Refer needs a SIP leg and one Sip, and reports a hang-up as canceled', async t => {
  const text = response('<Refer action="/r"><Sip>sip:carol@pbx.example.test</Sip></Refer>')
  const web = call(t, text, { sip: false })
  web.expect('note fetch')
  t.strictSame(web.notes(), ['error 13801 2:1'])
  t.strictSame(web.last('fetch').parameters, { ReferCallStatus: 'failed' })
  const gone = call(t, text).hangup()
  gone.expect('cancel_timer callback done')
  t.strictSame(gone.last('callback').parameters, { ReferCallStatus: 'canceled' })
  const ringing = call(t, text)
  const { id } = ringing.last('refer')
  ringing.send({ type: 'refer_notified', id, notify_code: 100 })
  ringing.send({ type: 'refer_accepted', id, sip_code: 202 })
  ringing.send({ type: 'refer_notified', id, notify_code: 180 })
  ringing.hangup().expect('cancel_timer callback done')
  const told = { ReferCallStatus: 'canceled', ReferSipResponseCode: '202', NotifySipResponseCode: '180' }
  t.strictSame(ringing.last('callback').parameters, told)

  for (const refer of ['<Refer/>', '<Refer><Sip>carol</Sip></Refer>']) {
    call(t, response(refer, '<Hangup/>')).expect('note hangup done')
  }
  call(t, text, { answered: false }).expect('answer', 'REFER needs a confirmed dialog')
})

t.test('Connect Stream holds the call until the socket closes', async t => {
  const text = response(
    `<Connect action="/next"><Stream url="wss://ai.example.test/s?a=1" name="s" track="both_tracks"
      statusCallback="/st">` + '<Parameter name="lang" value="en"/></Stream></Connect>',
    '<Say>never</Say>',
  )
  const phone = call(t, text, { answered: false })
  phone.answered().expect('note start_stream', 'a stream both ways carries what the caller says, so its track warns')
  t.match(phone.last('start_stream'), {
    url: 'wss://ai.example.test/s?a=1',
    name: 's',
    track: 'inbound_track',
    both_ways: true,
    parameters: { lang: 'en' },
    status_callback: { url: 'https://app.example.test/st', method: 'POST' },
  })
  phone.send({ type: 'stream_ended', id: phone.last('start_stream').id, number: null, detail: null })
  phone.expect('fetch')
  t.equal(phone.last('fetch').document, 'action')

  const broken = call(t, text)
  broken.send({ type: 'stream_ended', id: broken.last('start_stream').id, number: 31902, detail: 'refused' })
  broken.expect('note fetch')
  t.strictSame(broken.notes(), ['warning 31941 2:25', 'error 31902 2:1'])

  call(t, text).hangup().expect('callback done')
  const moved = call(t, text)
  moved.send(NEW)
  moved.expect('stop_stream start_timer')
})

t.test('Connect ConversationRelay waits for the end of its session and tells the action about it', async t => {
  const relay =
    '<ConversationRelay url="wss://x.example/s" interruptible="false"><Language code="de-DE" voice="v"/></ConversationRelay>'
  const text = response(`<Connect action="/next">${relay}</Connect>`, '<Hangup/>')
  const phone = call(t, text)
  phone.expect('start_relay')
  const { id } = phone.last('start_relay')
  t.match(phone.last('start_relay'), { interruptible: 'none', languages: [{ code: 'de-DE', voice: 'v', model: null }] })
  const end = { type: 'relay_ended', session_id: 'VX1', duration_seconds: 7, number: null, detail: null } as const
  phone.send({ ...end, id, status: 'ended', hand_off: '{}' })
  phone.expect('fetch')
  const session = { SessionId: 'VX1', SessionStatus: 'ended', SessionDuration: '7' }
  t.strictSame(phone.last('fetch').parameters, { ...session, HandoffData: '{}' })

  const broken = call(t, text)
  broken.send({ ...end, id, status: 'failed', hand_off: null, number: 64102, detail: 'refused' })
  broken.expect('note fetch')
  t.match(broken.last('fetch').parameters, { SessionStatus: 'failed', ErrorCode: '64102', ErrorMessage: 'refused' })

  const left = call(t, text)
  left.hangup().expect('')
  left.send({ ...end, id, status: 'completed', hand_off: null })
  left.expect('callback done')
  t.match(left.last('callback').parameters, { ...session, SessionStatus: 'completed' })

  const moved = call(t, text)
  moved.send(NEW)
  moved.expect('stop_relay start_timer')
  const settings = `welcomeGreetingInterruptible="dtmf" ttsProvider="espeak-ng" transcriptionProvider="url" ttsLanguage="en-GB" transcriptionLanguage="fr-FR" voice="woman" speechModel="telephony" interruptSensitivity="low" reportInputDuringAgentSpeech="dtmf" preemptible="true" profanityFilter="false" noiseSuppression="true" debug="x" elevenlabsTextNormalization="on" intelligenceService="x"`
  const all = call(t, response(`<Connect><ConversationRelay url="wss://x.example/s" ${settings}/></Connect>`))
  t.match(all.last('start_relay'), {
    ...{ greeting_interruptible: 'dtmf', tts_language: 'en-GB', transcription_language: 'fr-FR', voice: 'woman' },
    ...{ model: 'telephony', sensitivity: 'low', report: 'dtmf', preemptible: true, profanity_filter: false },
  })
  const providers = 'ttsProvider="Cloud" transcriptionProvider="Cloud" speechModel="x"'
  const elsewhere = call(t, response(`<Connect>${relay.replace('<Language', `<Language ${providers}`)}</Connect>`))
  t.match(elsewhere.notes(), [/^warning 64101/])
  const named = call(t, response(`<Connect>${relay.replace('url=', 'ttsProvider="Cloud" url=')}</Connect>`))
  t.strictSame(named.notes(), ['warning 64101 2:10'], 'an unknown provider causes a warning')
  const choices = { tts: ['openai', 'espeak-ng'], stt: ['url', 'pocketsphinx'] }
  const chosen = call(
    t,
    response(
      `<Connect>${relay.replace('url=', 'ttsProvider="ESPEAK-NG" transcriptionProvider="pocketsphinx" url=')}</Connect>`,
    ),
    {
      speech: { providers: { tts: 'openai', stt: 'url' }, choices },
    },
  )
  t.match(chosen.last('start_relay'), { tts_engine: 'espeak-ng', stt_engine: 'pocketsphinx' })
  t.strictSame(chosen.notes(), [], 'an engine of the installation serves')
  const without = call(t, response('<Connect action="/next"><ConversationRelay url="https://x"/></Connect>'))
  without.expect('note fetch')
  t.strictSame(without.notes(), ['warning 64101 2:44'])
})

t.test('Connect continues at once with an unsupported noun, no noun or a bad URL', async t => {
  for (const noun of ['Room', 'VirtualAgent', 'Conversation', 'Autopilot', 'AiSession', 'Assistant']) {
    const phone = call(t, response(`<Connect action="/next"><${noun}><Deep/></${noun}></Connect>`))
    phone.expect('note fetch')
    t.strictSame(phone.notes(), ['warning 12200 2:25'])
  }
  call(t, response('<Connect/>', '<Hangup/>')).expect('note hangup done')
  const bad = call(t, response('<Connect><Stream url="https://x.example"/></Connect>', '<Hangup/>'))
  t.strictSame(bad.notes(), ['warning 31922 2:18'])
  const none = call(t, response('<Connect><Stream/></Connect>', '<Hangup/>'))
  t.strictSame(none.notes(), ['warning 31923 2:10'])
})

t.test('a transcription runs on the engine that its document names, when the installation has it', async t => {
  const speech = { transcriber: true, choices: { tts: [], stt: ['url', 'pocketsphinx'] } }
  const started = (name: string) =>
    call(t, response(`<Start><Transcription transcriptionEngine="${name}"/></Start>`, '<Pause/>'), { speech })
  t.equal(started('url').last('start_transcription').engine, 'url')
  const other = started('Cloud')
  t.equal(other.last('start_transcription').engine, undefined)
  t.match(other.notes(), [/^warning 12200/])
  t.match(
    started('pocketsphinx').all.filter(({ type }) => type === 'start_transcription'),
    [],
  )
})

t.test('Start starts background activities, and Stop ends them by name', async t => {
  const phone = call(
    t,
    response(
      '<Start><Stream url="wss://x.example/s" name="a" track="both_tracks"/></Start>',
      '<Start><Recording channels="mono" track="inbound" trim="do-not-trim" recordingStatusCallback="/r"/></Start>',
      '<Pause/>',
      '<Stop><Stream name="a"/></Stop>',
      '<Stop><Recording/></Stop>',
      '<Stop><Stream name="a"/></Stop>',
    ),
  )
  phone.expect('start_stream start_recording start_timer')
  t.match(phone.last('start_stream'), { both_ways: false, track: 'both_tracks', name: 'a' })
  t.match(phone.last('start_recording'), {
    source: 'StartCallRecordingAPI',
    child: null,
    channels: 1,
    track: 'inbound',
    trim: false,
    callback: { url: 'https://app.example.test/r' },
  })
  phone.timer().expect('stop_stream stop_recording note hangup done')
  t.equal(phone.last('stop_stream').id, phone.last('start_stream').id)
  t.strictSame(phone.notes(), ['warning 12200 7:7'], 'Stop warns about an activity that does not run')
})

t.test('an activity that ends by itself is removed, and a fault is noted', async t => {
  const phone = call(
    t,
    response('<Start><Stream url="wss://x.example/s"/><Recording/></Start>', '<Pause/>', '<Stop><Stream/></Stop>'),
  )
  phone.send({ type: 'stream_ended', id: phone.last('start_stream').id, number: 31901, detail: 'timeout' })
  phone.expect('note')
  phone.send({ type: 'recording_started', id: phone.last('start_recording').id, ...RECORDING })
  phone.expect('')
  phone.send({ type: 'recording_ended', id: phone.last('start_recording').id, recording: null })
  t.strictSame(phone.run.activities, [])
  phone.timer()
  t.match(phone.notes().at(-1), 'warning 12200 4:7')
})

t.test('a duplicate name, and a Stop without a name among several, cause warnings', async t => {
  const stream = '<Start><Stream url="wss://x.example/s" name="a"/></Start>'
  const phone = call(t, response(stream, stream, stream.replace('"a"', '"b"'), '<Stop><Stream/></Stop>', '<Pause/>'))
  phone.expect('start_stream note start_stream note start_timer')
  t.strictSame(phone.notes(), ['warning 12200 3:8', 'warning 12200 5:7'])
})

t.test(
  'Siprec without a recording server and Transcription without an engine report an error to the callback',
  async t => {
    const siprec =
      '<Start><Siprec name="s" connectorName="rec" statusCallback="/s"><Parameter name="k" value="v"/></Siprec></Start>'
    const without = call(t, response(siprec, '<Pause/>'))
    without.expect('note callback start_timer')
    t.match(without.last('callback'), { about: 'siprec', parameters: { SiprecEvent: 'siprec-error', SiprecName: 's' } })
    const server = call(t, response(siprec, '<Pause/>', '<Stop><Siprec name="s"/></Stop>'), {
      siprec_connectors: ['rec'],
    })
    t.match(server.last('start_siprec'), { connector: 'rec', track: 'both_tracks', parameters: { k: 'v' } })
    server.timer().expect('stop_siprec hangup done')

    const text =
      '<Start><Transcription name="t" languageCode="fr-FR" inboundTrackLabel="agent" partialResults="true" ' +
      'hints="a, b" statusCallbackUrl="/t"/></Start>'
    const deaf = call(t, response(text, '<Pause/>'))
    deaf.expect('note callback start_timer')
    t.match(deaf.last('callback'), {
      about: 'transcription',
      parameters: { TranscriptionEvent: 'transcription-error', TranscriptionName: 't' },
    })
    const stop = '<Stop><Transcription/></Stop>'
    const engine = call(t, response(text, '<Pause/>', stop), { speech: { transcriber: true } })
    t.match(engine.last('start_transcription'), {
      language: 'fr-FR',
      inbound_label: 'agent',
      outbound_label: null,
      partial_results: true,
      hints: ['a', 'b'],
      punctuation: true,
      profanity_filter: true,
      track: 'both_tracks',
    })
    engine.timer().expect('stop_transcription hangup done')
    engine.send({ type: 'activity_ended', id: engine.last('start_transcription').id, number: null, detail: 'late' })
    engine.expect('')
  },
)

t.test('Start and Stop warn about a wrong element inside, or none', async t => {
  const phone = call(t, response('<Start><Dial/></Start>', '<Stop><Echo/></Stop>', '<Start/>', '<Stop/>'))
  t.strictSame(
    phone.notes().map(n => n.split(' ')[1]),
    ['14300', '12200', '14300', '12200', '12200', '12200'],
  )
})

t.test('Echo answers and runs until the call ends', async t => {
  const phone = call(t, response('<Echo/>', '<Say>never</Say>'), { answered: false })
  phone.answered().expect('start_echo')
  phone.hangup().expect('done')
})

t.test('Sms, Pay and Prompt cause a warning and send a failure to the action', async t => {
  for (const [verb, parameters] of [
    ['Sms', { SmsStatus: 'failed' }],
    ['Pay', { Result: 'payment-connector-error' }],
    ['Prompt', { Result: 'payment-connector-error' }],
  ] as const) {
    const phone = call(t, response(`<${verb} action="/a"><Inside/>x</${verb}>`))
    phone.expect('note fetch')
    t.strictSame(phone.last('fetch').parameters, parameters)
    call(t, response(`<${verb}/>`, '<Hangup/>'), { answered: false }).expect('note answer')
  }
})

t.test('ignores events about unknown children and bridges', async t => {
  const phone = call(t, response('<Dial>+2348030000001</Dial>'))
  phone.send({ type: 'child_answered', child: 'child-77', call_sid: CHILD_SID })
  t.match(phone.unexpected, /child_answered for unknown id/)
  phone.send({ type: 'bridged', child: phone.last('dial_child').child })
  phone.expect('')
  phone.send({ type: 'whisper_ended', child: phone.last('dial_child').child, outcome: 'finished' })
  phone.expect('')
})

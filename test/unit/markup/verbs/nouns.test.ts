import { checkDocument } from '../../../../markup/check.ts'
import t from '../../../support/harness/index.ts'
import { BASE, call, response } from '../phone.ts'

const WHISPER = 'url="/w" method="GET"'
const STATUS = 'statusCallback="/s" statusCallbackMethod="GET" statusCallbackEvent="answered"'

t.test('Number, Sip, Client and Application accept a whisper and status callbacks', async t => {
  for (const noun of [
    `<Sip url="/w" method="GET" statusCallback="/s" statusCallbackMethod="GET"
      statusCallbackEvent="answered">sip:a@b.example</Sip>`,
    `<Client url="/w" method="GET" statusCallback="/s" statusCallbackMethod="GET"
      statusCallbackEvent="answered">alice</Client>`,
    `<Application url="/w" method="GET" statusCallback="/s" statusCallbackMethod="GET"
      statusCallbackEvent="answered">app_1</Application>`,
    `<Number ${WHISPER} ${STATUS}>+2348030000001</Number>`,
  ]) {
    const phone = call(t, response(`<Dial>${noun}</Dial>`))
    t.match(phone.last('dial_child').status_callback, {
      url: 'https://app.example.test/s',
      method: 'GET',
      events: ['answered'],
    })
    phone.childAnswered().expect('cancel_timer whisper')
    t.match(phone.last('whisper'), { url: 'https://app.example.test/w', method: 'GET' })
  }
})

t.test('Sip accepts machine detection', async t => {
  const phone = call(
    t,
    response(
      `<Dial><Sip machineDetection="Enable" machineDetectionTimeout="10" machineDetectionSpeechThreshold="1000"
        machineDetectionSpeechEndThreshold="500" machineDetectionSilenceTimeout="2000" amdStatusCallback="/amd"
        amdStatusCallbackMethod="GET">sip:a@b.example</Sip></Dial>`,
    ),
  )
  t.match(phone.last('dial_child').machine_detection, {
    mode: 'Enable',
    timeout_seconds: 10,
    speech_threshold_ms: 1000,
    speech_end_threshold_ms: 500,
    silence_timeout_ms: 2000,
    callback: { url: 'https://app.example.test/amd', method: 'GET' },
  })
})

t.test('callbacks use the method and the events of the document', async t => {
  const dial = call(
    t,
    response(
      `<Dial record="true" recordingStatusCallback="/r" recordingStatusCallbackMethod="GET"
        recordingStatusCallbackEvent="in-progress,absent">+2348030000001</Dial>`,
    ),
  )
  dial.childAnswered().bridged()
  const expected = { url: 'https://app.example.test/r', method: 'GET', events: ['in-progress', 'absent'] }
  t.match(dial.last('start_recording').callback, expected)

  const room = call(
    t,
    response(
      `<Dial><Conference statusCallback="/c" statusCallbackMethod="GET" recordingStatusCallback="/r"
        recordingStatusCallbackMethod="GET"
        recordingStatusCallbackEvent="in-progress absent">r</Conference></Dial>`,
    ),
  )
  t.match(room.last('join_conference'), {
    status_callback: { url: 'https://app.example.test/c', method: 'GET', events: [] },
    recording_callback: expected,
  })

  const recording = call(
    t,
    response(
      `<Start><Recording recordingStatusCallback="/r" recordingStatusCallbackMethod="GET"
        recordingStatusCallbackEvent="in-progress absent"/></Start>`,
    ),
  )
  t.match(recording.last('start_recording').callback, expected)

  const stream = call(
    t,
    response('<Start><Stream url="wss://x.example" statusCallback="/s" statusCallbackMethod="GET"/></Start>'),
  )
  t.match(stream.last('start_stream').status_callback, { url: 'https://app.example.test/s', method: 'GET' })
  const siprec = call(t, response('<Start><Siprec statusCallback="/s" statusCallbackMethod="GET"/></Start>'), {
    siprec_connectors: ['vault'],
  })
  t.match(siprec.last('start_siprec'), { connector: 'vault', status_callback: { method: 'GET' } })
  const text = call(
    t,
    response(`<Start><Transcription statusCallbackUrl="/s"
    statusCallbackMethod="GET"/></Start>`),
    {
      speech: { transcriber: true },
    },
  )
  t.match(text.last('start_transcription').status_callback, { url: 'https://app.example.test/s', method: 'GET' })
  const connect = call(
    t,
    response(
      `<Connect action="/a" method="GET"><Stream url="wss://x.example" statusCallback="/s"
        statusCallbackMethod="GET"/></Connect>`,
    ),
  )
  t.match(connect.last('start_stream').status_callback, { method: 'GET' })
  connect.send({ type: 'stream_ended', id: connect.last('start_stream').id, number: null, detail: null })
  t.match(connect.last('fetch'), { method: 'GET', url: 'https://app.example.test/a' })
})

t.test('the check reports attributes without effect, and calls do not note them', async t => {
  const documents: [string, number][] = [
    ['<Gather debug="true" action="/a"/>', 1],
    [
      `<Dial callReason="x" recordingConfigurationId="x" events="x" passports="x"><Number
        byoc="BY1">+2348030000001</Number></Dial>`,
      5,
    ],
    ['<Dial><Conference region="ie1" eventCallbackUrl="/old">r</Conference></Dial>', 2],
    ['<Dial><Queue postWorkActivitySid="WA1">q</Queue></Dial>', 1],
    ['<Dial><Application customerId="x" copyParentTo="true">app_1</Application></Dial>', 2],
    ['<Connect><Stream url="wss://x.example" connectorName="c" audioFormat="a" sampleRate="8000"/></Connect>', 3],
    [
      `<Start action="/a" method="GET"><Stream url="wss://x.example" connectorName="c" audioFormat="a"
        sampleRate="8000"/></Start>`,
      5,
    ],
    ['<Start><Transcription intelligenceService="GA1"/></Start>', 1],
    [
      `<Stop action="/a" method="GET"><Stream name="s" url="wss://x.example" track="both_tracks"
        statusCallback="/s" statusCallbackMethod="GET" connectorName="c" audioFormat="a"
        sampleRate="8000"/></Stop>`,
      9,
    ],
    [
      `<Stop><Recording name="r" channels="mono" track="both" trim="do-not-trim" recordingStatusCallback="/r"
        recordingStatusCallbackMethod="GET" recordingStatusCallbackEvent="absent"/></Stop>`,
      6,
    ],
    [
      `<Stop><Siprec name="s" connectorName="c" track="both_tracks" statusCallback="/s"
        statusCallbackMethod="GET"/></Stop>`,
      4,
    ],
    [
      `<Stop><Transcription name="t" track="both_tracks" languageCode="en" inboundTrackLabel="a"
        outboundTrackLabel="b" partialResults="true" transcriptionEngine="e" speechModel="m" hints="h"
        profanityFilter="true" enableAutomaticPunctuation="true" statusCallbackUrl="/s"
        statusCallbackMethod="GET" intelligenceService="G"/></Stop>`,
      13,
    ],
  ]
  for (const [verb, count] of documents) {
    const { advice } = checkDocument(response(verb), { url: BASE })
    t.equal(advice.filter(a => a.rule === 'no_effect' && a.number === null).length, count, verb.slice(0, 60))
    const phone = call(t, response(verb), { speech: { transcriber: true } })
    const notes = phone.notes().filter(note => !verb.startsWith('<Stop') || !note.startsWith('warning 12200 2:'))
    t.strictSame(notes, [], verb.slice(0, 60))
  }
})

t.test('an attribute that documents expect something of, and that does nothing here, leaves a warning', async t => {
  for (const [verb, name] of [
    ['<Dial><Conference jitterBufferSize="small">r</Conference></Dial>', 'jitterBufferSize of <Conference>'],
    ['<Dial><Sip>sip:a@b.example<Parameter name="a" value="b"/></Sip></Dial>', '<Parameter> inside <Sip>'],
  ] as const) {
    const phone = call(t, response(verb), { speech: { transcriber: true } })
    t.match(phone.last('note'), { level: 'warning', number: 12200 }, name)
    t.ok(phone.last('note').detail.startsWith(`${name} has no effect here`), name)
  }
})

t.test('the check reports unsupported verbs and nouns', async t => {
  for (const text of [
    '<Sms action="/a" method="GET">x</Sms>',
    '<Pay action="/a" method="GET"/>',
    '<Prompt action="/a" method="GET"/>',
    '<Connect><Room/></Connect>',
    '<Connect><VirtualAgent/></Connect>',
    '<Connect><Conversation/></Connect>',
    '<Connect><Autopilot/></Connect>',
    '<Connect><AiSession/></Connect>',
    '<Connect><ConversationRelaySession/></Connect>',
    '<Connect><Assistant><Parameter name="a" value="b"/></Assistant></Connect>',
    '<Dial><Sim>x</Sim></Dial>',
    '<Dial><WhatsApp>+2348030000001</WhatsApp></Dial>',
    '<Enqueue workflowSid="WW1"/>',
    '<Enqueue><Task>{}</Task></Enqueue>',
  ]) {
    const { ok, advice } = checkDocument(response(text), { url: BASE })
    t.equal(ok, true)
    t.strictSame(
      advice.map(a => a.rule),
      ['not_supported'],
      text,
    )
  }
  const sms = call(t, response('<Sms action="/a" method="GET">x</Sms>'))
  t.match(sms.last('fetch'), { method: 'GET', parameters: { SmsStatus: 'failed' } })
})

t.test('limits the parameters, headers and credentials of a noun', async t => {
  const long = 'v'.repeat(490)
  const stream = call(
    t,
    response(`<Start><Stream url="wss://x.example"><Parameter name="a-long-name" value="${long}"/></Stream></Start>`),
  )
  t.match(stream.notes(), [/warning 12200 2:/])
  t.match(call(t, response('<Dial><Client><Identity>a</Identity><Parameter value="x"/></Client></Dial>')).notes(), [
    /warning 12200 2:/,
  ])
  const headers = '<Header name="X-A" value="VALUE"/>'.replace('VALUE', 'v'.repeat(600))
  const sip = call(
    t,
    response(
      `<Dial><Sip><Uri priority="1" weight="2" username="u"
        password="p">sip:a@b.example</Uri><Headers>${headers}${headers}</Headers></Sip></Dial>`,
    ),
  )
  t.match(sip.notes(), [/warning 13253/])
  const target = sip.last('dial_child').target
  t.equal(target.kind === 'sip' && target.headers.length, 1)
  const secret = call(t, response(`<Dial><Sip username="${'u'.repeat(256)}">sip:a@b.example</Sip></Dial>`))
  t.match(secret.notes(), [/warning 13249/], 'does not call a child with invalid credentials')
  t.equal(
    secret.all.some(command => command.type === 'dial_child'),
    false,
  )
})

t.test('accepts the SIP URIs that we can call', async t => {
  for (const [uri, good] of [
    ['sip:bob@pbx.example.test', true],
    ['sips:bob@pbx.example.test:5061;transport=tls', true],
    ['sip:+2348030000001@192.0.2.7;user=phone', true],
    ['sip:[2001:db8::1]:5060', true],
    ['SIP:bob@pbx.example.test;transport=TCP', true],
    ['tel:+2348030000001', false],
    ['sip:bob smith@pbx.example.test', false],
    ['sip:bob@pbx.example.test;transport=sctp', false],
    ['sip:', false],
    [`sip:${'b'.repeat(260)}@pbx.example.test`, false],
    ['sip:bob@pbx.example.test\r\nX: y', false],
  ] as const) {
    const phone = call(t, response(`<Dial><Sip>${uri.replace('\r\n', '&#13;&#10;')}</Sip></Dial>`))
    t.equal(
      phone.all.some(command => command.type === 'dial_child'),
      good,
      uri.slice(0, 50),
    )
  }
})

t.test('drops a header with control characters in its value', async t => {
  const phone = call(t, response('<Dial><Sip>sip:bob@pbx.example.test?X-A=1%0d%0aVia:x&amp;X-B=%zz</Sip></Dial>'))
  const target = phone.last('dial_child').target
  t.strictSame(target.kind === 'sip' && target.headers, [['X-B', '%zz']])
  t.match(phone.notes(), [/warning 13252/])
})

t.test('an empty URL, text or list of events is an attribute that is not given', async t => {
  const none = 'url="" statusCallback="" statusCallbackEvent="" amdStatusCallback=""'
  const dial = call(
    t,
    response(
      '<Dial action="" referUrl="" record="true" recordingStatusCallback="">' +
        `<Number machineDetection="Enable" ${none}>+2348030000001</Number></Dial>`,
      '<Say>next</Say>',
    ),
  )
  t.match(dial.last('dial_child'), { status_callback: null, machine_detection: { callback: null } })
  dial.childAnswered().expect('cancel_timer stop_ring bridge', 'without a whisper')
  dial.bridged()
  t.equal(dial.last('start_recording').callback, null)
  const { child } = dial.last('dial_child')
  dial.send({ type: 'refer_received', leg: child, target: '<sip:x@host>', headers: {} })
  t.equal(dial.last('answer_refer').sip_code, 603)
  dial.childEnded('completed')
  dial.send({ type: 'activity_ended', id: dial.last('start_recording').id, number: null, detail: '' })
  dial.expect('play', 'the next verb, without an action')
  t.same(dial.notes(), ['warning 13802 2:1'])

  const told = call(
    t,
    response('<Dial><Number statusCallback="/s" statusCallbackEvent="">+2348030000001</Number></Dial>'),
  )
  t.same(told.last('dial_child').status_callback?.events, ['completed'])

  const queued = call(t, response('<Enqueue action=" " waitUrl="" workflowSid="">q</Enqueue>'))
  t.equal(queued.last('enqueue').wait, null)
  const dequeues = call(t, response('<Dial><Queue url="" reservationSid="">q</Queue></Dial>'))
  t.equal(dequeues.last('dequeue').whisper, null)

  const room = call(t, response('<Dial><Conference participantLabel="" waitUrl="">r</Conference></Dial>'))
  t.match(room.last('join_conference'), { label: null, wait: 'silence' })

  const starts = call(t, response('<Start><Recording name=""/><Recording name=""/></Start>'))
  t.equal(starts.all.filter(({ type }) => type === 'start_recording').length, 2)
  t.same(
    [queued, dequeues, room, starts].flatMap(phone => phone.notes()),
    [],
  )

  const stream = call(t, response('<Connect><Stream url=""/></Connect>'))
  t.same(stream.notes(), ['warning 31923 2:10'])

  const inline = call(t, response('<Gather action="" numDigits="1"/>'), { inline: true })
  inline.keys('1')
  t.same(inline.notes(), ['error 11100 2:1'], 'as without an action')
})

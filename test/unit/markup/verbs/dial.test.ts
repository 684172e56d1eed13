import t from '../../../support/harness/index.ts'
import { CHILD_SID, call, RECORDING, response } from '../phone.ts'

const ONE = '<Dial action="/after">+234 803 000-0001</Dial>'
const TWO = '<Dial action="/after"><Number>+2348030000001</Number><Sip>sip:bob@pbx.example.test</Sip></Dial>'
const SEQUENTIAL = TWO.replace('<Dial', '<Dial sequential="true" timeout="10"')

t.test('Dial rings and bridges a plain number and requests the action at its end', async t => {
  const phone = call(t, response(ONE, '<Say>never</Say>'))
  phone.expect('ring dial_child start_timer')
  t.match(phone.last('dial_child'), {
    target: { kind: 'number', number: '+2348030000001' },
    caller_id: '+2348030000099',
    caller_id_source: 'parent',
    status_callback: null,
    machine_detection: null,
  })
  t.equal(phone.last('start_timer').ms, 30_000)
  phone.child('initiated').expect('')
  phone.child('ringing').expect('')
  phone.childAnswered().expect('cancel_timer stop_ring bridge')
  phone.bridged().expect('start_timer')
  t.equal(phone.last('start_timer').ms, 14_400_000)
  phone.childEnded('completed').expect('cancel_timer fetch')
  t.match(phone.last('fetch'), { document: 'action', url: 'https://app.example.test/after', method: 'POST' })
  t.strictSame(phone.last('fetch').parameters, {
    DialCallStatus: 'completed',
    DialCallSid: CHILD_SID,
    DialCallDuration: '12',
    DialBridged: 'true',
    DialSipCallId: 'b-leg@edge',
    DialSipResponseCode: '200',
  })
})

t.test('without an action, busy, no answer and failure continue with the next verb', async t => {
  for (const status of ['busy', 'no-answer', 'failed'] as const) {
    const phone = call(t, response('<Dial>+2348030000001</Dial>', '<Say>sorry</Say>')).childEnded(status)
    phone.expect('cancel_timer stop_ring play', status)
  }
  const phone = call(t, response(ONE)).childEnded('busy', undefined, { headers: { 'X-Why': 'lunch' } })
  t.match(phone.last('fetch').parameters, {
    DialCallStatus: 'busy',
    DialBridged: 'false',
    DialSipResponseCode: '486',
    'DialSipHeader_X-Why': 'lunch',
  })
  t.equal('DialCallDuration' in phone.last('fetch').parameters, false)
})

t.test('the ring timeout ends the child as no-answer', async t => {
  const phone = call(t, response('<Dial timeout="1" action="/after">+2348030000001</Dial>'))
  t.equal(phone.last('start_timer').ms, 5000, 'the timeout is clamped to 5 seconds')
  phone.timer().expect('end_child')
  t.equal(phone.last('end_child').cause, 'timeout')
  phone.childEnded('no-answer').expect('stop_ring fetch')
  t.equal(phone.last('fetch').parameters['DialCallStatus'], 'no-answer')
})

t.test('the caller hears early media in place of ringback', async t => {
  const phone = call(t, response('<Dial ringTone="uk">+2348030000001</Dial>'))
  t.equal(phone.last('ring').country, 'uk')
  phone.child('early_media').expect('relay_early_media')
  phone.child('early_media').expect('', 'once')
})

t.test('all nouns ring at once, the first to answer wins and the others end', async t => {
  const phone = call(t, response(TWO))
  phone.expect('ring dial_child dial_child start_timer')
  const [first, second] = phone.all.flatMap(c => (c.type === 'dial_child' ? [c.child] : []))
  phone.child('early_media', first).expect('', 'relays no early media of one child among two')
  phone.childAnswered(second).expect('cancel_timer end_child stop_ring bridge')
  t.match(phone.last('end_child'), { child: first, cause: 'lost' })
  phone.childAnswered(first).expect('', 'a late answer changes nothing')
  phone.childEnded('canceled', first).expect('')
  phone.bridged()
  phone.childEnded('completed', second).expect('cancel_timer fetch')
  t.equal(phone.last('fetch').parameters['DialCallStatus'], 'completed')
})

t.test('when all children fail, the last to end decides the status', async t => {
  const phone = call(t, response(TWO))
  const [first, second] = phone.all.flatMap(c => (c.type === 'dial_child' ? [c.child] : []))
  phone.childEnded('failed', first).expect('')
  phone.childEnded('busy', second).expect('cancel_timer stop_ring fetch')
  t.equal(phone.last('fetch').parameters['DialCallStatus'], 'busy')
})

t.test('sequential dials one noun after another, each with its own ring timeout', async t => {
  const phone = call(t, response(SEQUENTIAL))
  phone.expect('ring dial_child start_timer')
  t.equal(phone.last('start_timer').ms, 10_000)
  phone.child('early_media').childEnded('busy').expect('cancel_timer ring dial_child start_timer')
  t.equal(phone.last('dial_child').target.kind, 'sip')
  phone.timer().childEnded('no-answer').expect('stop_ring fetch')
})

t.test('sendDigits and the whisper precede the bridge, and the caller hears ringback meanwhile', async t => {
  const phone = call(
    t,
    response('<Dial><Number sendDigits="ww12" url="screen" method="GET">+2348030000001</Number></Dial>'),
  )
  phone.child('early_media')
  phone.childAnswered().expect('cancel_timer ring send_digits')
  t.match(phone.last('send_digits'), { leg: phone.last('dial_child').child, digits: 'ww12' })
  phone.send({ type: 'digits_sent', id: phone.last('send_digits').id })
  phone.expect('whisper')
  t.match(phone.last('whisper'), { url: 'https://app.example.test/ivr/screen', method: 'GET' })
  phone.send({ type: 'whisper_ended', child: phone.last('whisper').child, outcome: 'finished' })
  phone.expect('stop_ring bridge')
})

t.test('a whisper that hangs up or fails ends the child as completed and not bridged', async t => {
  for (const outcome of ['hangup', 'failed'] as const) {
    const phone = call(t, response('<Dial action="/after"><Number url="screen">+2348030000001</Number></Dial>'))
    phone.childAnswered()
    phone.send({ type: 'whisper_ended', child: phone.last('whisper').child, outcome })
    phone.expect('end_child')
    phone.childEnded('completed')
    t.match(phone.last('fetch').parameters, { DialCallStatus: 'completed', DialBridged: 'false' })
  }
  const next = call(t, response(SEQUENTIAL.replace('<Number', '<Number url="screen"'))).childAnswered()
  next.send({ type: 'whisper_ended', child: next.last('whisper').child, outcome: 'hangup' })
  next.childEnded('completed').expect('dial_child start_timer', 'sequential dials the next noun')
})

t.test('answerOnBridge answers the caller only after a child answers', async t => {
  const phone = call(t, response('<Dial answerOnBridge="true">+2348030000001</Dial>'), { answered: false })
  phone.expect('ring dial_child start_timer')
  phone.childAnswered().expect('cancel_timer answer')
  phone.answered().expect('stop_ring bridge')
  t.equal(phone.run.answered, true)
})

t.test(
  'a failed Dial with answerOnBridge leaves the caller unanswered, for Reject or a refusal at the end',
  async t => {
    const dial = '<Dial answerOnBridge="true">+2348030000001</Dial>'
    const reject = call(t, response(dial, '<Reject reason="busy"/>'), { answered: false }).childEnded('failed')
    t.match(reject.last('reject'), { sip_code: 486 })
    for (const [status, sip_code] of [
      ['busy', 486],
      ['no-answer', 480],
      ['failed', 503],
    ] as const) {
      const phone = call(t, response(dial), { answered: false }).childEnded(status)
      t.match(phone.last('reject'), { sip_code, status })
    }
    const say = call(t, response(dial, '<Say>voicemail</Say>'), { answered: false }).childEnded('busy')
    say.expect('cancel_timer stop_ring answer')
  },
)

t.test('without answerOnBridge Dial answers the caller first', async t => {
  call(t, response('<Dial>+2348030000001</Dial>'), { answered: false }).expect('answer')
  const room = call(t, response('<Dial answerOnBridge="true"><Conference>r</Conference></Dial>'), { answered: false })
  room.expect('answer', 'a conference needs an answered leg')
})

t.test('timeLimit counts from the bridge and ends the child, and the script continues', async t => {
  const phone = call(t, response('<Dial timeLimit="60">+2348030000001</Dial>', '<Say>over</Say>'))
  phone.childAnswered().bridged()
  t.equal(phone.last('start_timer').ms, 60_000)
  phone.timer().expect('end_child')
  t.equal(phone.last('end_child').cause, 'completed')
  phone.childEnded('completed').expect('play')
})

t.test('hangupOnStar ends the child at the star key and ignores other keys', async t => {
  const phone = call(t, response('<Dial hangupOnStar="true">+2348030000001</Dial>', '<Say>on</Say>'))
  phone.expect('digits_on ring dial_child start_timer')
  phone.childAnswered().bridged().keys('1').expect('')
  phone.keys('*').expect('end_child')
  t.equal(phone.last('end_child').cause, 'completed')
  phone.keys('*').expect('', 'once')
  phone.childEnded('completed').expect('cancel_timer digits_off play')
})

t.test('a hang-up ends the child, and then the action is requested', async t => {
  const ringing = call(t, response(ONE)).child('ringing').hangup()
  ringing.expect('cancel_timer stop_ring end_child')
  t.equal(ringing.last('end_child').cause, 'canceled')
  ringing.childEnded('canceled').expect('callback done')
  t.match(ringing.last('callback'), {
    about: 'action',
    url: 'https://app.example.test/after',
    parameters: { DialCallStatus: 'canceled', DialBridged: 'false' },
  })

  const talking = call(t, response(ONE)).childAnswered().bridged().hangup()
  talking.expect('cancel_timer end_child')
  t.equal(talking.last('end_child').cause, 'completed')
  talking.childEnded('completed').expect('callback done')
  t.match(talking.last('callback').parameters, {
    DialCallStatus: 'completed',
    DialBridged: 'true',
    DialCallDuration: '12',
  })

  call(t, response('<Dial>+2348030000001</Dial>'))
    .hangup()
    .childEnded('canceled')
    .expect('done', 'sends no request without an action')
})

t.test('an update of the parent ends the child at once, requests the action and runs the new document', async t => {
  const entry = { kind: 'inline', text: response('<Say>new</Say>') } as const
  const talking = call(t, response(ONE)).childAnswered().bridged()
  talking.send({ type: 'update', entry })
  talking.expect('cancel_timer end_child callback play')
  t.match(talking.last('callback').parameters, { DialCallStatus: 'completed' })
  talking.childEnded('completed').expect('', 'the later end of the child is ignored')
  const ringing = call(t, response(ONE))
  ringing.send({ type: 'update', entry })
  ringing.expect('cancel_timer stop_ring end_child callback play')
  t.match(ringing.last('callback').parameters, { DialCallStatus: 'canceled' })
})

t.test('the action is requested after the recording is complete', async t => {
  const phone = call(
    t,
    response(
      '<Dial action="/after" record="record-from-answer-dual" trim="trim-silence" recordingTrack="inbound" ' +
        'recordingStatusCallback="/rec" recordingStatusCallbackMethod="GET">+2348030000001</Dial>',
    ),
  )
  phone.childAnswered().bridged().expect('start_timer start_recording')
  const { id, child } = phone.last('start_recording')
  t.equal(child, phone.last('dial_child').child)
  t.match(phone.last('start_recording'), {
    source: 'DialVerb',
    channels: 2,
    track: 'inbound',
    trim: true,
    callback: { url: 'https://app.example.test/rec', method: 'GET', events: ['completed'] },
  })
  phone.send({ type: 'recording_started', id, ...RECORDING })
  phone.childEnded('completed').expect('cancel_timer stop_recording')
  phone.send({ type: 'recording_ended', id, recording: { ...RECORDING, duration_seconds: 11 } })
  phone.expect('fetch')
  t.match(phone.last('fetch').parameters, {
    RecordingSid: RECORDING.sid,
    RecordingUrl: RECORDING.url,
    RecordingDuration: '11',
  })
})

t.test('record-from-ringing starts at ringing for one noun and at the bridge for several', async t => {
  const one = call(t, response('<Dial record="record-from-ringing">+2348030000001</Dial>'))
  one.child('initiated').expect('')
  one.child('ringing').expect('start_recording')
  t.equal(one.last('start_recording').channels, 1)
  one.child('early_media').expect('relay_early_media')
  one.childAnswered().bridged().expect('start_timer')

  const two = call(t, response(TWO.replace('<Dial', '<Dial record="record-from-ringing"')))
  two.child('ringing').expect('')
  two.childAnswered().bridged().expect('start_timer start_recording')
})

t.test('after a hang-up, the action is requested once the recording is complete', async t => {
  const phone = call(t, response(ONE.replace('<Dial', '<Dial record="true"')))
    .childAnswered()
    .bridged()
  const { id } = phone.last('start_recording')
  phone.hangup().expect('cancel_timer end_child stop_recording')
  phone.childEnded('completed').expect('')
  phone.send({ type: 'recording_ended', id, recording: { ...RECORDING, duration_seconds: 3 } })
  phone.expect('callback done')
  t.match(phone.last('callback').parameters, { RecordingDuration: '3', DialCallStatus: 'completed' })
})

t.test('the attributes of a noun apply to its child', async t => {
  const phone = call(
    t,
    response(
      `<Dial callerId="+2342010000001">
        <Number statusCallback="/s" statusCallbackEvent="ringing,answered" statusCallbackMethod="GET"
          machineDetection="Enable"
          machineDetectionTimeout="20" amdStatusCallback="/amd">+2348030000001</Number>
        <Sip username="u" password="p">
          sips:bob@pbx.example.test:5071;transport=tls?X-Order=7%208&amp;Priority=urgent</Sip>
        <Client><Identity>alice</Identity><Parameter name="deal" value="9"/></Client>
      </Dial>`,
    ),
  )
  const [number, sip, client] = phone.all.flatMap(c => (c.type === 'dial_child' ? [c] : []))
  t.match(number, {
    caller_id: '+2342010000001',
    caller_id_source: 'attribute',
    status_callback: { url: 'https://app.example.test/s', method: 'GET', events: ['ringing', 'answered'] },
    machine_detection: {
      mode: 'Enable',
      timeout_seconds: 20,
      speech_threshold_ms: 2400,
      speech_end_threshold_ms: 1200,
      silence_timeout_ms: 5000,
      callback: { url: 'https://app.example.test/amd', method: 'POST' },
    },
  })
  t.strictSame(sip?.target, {
    kind: 'sip',
    uris: [
      { uri: 'sips:bob@pbx.example.test:5071;transport=tls', username: 'u', password: 'p', priority: 10, weight: 10 },
    ],
    headers: [['X-Order', '7 8']],
  })
  t.strictSame(client?.target, { kind: 'client', identity: 'alice', parameters: { deal: '9' } })
  t.strictSame(phone.notes(), ['warning 13252 6:9'], 'drops a header that is not allowed')
})

t.test('Sip sorts its Uri children by priority and passes them its credentials', async t => {
  const phone = call(
    t,
    response(
      `<Dial><Sip username="all"><Uri priority="2" weight="5">sip:b@two.example</Uri><Uri priority="1"
        username="me">sip:a@one.example</Uri>
       <Headers><Header name="X-A" value="1"/><Header name="X-Strowger-CallSid" value="x"/><Header
         name="User-to-User" value="ff"/></Headers></Sip></Dial>`,
    ),
  )
  t.strictSame(phone.last('dial_child').target, {
    kind: 'sip',
    uris: [
      { uri: 'sip:a@one.example', username: 'me', password: null, priority: 1, weight: 10 },
      { uri: 'sip:b@two.example', username: 'all', password: null, priority: 2, weight: 5 },
    ],
    headers: [
      ['X-A', '1'],
      ['User-to-User', 'ff'],
    ],
  })
})

t.test('an invalid noun fails only its own child; without a valid noun the Dial fails', async t => {
  for (const [noun, note] of [
    ['<Number>hello</Number>', 'warning 13223 2:23'],
    ['<Sip>bob</Sip>', 'warning 13243 2:23'],
    ['<Sip>sip:b@x.example;transport=ws</Sip>', 'warning 13243 2:23'],
    ['<Client></Client>', 'warning 12200 2:23'],
    ['<WhatsApp>+2348030000001</WhatsApp>', 'warning 12200 2:23'],
    ['<Sim>DE1</Sim>', 'warning 12200 2:23'],
  ]) {
    const phone = call(t, response(`<Dial action="/after">${noun}</Dial>`))
    t.equal(phone.notes().join(), note)
    t.equal(phone.last('fetch').parameters['DialCallStatus'], 'failed')
  }
  const mixed = call(t, response('<Dial><Number>x</Number><Number>+2348030000001</Number></Dial>'))
  mixed.expect('note ring dial_child start_timer')
  const far = call(t, response(ONE)).childEnded('failed', undefined, { number: 13227, detail: 'policy' })
  t.strictSame(far.notes(), ['warning 13227 2:1'])
})

t.test('skips an empty Dial, an eleventh noun and elements that Dial does not allow', async t => {
  call(t, response('<Dial action="/a"/>', '<Hangup/>'), { answered: false }).expect('note answer')
  const many = call(t, response(`<Dial>${'<Number>+2348030000001</Number>'.repeat(11)}</Dial>`))
  t.equal(many.all.filter(c => c.type === 'dial_child').length, 10)
  t.match(
    many.notes(),
    ['warning 13250'].map(n => new RegExp(n)),
  )
  const stray = call(t, response('<Dial><Say>x</Say><Number>+2348030000001</Number></Dial>'))
  t.strictSame(stray.notes(), ['warning 13215 2:7'])
  const mixed = call(t, response('<Dial><Number>+2348030000001</Number><Conference>r</Conference></Dial>'))
  t.equal(mixed.last('join_conference').name, 'r')
  t.match(mixed.notes()[0], 'warning 13000')
})

t.test('bad attributes of Dial keep the default and cause warnings with their numbers', async t => {
  for (const [attribute, number] of [
    ['method="x"', 13210],
    ['timeout="x"', 13212],
    ['hangupOnStar="x"', 13213],
    ['callerId="a b"', 13214],
    ['timeLimit="0"', 13216],
    ['record="all"', 13217],
    ['sequential="x"', 13218],
    ['answerOnBridge="x"', 13219],
    ['ringTone="7"', 13220],
    ['recordingStatusCallback="ftp://x"', 13256],
    ['mood="good"', 12200],
  ] as const) {
    const phone = call(t, response(`<Dial ${attribute}>+2348030000001</Dial>`))
    t.strictSame(phone.notes(), [`warning ${number} 2:7`], attribute)
    phone.expect('note ring dial_child start_timer')
  }
})

t.test('REFER from the child runs referUrl on this leg', async t => {
  const phone = call(t, response('<Dial referUrl="/refer" referMethod="GET">+2348030000001</Dial>'))
    .childAnswered()
    .bridged()
  const { child } = phone.last('bridge')
  phone.send({ type: 'refer_received', leg: child, target: '<sip:carol@x>', headers: { 'X-Why': 'a' } })
  phone.expect('cancel_timer answer_refer fetch')
  t.match(phone.last('answer_refer'), { leg: child, sip_code: 202 })
  t.match(phone.last('fetch'), { document: 'refer', method: 'GET', url: 'https://app.example.test/refer' })
  t.strictSame(phone.last('fetch').parameters, { ReferTransferTarget: '<sip:carol@x>', 'SipHeader_X-Why': 'a' })
})

t.test('REFER from this leg hands the child over to referUrl', async t => {
  const phone = call(t, response('<Dial referUrl="/refer">+2348030000001</Dial>')).childAnswered().bridged()
  phone.send({ type: 'refer_received', leg: 'self', target: '<tel:+1>', headers: {} })
  phone.expect('cancel_timer answer_refer transfer_child done')
  t.match(phone.last('transfer_child'), {
    url: 'https://app.example.test/refer',
    parameters: { ReferTransferTarget: '<tel:+1>' },
  })
  t.equal(phone.last('done').outcome, 'transferred')
})

t.test('refuses REFER with 603 without referUrl and outside a Dial', async t => {
  const dial = call(t, response('<Dial>+2348030000001</Dial>')).childAnswered().bridged()
  dial.send({ type: 'refer_received', leg: 'self', target: '<tel:+1>', headers: {} })
  dial.expect('answer_refer note')
  t.match(dial.last('answer_refer'), { sip_code: 603 })
  t.strictSame(dial.notes(), ['warning 13802 2:1'])
  const say = call(t, response('<Say>x</Say>'))
  say.send({ type: 'refer_received', leg: 'self', target: '<tel:+1>', headers: {} })
  say.expect('answer_refer note')
})

t.test('Conference keeps the leg in the conference until it leaves', async t => {
  const phone = call(
    t,
    response(
      `<Dial action="/after" timeLimit="90" hangupOnStar="true"><Conference muted="true" beep="onEnter"
        startConferenceOnEnter="false"
        endConferenceOnExit="true" participantLabel="a" waitUrl="" maxParticipants="5"
          record="record-from-start" trim="do-not-trim"
        coach="${CHILD_SID}" jitterBufferSize="small" statusCallback="/c" statusCallbackEvent="start end"
        recordingStatusCallback="/r" region="x"> room </Conference></Dial>`,
    ),
  )
  phone.expect('note digits_on join_conference')
  t.match(phone.last('join_conference'), {
    name: 'room',
    muted: true,
    beep: 'onEnter',
    start_on_enter: false,
    end_on_exit: true,
    label: 'a',
    wait: 'silence',
    max_participants: 5,
    record: true,
    trim: false,
    coach: CHILD_SID,
    status_callback: { url: 'https://app.example.test/c', method: 'POST', events: ['start', 'end'] },
    recording_callback: { url: 'https://app.example.test/r', method: 'POST', events: ['completed'] },
  })
  const { id } = phone.last('join_conference')
  phone.send({ type: 'conference_joined', id, conference_sid: 'CF1' })
  t.equal(phone.last('start_timer').ms, 90_000)
  phone.keys('*').expect('leave_conference')
  phone.send({ type: 'conference_left', id, number: null, detail: null })
  phone.expect('cancel_timer digits_off fetch')
  t.strictSame(phone.last('fetch').parameters, { DialCallStatus: 'answered' })
})

t.test('Conference ends at the time limit, a refusal, a hang-up and an update', async t => {
  const text = response('<Dial action="/after"><Conference waitUrl="/w" waitMethod="GET">r</Conference></Dial>')
  const limit = call(t, text)
  const { id } = limit.last('join_conference')
  t.strictSame(limit.last('join_conference').wait, { url: 'https://app.example.test/w', method: 'GET' })
  limit.send({ type: 'conference_joined', id, conference_sid: 'CF1' })
  limit.timer().expect('leave_conference')

  const full = call(t, text)
  full.send({ type: 'conference_left', id, number: 16020, detail: 'the room is full' })
  full.expect('note fetch')
  t.strictSame(full.notes(), ['error 16020 2:1'])
  t.equal(full.last('fetch').parameters['DialCallStatus'], 'failed')

  call(t, text).hangup().expect('callback done')
  const moved = call(t, text)
  moved.send({ type: 'update', entry: { kind: 'inline', text: response('<Pause/>') } })
  moved.expect('leave_conference callback start_timer')

  const plain = call(t, response('<Dial><Conference>r</Conference></Dial>'))
  t.equal(plain.last('join_conference').wait, 'default')
})

t.test('some bad attributes of Conference stop the document, most keep the default', async t => {
  for (const [attribute, number, level] of [
    ['muted="x"', 13230, 'warning'],
    ['endConferenceOnExit="x"', 13231, 'error'],
    ['startConferenceOnEnter="x"', 13232, 'warning'],
    ['waitUrl="ftp://x"', 13233, 'warning'],
    ['waitMethod="x"', 13234, 'warning'],
    ['beep="x"', 13235, 'warning'],
    ['trim="x"', 13239, 'error'],
    ['coach="x"', 13240, 'error'],
    ['statusCallbackEvent="dance"', 21626, 'warning'],
    [`participantLabel="${'l'.repeat(129)}"`, 16023, 'error'],
  ] as const) {
    const phone = call(t, response(`<Dial><Conference ${attribute}>r</Conference></Dial>`))
    t.strictSame(phone.notes(), [`${level} ${number} 2:19`], attribute.slice(0, 40))
    phone.expect(level === 'error' ? 'note play' : 'note join_conference')
  }
  const nameless = call(t, response('<Dial action="/a"><Conference/></Dial>'))
  t.match(nameless.notes(), [/warning 13237/])
  t.equal(nameless.last('fetch').parameters['DialCallStatus'], 'failed')
})

t.test('Queue bridges the head caller, and the action reports that call', async t => {
  const phone = call(
    t,
    response('<Dial action="/after" record="record-from-answer"><Queue url="/w">support</Queue></Dial>'),
  )
  phone.expect('dequeue')
  t.match(phone.last('dequeue'), { name: 'support', whisper: { url: 'https://app.example.test/w', method: 'POST' } })
  const { id } = phone.last('dequeue')
  phone.send({ type: 'dequeue_bridged', id, queue_sid: 'QU1', call_sid: CHILD_SID, queue_time_seconds: 31 })
  phone.expect('start_timer start_recording')
  phone.send({ type: 'dequeue_ended', id, result: 'bridged', duration_seconds: 40 })
  phone.expect('cancel_timer stop_recording')
  phone.send({ type: 'recording_ended', id: phone.last('start_recording').id, recording: null })
  phone.expect('fetch')
  t.strictSame(phone.last('fetch').parameters, {
    DialCallStatus: 'completed',
    DequeueResult: 'bridged',
    QueueSid: 'QU1',
    DequeuedCallSid: CHILD_SID,
    DequeuedCallQueueTime: '31',
    DequeuedCallDuration: '40',
  })
})

t.test('Queue ends at the timeout, an unknown queue, the star key, a hang-up and an update', async t => {
  const text = response('<Dial action="/after" timeout="20"><Queue>q</Queue></Dial>')
  const empty = call(t, text)
  empty.expect('dequeue start_timer')
  empty.timer().expect('stop_dequeue')
  const { id } = empty.last('dequeue')
  empty.send({ type: 'dequeue_ended', id, result: 'queue-empty', duration_seconds: null })
  t.strictSame(empty.last('fetch').parameters, { DialCallStatus: 'no-answer', DequeueResult: 'queue-empty' })

  const found = call(t, text)
  found.send({ type: 'dequeue_found', id: found.last('dequeue').id })
  found.expect('cancel_timer', 'the time is for an empty queue')

  const missing = call(t, text)
  missing.send({ type: 'dequeue_ended', id, result: 'error', duration_seconds: null })
  t.strictSame(missing.last('fetch').parameters, { DialCallStatus: 'failed', DequeueResult: 'error' })

  const star = call(t, response('<Dial hangupOnStar="true"><Queue>q</Queue></Dial>'))
  star.keys('*').expect('stop_dequeue')
  const gone = call(t, text).hangup()
  gone.expect('cancel_timer stop_dequeue callback done')
  const moved = call(t, text)
  moved.send({ type: 'update', entry: { kind: 'inline', text: response('<Pause/>') } })
  moved.expect('cancel_timer stop_dequeue callback start_timer')
  t.strictSame(moved.last('callback').parameters, { DialCallStatus: 'canceled', DequeueResult: 'redirected' })
  const talking = call(t, text)
  const met = { queue_sid: 'QU1', call_sid: CHILD_SID, queue_time_seconds: 31 }
  talking.send({ type: 'dequeue_bridged', id: talking.last('dequeue').id, ...met })
  talking.send({ type: 'update', entry: { kind: 'inline', text: response('<Pause/>') } })
  t.match(talking.last('callback').parameters, { DialCallStatus: 'completed', DequeueResult: 'bridged' })

  const reserved = call(t, response('<Dial action="/a"><Queue reservationSid="WR1">q</Queue></Dial>'))
  t.equal(reserved.last('fetch').parameters['DequeueResult'], 'error')
})

t.test('faults of Queue stop the document', async t => {
  for (const [queue, number] of [
    ['<Queue method="x">q</Queue>', 14210],
    ['<Queue url="ftp://x">q</Queue>', 14211],
    ['<Queue></Queue>', 14212],
    [`<Queue>${'q'.repeat(65)}</Queue>`, 14213],
  ] as const) {
    const phone = call(t, response(`<Dial>${queue}</Dial>`))
    t.match(phone.notes(), [new RegExp(`error ${number} 2:`)], queue.slice(0, 30))
    phone.expect('note play')
  }
})

t.test('Application dials the application with its id', async t => {
  const phone = call(
    t,
    response(
      '<Dial><Application><ApplicationSid>app_1</ApplicationSid><Parameter name="a" value="b"/></Application></Dial>',
    ),
  )
  t.strictSame(phone.last('dial_child').target, { kind: 'application', id: 'app_1', parameters: { a: 'b' } })
  const bare = call(t, response('<Dial action="/x"><Application/></Dial>'))
  t.equal(bare.last('fetch').parameters['DialCallStatus'], 'failed')
})

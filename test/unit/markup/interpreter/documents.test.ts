import { FETCH_LIMITS } from '../../../../markup/interpreter/step.ts'
import t from '../../../support/harness/index.ts'
import { BASE, call, FACTS, Phone, response } from '../phone.ts'

const FALLBACK = { url: 'https://backup.example.test/voice', method: 'GET' } as const

t.test('a document that cannot be fetched requests the fallback once, with ErrorCode and ErrorUrl', async t => {
  const phone = new Phone(t, {
    ...FACTS,
    entry: { kind: 'request', url: 'https://user:pass@app.example.test/v', method: 'POST' },
    fallback: FALLBACK,
  })
  phone.unfetched(11205).expect('note fetch')
  t.match(phone.last('note'), { level: 'error', number: 11205, url: 'https://app.example.test/v' })
  t.match(phone.last('fetch'), { ...FALLBACK, document: 'fallback' })
  t.strictSame(phone.last('fetch').parameters, { ErrorCode: '11205', ErrorUrl: 'https://app.example.test/v' })
  phone.unfetched(11202).expect('note play', 'the fallback has no fallback')
  phone.played().expect('hangup done')
})

t.test('a malformed fallback document ends the call; a later failure requests the fallback again', async t => {
  const broken = new Phone(t, { ...FACTS, fallback: FALLBACK })
  broken.unfetched(11200).fetched('<Response>').expect('note play')

  const phone = new Phone(t, { ...FACTS, fallback: FALLBACK })
  phone.unfetched(11200).fetched(response('<Redirect>https://app.example.test/b</Redirect>'))
  t.equal(phone.last('fetch').document, 'redirect')
  phone.unfetched(11217)
  t.equal(phone.last('fetch').document, 'fallback')
})

t.test('a fallback that leads straight back to what failed, or to itself, is not requested again', async t => {
  const asked = (phone: Phone) => phone.all.filter(one => one.type === 'fetch' && one.document === 'fallback').length
  const back = response(`<Redirect>${BASE}</Redirect>`)
  const circle = new Phone(t, { ...FACTS, fallback: FALLBACK })
  circle.unfetched(11200).fetched(back).unfetched(11200).expect('note play')
  t.equal(asked(circle), 1)

  const itself = new Phone(t, { ...FACTS, fallback: FALLBACK })
  itself.unfetched(11200).fetched(response('<Redirect/>')).unfetched(11205).expect('note play')
  t.equal(asked(itself), 1)

  const inline = new Phone(t, { ...FACTS, entry: { kind: 'inline', text: '<Response>' }, fallback: FALLBACK })
  inline.fetched(response('<Redirect>https://app.example.test/b</Redirect>')).fetched('<Response>')
  t.equal(asked(inline), 2, 'another document has its own')
  inline.fetched(response('<Redirect>https://app.example.test/b</Redirect>')).fetched('<Response>').expect('note play')
  t.equal(asked(inline), 2)

  const later = new Phone(t, { ...FACTS, fallback: FALLBACK })
  later
    .unfetched(11200)
    .fetched(response(`<Say>One moment.</Say><Redirect>${BASE}</Redirect>`))
    .played()
  later.unfetched(11200).expect('note fetch')
  t.equal(asked(later), 2, 'the caller has heard something meanwhile')
  later.send({ type: 'update', entry: { kind: 'request', url: BASE, method: 'POST' } })
  later.unfetched(11200).expect('note fetch')
})

t.test('rejects an unanswered call with 503 when its document cannot be fetched', async t => {
  const phone = new Phone(t, { ...FACTS, leg: { ...FACTS.leg, answered: false } })
  phone.unfetched(11205).expect('note reject done')
  t.match(phone.last('reject'), { sip_code: 503, status: 'failed' })
})

t.test('a syntax error is noted with number, line and column', async t => {
  const cases: [string, number, string][] = [
    ['<Response><Say>a</Response>', 12100, '1:27'],
    ['<Response>\n<Say>a</Say>', 12100, '1:1'],
    ['nothing', 12100, '1:8'],
    ['<Response/>\n<?\ud800', 12100, '2:3'],
    ['<Response><Say>\udc00 a \u{1f600}</Say></Response>', 12100, '1:16'],
    ['<Answer/>', 12102, '1:1'],
    ['<?xml version="1.1"?><Response/>', 12101, '1:21'],
    ['<!DOCTYPE Response><Response/>', 12100, '1:19'],
    ['<Response>&nbsp;</Response>', 12100, '1:11'],
    ['<Response><Say a="1" a="2"/></Response>', 12100, '1:28'],
    ['<Response/><Response/>', 12100, '1:21'],
    [`<Response>${'<Pause/>'.repeat(101)}</Response>`, 12100, '1:811'],
    [`<Response>${' '.repeat(65_536)}</Response>`, 11750, '1:1'],
    [`<Response>${'<a>'.repeat(10_000)}`, 12100, '1:23'],
    [`<Response><Say>${'<p>'.repeat(40)}${'</p>'.repeat(40)}</Say></Response>`, 12100, '1:112'],
  ]
  for (const [text, number, place] of cases) {
    const phone = call(t, text)
    t.equal(phone.types(), 'note play', text.slice(0, 40))
    t.strictSame(phone.notes(), [`error ${number} ${place}`], text.slice(0, 40))
  }
})

t.test('accepts a BOM, declaration, comments, CDATA, both quotes, entities and any line breaks', async t => {
  const phone = call(
    t,
    "\ufeff<?xml version='1.0' encoding='UTF-8'?>\r\n<!-- hello -->\r\n<Response xml:lang='en'>\r\n" +
      "<Say\r\n voice='woman'\r\n><![CDATA[Tom & Jerry]]> &lt;3 &#x263A;&#65;&apos;</Say>\r\n</Response>\r\n",
  )
  t.match(phone.last('play').items, [{ text: "Tom & Jerry <3 ☺A'", voice: 'woman' }])
  t.strictSame(phone.notes(), [])
})

t.test('accepts a document of exactly 64 KiB, 100 verbs, depth 5 or 32 nested speech elements', async t => {
  const full = `<Response><Pause/>${' '.repeat(65_536 - 29)}</Response>`
  t.equal(full.length, 65_536)
  call(t, full).expect('start_timer')
  call(t, `<Response>${'<Pause/>'.repeat(100)}</Response>`).expect('start_timer')
  call(
    t,
    response('<Dial><Sip><Uri>sip:a@b.example</Uri><Headers><Header name="X-A" value="1"/></Headers></Sip></Dial>'),
  ).expect('ring dial_child start_timer')
  call(t, response(`<Say>${'<p>'.repeat(32)}x${'</p>'.repeat(32)}</Say>`)).expect('play')
})

t.test('the content type decides whether a response is markup, audio, text or a fault', async t => {
  for (const type of ['text/xml', 'application/xml', 'text/html', '', 'application/twiml+xml']) {
    new Phone(t, FACTS).fetched('<Response><Say>a</Say></Response>', type).expect('play', type)
  }
  const audio = new Phone(t, FACTS).fetched('', 'audio/mpeg', 'https://cdn.example.test/a.mp3')
  t.match(audio.last('play').items, [{ kind: 'url', url: 'https://cdn.example.test/a.mp3', loop: 1 }])
  audio.played().expect('hangup done')
  const plain = new Phone(t, FACTS).fetched('Please call back later', 'text/plain')
  t.match(plain.last('play').items, [{ kind: 'speech', text: 'Please call back later' }])
  const markup = new Phone(t, FACTS).fetched('<Response><Pause/></Response>', 'text/plain')
  markup.expect('start_timer')
  const other = new Phone(t, FACTS).fetched('{}', 'application/json')
  t.strictSame(other.notes(), ['error 12300 null:null'])
})

t.test('resolves relative URLs against the URL after redirects and keeps absolute URLs as written', async t => {
  const phone = new Phone(t, FACTS)
  phone.fetched(response('<Redirect>b?x=1</Redirect>'), 'text/xml', 'https://other.example.test/deep/a')
  t.equal(phone.last('fetch').url, 'https://other.example.test/deep/b?x=1')
  phone.fetched(response('<Redirect>HTTPS://User:pw@Host.example:443/a b#rc=2</Redirect>'))
  t.equal(phone.last('fetch').url, 'HTTPS://User:pw@Host.example:443/a b#rc=2')
})

t.test('a redirect loop is slowed, and ends after a hundred documents', async t => {
  const phone = new Phone(t, FACTS)
  for (let i = 1; i < FETCH_LIMITS.idle; i++) {
    t.equal(phone.last('fetch').delay_ms, i <= FETCH_LIMITS.quick ? undefined : 250, `document ${i}`)
    phone.fetched('<Response><Redirect/></Response>')
  }
  phone.expect('fetch')
  phone.fetched('<Response><Redirect/></Response>').expect('note play')
  t.strictSame(phone.notes(), ['error 12400 null:null'])
})

t.test('a call fetches at most a thousand documents', async t => {
  const phone = new Phone(t, FACTS)
  const text = '<Response><Pause/><Redirect/></Response>'
  for (let i = 1; i < FETCH_LIMITS.run; i++) phone.fetched(text).timer()
  phone.expect('fetch')
  phone.fetched(text).timer().expect('note play')
  t.match(phone.last('note'), { number: 12400, detail: /1000/ })
})

t.test('a hang-up during a fetch ends the run, and the late response is ignored', async t => {
  const phone = new Phone(t, FACTS).hangup()
  phone.expect('done')
  t.equal(phone.last('done').outcome, 'gone')
  phone.fetched(response('<Say>late</Say>')).expect('')
  phone.hangup().expect('')
})

t.test('an update replaces a pending fetch, and the late response is ignored', async t => {
  const phone = new Phone(t, FACTS)
  const old = phone.last('fetch').id
  phone.send({
    type: 'update',
    entry: { kind: 'request', url: 'https://new.example.test/', method: 'GET' },
    fallback: FALLBACK,
  })
  phone.expect('fetch')
  phone.send({
    type: 'fetched',
    id: old,
    result: { ok: true, text: '<Response/>', content_type: 'text/xml', final_url: BASE },
  })
  phone.expect('')
  phone.unfetched(11200)
  t.match(phone.last('fetch'), FALLBACK, 'the update replaces the fallback too')
})

t.test('an update cuts each waiting verb and a spoken notice', async t => {
  const fresh = { type: 'update', entry: { kind: 'inline', text: response('<Pause/>') } } as const
  for (const [verb, stopped] of [
    ['<Say>x</Say>', 'stop_play start_timer'],
    ['<Play>x.wav</Play>', 'stop_play start_timer'],
    ['<Pause/>', 'cancel_timer start_timer'],
    ['<Record/>', 'stop_record start_timer'],
    ['<Play digits="1"/>', 'start_timer'],
  ] as const) {
    const phone = call(t, response(verb))
    phone.send(fresh)
    phone.expect(stopped, verb)
  }
  const notice = call(t, '<Nonsense/>')
  notice.send(fresh)
  notice.expect('stop_play start_timer')
})

t.test('an update while the call is being answered does not answer it twice', async t => {
  const phone = call(t, response('<Say>old</Say>'), { answered: false })
  const { id } = phone.last('answer')
  phone.send({ type: 'update', entry: { kind: 'inline', text: response('<Say>new</Say>') } })
  phone.expect('answer')
  phone.send({ type: 'answered', id })
  phone.expect('play', 'the response to either command answers the leg')
  phone.answered().expect('')
})

t.test('a relative URL in an inline update is fault 15004', async t => {
  const phone = call(t, response('<Pause/>'))
  phone.send({ type: 'update', entry: { kind: 'inline', text: response('<Redirect>next</Redirect>') } })
  t.strictSame(phone.notes(), ['error 15004 2:1'])
})

t.test('an entry URL that cannot be requested fails the run at its start', async t => {
  const phone = new Phone(t, { ...FACTS, entry: { kind: 'request', url: 'ftp://x/', method: 'GET' } })
  phone.expect('note play')
  t.strictSame(phone.notes(), ['error 11100 null:null'])
})

t.test('whisper and wait documents end with the outcome of their kind', async t => {
  const whisper = call(t, response('<Say>A call for you</Say>'), { kind: 'whisper' }).played()
  t.equal(whisper.last('done').outcome, 'finished')
  const refused = call(t, response('<Hangup/>'), { kind: 'whisper' })
  t.equal(refused.types(), 'done')
  t.equal(refused.last('done').outcome, 'hangup')
  const dialling = call(t, response('<Dial>+2348030000001</Dial>'), { kind: 'whisper' })
  t.strictSame(dialling.notes(), ['error 13201 2:1'])
  t.equal(dialling.last('done').outcome, 'failed')
  const recording = call(t, response('<Record/>', '<Say>x</Say>'), { kind: 'whisper' })
  t.strictSame(recording.notes(), ['warning 12200 2:1'])

  const queue = call(t, response('<Say>Wait</Say>'), { kind: 'queue_wait' }).played()
  t.match(queue.last('fetch'), { document: 'wait', url: BASE }, 'the wait document restarts')
  queue.fetched(response('<Leave/>'))
  t.equal(queue.last('done').outcome, 'leave')
  const hangup = call(t, response('<Hangup/>'), { kind: 'queue_wait' })
  t.equal(hangup.last('done').outcome, 'hangup')

  const room = call(t, response('<Play>a.wav</Play>'), { kind: 'conference_wait' }).played()
  t.equal(room.last('done').outcome, 'finished')
  const stray = call(t, response('<Gather/>'), { kind: 'conference_wait' })
  t.strictSame(stray.notes(), ['error 13238 2:1'])
  t.equal(stray.last('done').outcome, 'failed')
  const music = new Phone(t, { ...FACTS, kind: 'conference_wait' }).fetched('', 'audio/mpeg')
  t.match(music.last('play').items, [{ kind: 'url', url: BASE, loop: 1000 }])
})

t.test('a wait document that takes no time fails after a hundred rounds, inline or fetched', async t => {
  const fetched = new Phone(t, { ...FACTS, kind: 'queue_wait' })
  for (let i = 0; i < FETCH_LIMITS.idle; i++) fetched.fetched('<Response/>')
  t.equal(fetched.last('done').outcome, 'failed')
  const inline = call(t, '<Response/>', { kind: 'queue_wait', inline: true })
  t.equal(inline.last('done').outcome, 'failed')
})

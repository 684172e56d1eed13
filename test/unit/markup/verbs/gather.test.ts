import t from '../../../support/harness/index.ts'
import { BASE, call, response } from '../phone.ts'

const MENU = response(
  '<Gather action="/pick" numDigits="3" timeout="4"><Say>One, two</Say><Pause length="2"/><Play>or.wav</Play></Gather>',
  '<Say>Nothing heard</Say>',
)

t.test('the prompt is one command, and keys count from its start', async t => {
  const phone = call(t, MENU)
  phone.expect('digits_on play')
  t.match(phone.last('play').items, [
    { kind: 'speech', text: 'One, two' },
    { kind: 'silence', ms: 2000 },
    { kind: 'url', url: 'https://app.example.test/ivr/or.wav' },
  ])
})

t.test('a key stops the prompt and restarts the timer', async t => {
  const phone = call(t, MENU)
  phone.keys('1').expect('stop_play start_timer')
  t.equal(phone.last('start_timer').ms, 4000)
  phone.played().expect('', 'the end of the stopped prompt is ignored')
  phone.keys('2').expect('cancel_timer start_timer')
  phone.keys('3').expect('cancel_timer digits_off fetch')
  t.match(phone.last('fetch'), { document: 'action', url: 'https://app.example.test/pick', method: 'POST' })
  t.strictSame(phone.last('fetch').parameters, { Digits: '123', FinishedOnKey: '' })
})

t.test('the timer starts after the prompt; a timeout with keys requests the action', async t => {
  const phone = call(t, MENU)
  phone.played().expect('start_timer')
  phone.keys('7').timer().expect('digits_off fetch')
  t.strictSame(phone.last('fetch').parameters, { Digits: '7', FinishedOnKey: '' })
})

t.test('a timeout without keys continues with the next verb', async t => {
  const phone = call(t, MENU).played().timer()
  phone.expect('digits_off play')
  t.match(phone.last('play').items, [{ text: 'Nothing heard' }])
})

t.test('ignores a stale timer and a late key, and reports an unknown id', async t => {
  const phone = call(t, MENU)
  phone.keys('1')
  const stale = phone.last('start_timer').id
  phone.keys('2')
  phone.send({ type: 'timer', id: stale })
  phone.expect('')
  phone.keys('3')
  phone.keys('4').expect('')
  t.equal(phone.unexpected, null)
  phone.send({ type: 'timer', id: 'timer-999' })
  t.match(phone.unexpected, 'unknown id "timer-999"')
})

t.test('the finish key ends the input; without other keys the input is empty', async t => {
  const some = call(t, response('<Gather action="/a"/>')).keys('12#')
  t.strictSame(some.last('fetch').parameters, { Digits: '12', FinishedOnKey: '#' })

  call(t, response('<Gather action="/a"/>', '<Say>empty</Say>')).keys('#').expect('cancel_timer digits_off play')

  const wanted = call(t, response('<Gather action="/a" actionOnEmptyResult="true"/>')).keys('#')
  t.strictSame(wanted.last('fetch').parameters, { Digits: '', FinishedOnKey: '#' })
})

t.test('finishOnKey chooses another finish key or none', async t => {
  const star = call(t, response('<Gather finishOnKey="*"/>')).keys('1#2*')
  t.strictSame(star.last('fetch').parameters, { Digits: '1#2', FinishedOnKey: '*' })
  t.equal(star.last('fetch').url, BASE, 'without action it is the current document')

  const none = call(t, response('<Gather finishOnKey="" action="/a"/>')).keys('1#*A')
  none.expect('cancel_timer start_timer')
  none.timer()
  t.strictSame(none.last('fetch').parameters, { Digits: '1#*A', FinishedOnKey: '' })
})

t.test('actionOnEmptyResult requests the action after silence', async t => {
  const phone = call(t, response('<Gather action="/a" method="GET" actionOnEmptyResult="true" timeout="0"/>'))
  t.equal(phone.last('start_timer').ms, 0)
  phone.timer()
  t.match(phone.last('fetch'), { method: 'GET', parameters: { Digits: '', FinishedOnKey: '' } })
})

t.test('a hang-up during Gather sends no request, and an update cuts it', async t => {
  call(t, MENU).keys('1').hangup().expect('done')
  const phone = call(t, MENU)
  phone.send({ type: 'update', entry: { kind: 'inline', text: response('<Say>new</Say>') } })
  phone.expect('stop_play digits_off play')
  t.match(phone.last('play').items, [{ text: 'new' }])
})

t.test('each bad attribute of Gather causes a warning with its number and keeps the default', async t => {
  const cases: [string, number, object?][] = [
    ['finishOnKey="x"', 13310],
    ['finishOnKey="12"', 13311],
    ['method="PUT"', 13312],
    ['timeout="-1"', 13313],
    ['numDigits="0"', 13314],
    ['input="keys"', 13326],
    ['speechTimeout="x"', 13327],
    ['maxSpeechTime="x"', 13328],
    ['partialResultCallbackMethod="PUT"', 13329],
    [`hints="${'h'.repeat(101)}"`, 13330],
    ['language="*"', 13331],
    ['bargeIn="x"', 13332],
    ['profanityFilter="x"', 13333],
    [`speechModel="${'m'.repeat(101)}"`, 13334],
    ['actionOnEmptyResult="x"', 13338],
  ]
  for (const [attribute, number] of cases) {
    const phone = call(t, response(`<Gather ${attribute}/>`))
    t.strictSame(phone.notes(), [`warning ${number} 2:9`], attribute.slice(0, 40))
    t.match(phone.last('start_timer'), { ms: 5000 })
  }
})

t.test('faults of nested verbs have numbers of Gather', async t => {
  const phone = call(
    t,
    response(
      '<Gather><Say voice="Polly.X" loop="x">a</Say><Play loop="y" digits="1">b.wav</Play><Dial>1</Dial></Gather>',
    ),
  )
  t.strictSame(
    phone.notes().map(note => note.split(' ')[1]),
    ['13322', '13322', '13320', '13430', '13511'],
  )
  phone.played([{ item: 1, number: 13420, detail: 'text/html' }])
  t.match(phone.notes().at(-1), 'warning 13325')
})

t.test('without a recognizer, speech input falls back to keys or to the next verb', async t => {
  const both = call(t, response('<Gather input="dtmf speech"><Say>x</Say></Gather>'))
  both.expect('note digits_on play')
  t.strictSame(both.notes(), ['warning 13343 2:1'])
  const speech = call(t, response('<Gather input="speech"><Say>x</Say></Gather>', '<Say>next</Say>'))
  speech.expect('note play')
  t.match(speech.last('play').items, [{ text: 'next' }])
})

const SPEECH = { speech: { recognizer: true } }

t.test('speech stops the prompt and is sent to the action', async t => {
  const phone = call(
    t,
    response(
      '<Gather input="speech dtmf" timeout="4" hints="yes, no" language="fr-FR" speechModel="phone" enhanced="true" ' +
        'partialResultCallback="/part" action="/a"><Say>x</Say></Gather>',
    ),
    SPEECH,
  )
  phone.expect('digits_on recognize play')
  t.match(phone.last('recognize'), {
    language: 'fr-FR',
    hints: ['yes', 'no'],
    model: 'phone',
    enhanced: true,
    profanity_filter: true,
    speech_timeout_seconds: 4,
    max_speech_seconds: 60,
    partial: { url: 'https://app.example.test/part', method: 'POST' },
  })
  const { id } = phone.last('recognize')
  phone.send({ type: 'speech_started', id })
  phone.expect('stop_play start_timer')
  phone.send({ type: 'speech_result', id, text: 'oui', confidence: 0.91, language: 'fr-FR' })
  phone.expect('cancel_timer digits_off fetch')
  t.strictSame(phone.last('fetch').parameters, { SpeechResult: 'oui', Confidence: '0.91', Language: 'fr-FR' })
})

t.test('a key cancels speech recognition in progress', async t => {
  const phone = call(t, response('<Gather input="dtmf speech" numDigits="1" action="/a"/>'), SPEECH)
  phone.expect('digits_on recognize start_timer')
  phone.keys('5').expect('cancel_timer stop_recognize digits_off fetch')
  t.strictSame(phone.last('fetch').parameters, { Digits: '5', FinishedOnKey: '' })
})

t.test('silence continues with the next verb, or requests the action with an empty result', async t => {
  const phone = call(t, response('<Gather input="speech" action="/a"/>', '<Say>next</Say>'), SPEECH)
  phone.expect('recognize start_timer')
  phone.timer().expect('stop_recognize play')

  const wanted = call(t, response('<Gather input="speech" action="/a" actionOnEmptyResult="true"/>'), SPEECH)
  wanted.timer().expect('stop_recognize fetch')
  t.strictSame(wanted.last('fetch').parameters, { SpeechResult: '' })
})

t.test('noise ends neither the Gather nor its time', async t => {
  const noisy = (verb: string) => {
    const phone = call(t, response(verb, '<Say>next</Say>'), SPEECH)
    const { id } = phone.last('recognize')
    const starts = () => phone.send({ type: 'speech_started', id })
    const words = (text: string) => phone.send({ type: 'speech_result', id, text, confidence: 1, language: null })
    return { phone, starts, words }
  }
  const spoken = noisy('<Gather input="speech" action="/a" actionOnEmptyResult="true"><Say>x</Say></Gather>')
  spoken.words('')
  spoken.phone.expect('', 'the prompt goes on')
  spoken.starts()
  spoken.phone.expect('stop_play start_timer')
  spoken.words('')
  spoken.phone.expect('', 'the caller may still speak')
  spoken.starts()
  spoken.phone.expect('')
  spoken.phone.timer().expect('', 'the caller speaks when the time is over')
  spoken.words('late')
  t.same(spoken.phone.last('fetch').parameters, { SpeechResult: 'late', Confidence: '1' })

  const over = noisy('<Gather input="speech" action="/a"/>')
  over.starts()
  over.phone.timer().expect('')
  over.words('')
  over.phone.expect('stop_recognize play', 'the time was over')

  const keys = noisy('<Gather input="dtmf speech" action="/a"/>')
  keys.starts()
  keys.phone.keys('1').expect('cancel_timer stop_recognize start_timer')
  keys.phone.timer().expect('digits_off fetch')
  t.same(keys.phone.last('fetch').parameters, { Digits: '1', FinishedOnKey: '' })
})

t.test('without bargeIn recognition starts after the prompt', async t => {
  const phone = call(
    t,
    response('<Gather input="speech" bargeIn="false" speechTimeout="auto"><Say>x</Say></Gather>'),
    SPEECH,
  )
  phone.expect('play')
  phone.played().expect('recognize start_timer')
  t.equal(phone.last('recognize').speech_timeout_seconds, null)
})

t.test('a failed recognizer falls back to keys or to the next verb', async t => {
  const keys = call(t, response('<Gather input="dtmf speech" action="/a"/>'), SPEECH)
  keys.send({ type: 'speech_failed', id: keys.last('recognize').id, detail: 'engine is down' })
  keys.expect('note')
  keys.keys('1#')
  t.strictSame(keys.last('fetch').parameters, { Digits: '1', FinishedOnKey: '#' })

  const speech = call(t, response('<Gather input="speech" action="/a"/>', '<Say>next</Say>'), SPEECH)
  speech.send({ type: 'speech_failed', id: speech.last('recognize').id, detail: 'engine is down' })
  speech.expect('note cancel_timer play')
})

t.test('Gather without an action in an inline document fails with 11100 after its input', async t => {
  const phone = call(t, response('<Gather numDigits="1"/>'), { inline: true })
  phone.keys('1').expect('cancel_timer digits_off note play')
  t.strictSame(phone.notes(), ['error 11100 2:1'])
})

t.test('Gather asks for less noise before speech is recognised', t => {
  const asked = (text: string) => call(t, response(text), { speech: { recognizer: true } }).last('recognize')
  t.equal(asked('<Gather input="speech" noiseSuppression="true"/>').noise_suppression, true)
  t.equal(asked('<Gather input="speech"/>').noise_suppression, undefined)
  t.end()
})

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { replay } from '../../markup/replay/replay.ts'
import { levelDbm0, readWav, sounding, strongestHz, tone, wavBytes } from '../support/audio.ts'
import t from '../support/harness/index.ts'
import type { Line } from '../support/softphone.ts'
import { voiceTown } from '../support/voice-town.ts'
import { PATIENCE_MS, until } from '../support/wait.ts'
import { world } from '../support/world.ts'

// One caller goes through a whole telephone menu: twelve steps on one call, with three further telephones, a customer's
// web server that produces the documents, and a transcription engine over HTTP. Telephones verify each step by ear.

/** The tones of the customer's recordings. */
const SOUNDS = {
  ...{ welcome: 500, menu: 620, account: 1250, wrong: 1100 },
  ...{ room: 480, music: 740, whisper: 900, beep: 1400 },
} as const

/** Typed into an ordinary Gather and into a sensitive one. Both are too long to occur by chance. */
const CARD = '4111111111111111'
const PIN = '975310864297'
const SAID_CARD = '4111 1111 1111 1111'

t.test('a telephone menu of twelve steps', async t => {
  const transcribed: Buffer[] = []
  const town = await voiceTown(t, {
    addresses: ['127.0.0.68', '127.0.0.69'],
    world: web => world(t, { STROWGER_TRANSCRIBER_URL: `${web.url}/transcriber` }),
  })
  const { w, pages, web, told, all, callIn, callOut, far, trunk_number } = town
  const url = web.url
  const doc = (inside: string): string => `<Response>${inside}</Response>`
  const play = (sound: keyof typeof SOUNDS, loop = 1): string => `<Play loop="${loop}">${url}/${sound}.wav</Play>`
  for (const [name, hz] of Object.entries(SOUNDS))
    pages[`/${name}.wav`] = { type: 'audio/wav', body: wavBytes(8000, tone(hz, 3000)) }
  pages['/transcriber'] = request => {
    transcribed.push(request.body)
    return { type: 'application/json', body: `{"transcript":"call me back about ${SAID_CARD}","confidence":0.9}` }
  }

  const count = (path: string): number => all(path).length

  // The customer's program. Its state is a cookie and the request's parameters.
  const menu = (loop: number): string =>
    doc(`<Gather action="/choice" numDigits="1" timeout="1">${play('menu', loop)}</Gather><Redirect>/again</Redirect>`)
  // The first time it ends soon without a key. Later it waits until a key is pressed.
  pages['/again'] = () => menu(count('/again') === 1 ? 1 : 60)
  pages['/choice'] = ({ fields }) => {
    const chosen: Record<string, string> = {
      1: doc(`<Gather action="/account" finishOnKey="#" timeout="60">${play('account', 60)}</Gather>`),
      2: doc(
        `<Dial action="/after-room" hangupOnStar="true"><Conference waitUrl="/room-wait">sales</Conference></Dial>`,
      ),
      4: doc(`<Gather action="/card" method="GET" finishOnKey="#" timeout="60">${play('account', 60)}</Gather>`),
      3: doc('<Enqueue action="/after-queue" waitUrl="/queue-wait">support</Enqueue>'),
    }
    return chosen[fields.get('Digits') ?? ''] ?? doc(`${play('wrong')}<Redirect>/again</Redirect>`)
  }
  pages['/account'] = () => doc('<Say language="en-GB">Thank you.</Say><Redirect>/again</Redirect>')
  pages['/card'] = ({ fields }) =>
    doc(
      `<Gather sensitive="true" action="/pin?card=${fields.get('Digits')}" method="GET" timeout="60">${play('wrong', 60)}</Gather>`,
    )
  pages['/pin'] = doc('<Redirect>/again</Redirect>')
  pages['/room-wait'] = doc(play('room', 0))
  pages['/after-room'] = menu(60)
  pages['/queue-wait'] = doc(play('music', 20))
  pages['/agent-connects'] = doc(play('whisper'))
  pages['/accept'] = ({ fields }) => doc(fields.get('Digits') === '1' ? '' : '<Hangup/>')
  pages['/colleague'] = doc(
    `<Gather action="/accept" numDigits="1" timeout="60">${play('whisper', 60)}</Gather><Hangup/>`,
  )
  pages['/voicemail'] = doc(
    `${play('beep')}<Record action="/recorded" finishOnKey="#" maxLength="120" timeout="60" playBeep="true"
       transcribe="true" transcribeCallback="/transcript" recordingStatusCallback="/tape"
       recordingStatusCallbackEvent="in-progress completed"/>`,
  )
  pages['/recorded'] = doc('<Say>Goodbye.</Say><Hangup/>')

  let line!: Line
  let sid = ''
  /** How many packets the caller had received when the message was said. */
  let said = 0
  const next = (path: string, before: number) => until(`another request to ${path}`, () => count(path) > before)
  const bothWays = async (one: Line, other: Line): Promise<void> => {
    for (const [speaker, listener, hz] of [[one, other, 540] as const, [other, one, 860] as const]) {
      const stop = speaker.hum(hz)
      await listener.hears(hz)
      await stop()
    }
  }

  await t.test('1: the caller hears the welcome', async t => {
    line = await callIn(doc(`${play('welcome')}<Redirect>/again</Redirect>`))
    await line.hears(SOUNDS.welcome)
    sid = await town.sidOf(line)
    t.match(await told('/voice'), { CallSid: sid, To: town.own_number, CallStatus: 'ringing', Direction: 'inbound' })
  })

  await t.test('2: without a key the menu repeats', async t => {
    await line.hears(SOUNDS.menu)
    await next('/again', 1)
    await line.hears(SOUNDS.menu)
    t.equal(count('/choice'), 0)
  })

  await t.test('3: a wrong key is announced, and the menu repeats', async t => {
    await line.press('9')
    await line.hears(SOUNDS.wrong)
    t.match(all('/choice')[0], { Digits: '9', CallSid: sid })
    await line.hears(SOUNDS.menu)
  })

  await t.test('4: an account number, ended by its finish key, is confirmed by speech', async t => {
    await line.press('1')
    // A distinct sound, because keys before the Gather are dropped.
    await line.hears(SOUNDS.account)
    t.equal(count('/choice'), 2)
    for (const key of '2468#') await line.press(key)
    t.match(await told('/account'), { Digits: '2468', FinishedOnKey: '#' })
    await line.hearsSomething(SOUNDS.account)
    await line.hears(SOUNDS.menu)
  })

  await t.test('a card number and a PIN reach their action URLs', async t => {
    await line.press('4')
    await line.hears(SOUNDS.account)
    for (const key of `${CARD}#`) await line.press(key)
    t.match(await told('/card'), { Digits: CARD })
    await line.hears(SOUNDS.wrong)
    for (const key of `${PIN}#`) await line.press(key)
    t.match(await told('/pin'), { Digits: PIN, card: CARD })
    await line.hears(SOUNDS.menu)
  })

  const guests: Line[] = []
  await t.test('5: a conference starts with its second participant, and all hear each other', async t => {
    await line.press('2')
    await line.hears(SOUNDS.room)
    for (let guest = 0; guest < 2; guest++)
      guests.push((await callOut(doc('<Dial><Conference beep="false">sales</Conference></Dial>'))).line)
    const everyone = [line, ...guests]
    for (const [index, speaker] of everyone.entries()) {
      const hz = 560 + 140 * index
      const stop = speaker.hum(hz)
      for (const listener of everyone) if (listener !== speaker) await listener.hears(hz)
      t.ok(speaker.level(hz) < -40, 'nobody hears himself')
      await stop()
    }
  })

  await t.test('6: the star key leaves the conference, which continues', async t => {
    await line.press('*')
    t.match(await told('/after-room'), { CallSid: sid, DialCallStatus: 'answered' })
    await line.hears(SOUNDS.menu)
    const [one, other] = guests
    if (!one || !other) throw new Error('nobody is in the room')
    await bothWays(one, other)
    t.ok(line.level(860) < -40, 'the caller is out')
    for (const guest of guests) guest.hangUp()
  })

  await t.test('7: the caller waits in a queue and hears its music', async t => {
    await line.press('3')
    await line.hears(SOUNDS.music)
    t.match(await told('/queue-wait'), { QueuePosition: '1', CurrentQueueSize: '1', CallSid: sid })
  })

  await t.test('8: an agent takes the caller, who hears the agent’s name, and both talk', async t => {
    const agent = await callOut(doc(`<Dial><Queue url="${url}/agent-connects">support</Queue></Dial>`))
    await line.hears(SOUNDS.whisper)
    t.match(await told('/agent-connects'), { DequeingCallSid: agent.sid })
    await bothWays(line, agent.line)
    const colleague = town.someone()
    pages['/after-queue'] = doc(
      `<Dial callerId="${trunk_number}" action="/after-colleague"><Number url="/colleague">${colleague}</Number></Dial>`,
    )
    agent.line.hangUp()
    t.match(await told('/after-queue'), { QueueResult: 'bridged', CallSid: sid })

    await t.test('9: only the colleague hears the whisper, and accepts the call with a key', async t => {
      const desk = await far.incoming(colleague)
      desk.ring()
      await desk.answer()
      await desk.hears(SOUNDS.whisper)
      await until('the caller hears ringing alone', () => line.loudness() > -40 && line.level(SOUNDS.whisper) < -40)
      await desk.press('1')
      t.match(await told('/accept'), { Digits: '1', ParentCallSid: sid })
      await bothWays(line, desk)
      const busy = town.someone()
      pages['/after-colleague'] = doc(
        `<Dial callerId="${trunk_number}" action="/after-manager" timeout="60"><Number>${busy}</Number></Dial>`,
      )
      pages['/after-manager'] = ({ fields }) =>
        doc(fields.get('DialCallStatus') === 'busy' ? '<Redirect>/voicemail</Redirect>' : '<Hangup/>')
      desk.hangUp()
      t.match(await told('/after-colleague'), { DialCallStatus: 'completed', DialBridged: 'true' })
      ;(await far.incoming(busy)).call?.reject(486)
    })
  })

  await t.test('10: the manager is busy, and voicemail answers', async t => {
    t.match(await told('/after-manager'), { DialCallStatus: 'busy' })
    await line.hears(SOUNDS.beep)
  })

  await t.test('11: records the caller’s message until the finish key', async t => {
    await told('/voicemail')
    await until('it records', () => all('/tape').length === 1)
    const began_ms = performance.now()
    await line.say(680, 4000)
    await line.press('#')
    said = line.rtp.received.length
    const recorded = await told('/recorded')
    // The recording ends when the key is heard, which is later than it is pressed.
    const said_ms = performance.now() - began_ms
    t.match(recorded, { Digits: '#', RecordingSid: /^RE/, RecordingUrl: /\.wav$/ })
    const { bytes } = await w.voice('GET', `/Recordings/${recorded['RecordingSid']}.wav`)
    const wav = readWav(bytes)
    const [heard = new Int16Array()] = wav.channels
    t.equal(strongestHz(heard), 680)
    // On a slow machine speech takes longer.
    const fits = wav.duration_ms > 1300 && wav.duration_ms < said_ms + 700
    t.ok(fits, `trimmed to ${wav.duration_ms} ms of ${Math.round(said_ms)}`)
    await until('the recording is told', () => all('/tape').length === 2)
    t.match(all('/tape')[1], { RecordingStatus: 'completed', RecordingSid: recorded['RecordingSid'] })
  })

  await t.test('12: says goodbye, ends the call, and transcribes the message', async t => {
    const heard = (): boolean => sounding(line.rtp.audio(said)).length > 8 * 200
    await line.rtp.until(heard, PATIENCE_MS, 'the goodbye')
    t.equal(await line.over(), 'peer')
    t.match(await told('/transcript'), {
      TranscriptionStatus: 'completed',
      TranscriptionText: 'call me back about **** **** **** 1111',
      CallSid: sid,
    })
    const [sent = Buffer.alloc(44)] = transcribed
    const samples = new Int16Array(sent.buffer.slice(sent.byteOffset + 44, sent.byteOffset + sent.length))
    t.ok(levelDbm0(samples) > -40, 'the engine got the message')
    t.equal((await w.ended(sid)).status, 'completed')
  })

  await t.test('no step failed, and every script replays byte for byte', async t => {
    const kinds = await w.state.db
      .selectFrom('call_event')
      .select(['kind', 'number'])
      .where('call_sid', '=', sid)
      .execute()
    t.same(
      kinds.filter(({ kind }) => kind === 'warning' || kind === 'error'),
      [],
    )
    const folder = join(w.data_dir, 'runs')
    const logs = readdirSync(folder).filter(name => name.startsWith(sid))
    t.ok(logs.length >= 3, 'the call, the wait in the room, the wait in the queue')
    for (const name of logs) t.match(replay(readFileSync(join(folder, name), 'utf8')), { same: true }, name)
  })
  await t.test('neither the card number nor the PIN is in any file of the data folder or in any log', async t => {
    const { events } = (await w.voice('GET', `/Calls/${sid}/Events.json?PageSize=1000`)).body
    const asked = (path: string) =>
      events.find(({ request }: { request: { url: string } }) => request.url.includes(path))
    t.match(asked('/card?').request.parameters, { digits: '************1111' })
    t.match(asked('/pin?').request.parameters, { digits: '[secret]' })
    // A plain recording that is encrypted meanwhile would be gone when it is read.
    await until('the recordings are encrypted', async () => {
      const rows = await w.state.db.selectFrom('recording').select('file').where('status', '=', 'completed').execute()
      const path = (file: string): string => join(w.data_dir, file.replace(/\.sealed$/, ''))
      return rows.every(({ file }) => file.endsWith('.sealed') && !existsSync(path(file)))
    })
    const files = readdirSync(w.data_dir, { recursive: true, encoding: 'utf8' })
      .map(name => join(w.data_dir, name))
      .filter(path => statSync(path).isFile())
    t.ok(files.length > 3, 'the database and the logs of runs')
    const holding = (text: string) => files.filter(path => readFileSync(path).includes(text))
    t.same([...holding(CARD), ...holding(PIN), ...holding(SAID_CARD)], [])
    t.notMatch(w.log(), CARD)
    t.notMatch(w.log(), PIN)
  })
})

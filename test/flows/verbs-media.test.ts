import { createHmac } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { newId } from '../../core/runtime/ids.ts'
import { compressUlaw } from '../../media/files/pcm.ts'
import { tone, wavBytes } from '../support/audio.ts'
import t, { type Test } from '../support/harness/index.ts'
import { endsSilent, recognizerServer, socketServer } from '../support/recognizer.ts'
import { recordsSound } from '../support/recordings.ts'
import { echoAgent, relayApp, say, sayAndHear } from '../support/relay-app.ts'
import type { Line } from '../support/softphone.ts'
import { HAS_POCKETSPHINX, person, understood } from '../support/spoken.ts'
import { stockClient } from '../support/stock-library.ts'
import { addTenant } from '../support/tenants.ts'
import { voiceTown } from '../support/voice-town.ts'
import { until } from '../support/wait.ts'
import { world } from '../support/world.ts'

// Verbs that speak, play, gather, record and stream, with every attribute on a live call. A desk telephone calls the
// platform. Speech recognition is a real WebSocket server, transcription a real HTTP server.

/** Receives two seconds of packets and checks that they are one stream. A busy machine may deliver them late. */
async function steady(t: Test, { rtp }: Line, what: string): Promise<void> {
  const from = rtp.received.length
  oneStream(t, (await rtp.packets(from + 100)).slice(from, from + 100), what)
}

/**
 * Checks that each packet follows the one before by one number and 20 ms of the clock. After a stop of the platform the
 * timestamp goes on with the time: the packets behind it come no earlier, by their timestamps, than those before. This
 * process may read many packets late, but none early, so the least delay of each part counts.
 */
function oneStream(t: Test, packets: Line['rtp']['received'], what: string): void {
  const [first] = packets
  const delays = packets.map(packet => packet.at_ms - ((packet.timestamp - (first?.timestamp ?? 0)) >>> 0) / 8)
  const least = (from: number, to: number): number => Math.min(...delays.slice(from, to))
  const steps = packets.slice(1).map((packet, index) => {
    const before = packets[index] ?? packet
    const units = (packet.timestamp - before.timestamp) >>> 0
    const stopped = units > 160 && least(index + 1, packets.length) > least(0, index + 1) - 120
    return [(packet.sequence - before.sequence) & 0xffff, stopped ? 160 : units, packet.ssrc]
  })
  const odd = steps.find(([numbers, units, ssrc]) => numbers !== 1 || units !== 160 || ssrc !== packets[0]?.ssrc)
  t.equal(odd, undefined, `${what}: numbers and timestamps continue`)
}

const LONG_ANSWER = 'This is a rather long answer that the caller will interrupt in the middle of it.'

t.test('verbs with media', async t => {
  const engine = await recognizerServer(t, 'two large pizzas')
  const town = await voiceTown(t, {
    addresses: ['127.0.0.63', '127.0.0.64'],
    world: web =>
      world(t, {
        STROWGER_RECOGNIZER_URL: engine.url,
        STROWGER_TRANSCRIBER_URL: `${web.url}/transcribe`,
      }),
  })
  const { w, pages, web, told, all, callIn, callOut, far } = town
  const url = web.url
  pages['/900.wav'] = { type: 'audio/wav', body: wavBytes(8000, tone(900, 4000)) }
  pages['/transcribe'] = { type: 'application/json', body: '{"transcript":"please call me back","confidence":0.92}' }
  const doc = (inside: string): string => `<Response>${inside}</Response>`
  const methodOf = (path: string): string | undefined => web.requests.find(request => request.path === path)?.method

  await t.test('Say and Play: voices, languages, SSML, loops and keys, with a warning for unknown voices', async t => {
    const streamed = wavBytes(8000, tone(700, 4000))
    streamed.writeUInt32LE(0, 40)
    pages['/streamed.wav'] = { type: 'audio/wav', body: streamed }
    pages['/empty.wav'] = { type: 'audio/wav', body: wavBytes(8000, new Int16Array(0)) }
    const line = await callIn(
      doc(
        `<Play>${url}/empty.wav</Play><Play>${url}/streamed.wav</Play><Say voice="Polly.Joanna" language="en-GB" loop="2">Good <break time="100ms"/> day.</Say>
        <Say voice="Robbie" language="xx-XX">Hello.</Say><Play loop="2">${url}/900.wav</Play><Play digits="1w2"/><Pause length="1"/>`,
      ),
    )
    await line.answered()
    await line.hears(700)
    await line.hearsSomething(700)
    await line.hears(900)
    await line.hearsKeys('12')
    const sid = await town.sidOf(line)
    t.equal(await line.over(), 'peer')
    // An unknown voice, an unknown language.
    await town.noted(sid, 13511)
    await town.noted(sid, 13512)
    await town.noted(sid, 13420)
    const events = await w.state.db.selectFrom('call_event').select('detail').where('number', '=', 13420).execute()
    t.match(events, [{ detail: /the file has no audio/ }], 'an empty file leaves its reason')
  })

  await t.test('while nothing plays, the peer gets silence as one stream', async t => {
    const idle = {
      Pause: '<Pause length="30"/>',
      Gather: '<Gather timeout="30"/>',
      Record: '<Record playBeep="false" timeout="30"/>',
      Conference: '<Dial><Conference waitUrl="">nobody else</Conference></Dial>',
      Enqueue: `<Enqueue waitUrl="${url}/nothing">nobody serves</Enqueue>`,
    }
    const running = Object.entries(idle).map(async ([verb, markup]) => {
      const { line } = await callOut(doc(markup))
      await steady(t, line, verb)
      t.ok(line.loudness() < -60, `${verb}: it is silent`)
      line.hangUp()
    })
    await Promise.all(running)
    const { line } = await callOut(doc(`<Pause length="1"/><Play>${url}/900.wav</Play><Pause length="30"/>`))
    await line.hears(900)
    await line.rtp.until(() => line.level(900) < -60, undefined, 'the end of the play')
    await steady(t, line, 'after a play')
    oneStream(t, line.rtp.received, 'pause, play, pause')
    line.hangUp()
  })

  await t.test('SendDigits are sent before the document begins', async t => {
    pages['/after-the-keys'] = doc('<Hangup/>')
    const begun_ms = performance.now()
    const { line } = await town.callOut('', { Url: `${url}/after-the-keys`, SendDigits: 'wwww12' })
    await line.hearsKeys('12')
    await told('/after-the-keys')
    t.ok(performance.now() - begun_ms > 2000, 'the document waits for the pauses and keys')
    await line.over()
  })

  await t.test('Gather collects keys according to its attributes', async t => {
    const line = await callIn(
      doc(
        `<Gather action="${url}/keys" method="GET" input="dtmf" timeout="60" finishOnKey="*" numDigits="5" debug="true"><Say>Type.</Say></Gather>`,
      ),
    )
    pages['/keys'] = doc(
      `<Gather action="${url}/none" actionOnEmptyResult="true" timeout="1"><Play>${url}/900.wav</Play></Gather>`,
    )
    await line.hearsSomething()
    for (const key of '12*') await line.press(key)
    t.match(await told('/keys'), { Digits: '12', FinishedOnKey: '*' })
    t.equal(methodOf('/keys'), 'GET')
    await line.hears(900)
    t.match(await told('/none'), { Digits: '' })
    await line.over()
  })

  await t.test('Gather collects speech: the engine gets the caller’s audio and the document’s hints', async t => {
    const speech = `speechTimeout="5" maxSpeechTime="20" language="en-GB" hints="pizza, pasta" speechModel="phone_call" enhanced="true" noiseSuppression="true" profanityFilter="false" bargeIn="true"`
    const line = await callIn(
      doc(
        `<Gather input="speech dtmf" timeout="8" action="${url}/speech" ${speech} partialResultCallback="${url}/partial" partialResultCallbackMethod="GET"><Play loop="20">${url}/900.wav</Play></Gather>`,
      ),
    )
    await line.hears(900)
    const stop = line.hum(600)
    t.match(await told('/speech'), { SpeechResult: 'two large pizzas', Confidence: '0.9', Language: 'en-GB' })
    await stop()
    t.match(await told('/partial'), { UnstableSpeechResult: 'yes', SequenceNumber: '0' })
    t.equal(methodOf('/partial'), 'GET')
    await line.over()
    t.match(engine.connections[0]?.frames[1]?.['start'].recognition, {
      language: 'en-GB',
      hints: ['pizza', 'pasta'],
      model: 'phone_call',
      enhanced: true,
      profanity_filter: false,
      silence_ms: 5000,
      max_speech_ms: 20_000,
      partial: true,
    })
  })

  await t.test('Record: beep, finish key, callbacks, and a transcription by an engine behind HTTP', async t => {
    const callback = `recordingStatusCallback="${url}/recorded" recordingStatusCallbackMethod="GET" recordingStatusCallbackEvent="in-progress completed"`
    const line = await callIn(
      doc(
        `<Record action="${url}/left" method="GET" timeout="60" finishOnKey="9" maxLength="120" playBeep="true" trim="do-not-trim" ${callback} transcribe="true" transcribeCallback="${url}/transcribed"/>`,
      ),
    )
    await line.hears(1000)
    // What is said and pressed before the recording begins is not in it.
    await until('it records', () => all('/recorded').length === 1)
    const stop = line.hum(600)
    await recordsSound(w, await town.sidOf(line))
    await stop()
    await line.say(600, 1500)
    await line.press('9')
    const left = await told('/left')
    t.match(left, { Digits: '9', RecordingSid: /^RE/, RecordingDuration: /^[1-9]\d*$/ })
    t.equal(methodOf('/left'), 'GET')
    t.match(await told('/transcribed'), {
      TranscriptionText: 'please call me back',
      TranscriptionStatus: 'completed',
      TranscriptionSid: /^TR[0-9a-f]{32}$/,
      RecordingSid: left['RecordingSid'],
    })
    await until('both recording callbacks', () => all('/recorded').length === 2)
    t.same(
      all('/recorded').map(fields => fields['RecordingStatus']),
      ['in-progress', 'completed'],
    )
    t.ok(
      web.requests.some(request => request.path === '/transcribe' && request.headers['content-type'] === 'audio/wav'),
    )
    await line.over()
  })

  await t.test(
    'the RecordingUrl of an action is played wherever a document names sound, also once it is encrypted',
    async t => {
      const begun = `recordingStatusCallback="${url}/keeping" recordingStatusCallbackEvent="in-progress"`
      const recording = await callIn(
        doc(`<Record action="${url}/kept" finishOnKey="9" timeout="60" playBeep="false" ${begun}/>`),
      )
      // What is said before the recording begins is not in it.
      await told('/keeping')
      const stop = recording.hum(600)
      await recordsSound(w, await town.sidOf(recording))
      await stop()
      await recording.say(600, 1500)
      // A key by INFO ends it as one in the media does.
      await recording.send('INFO', { body: 'Signal=9\r\nDuration=160\r\n', content_type: 'application/dtmf-relay' })
      const { Digits, RecordingUrl = '', RecordingSid = '' } = await told('/kept')
      t.equal(Digits, '9')
      await recording.over()
      const sealed = until('the recording is encrypted', async () => {
        const row = await w.state.db
          .selectFrom('recording')
          .select('file')
          .where('sid', '=', RecordingSid)
          .executeTakeFirstOrThrow()
        return row.file.endsWith('.sealed')
      })
      const documents = {
        Play: `<Play>${RecordingUrl}?again=1</Play><Hangup/>`,
        Gather: `<Gather timeout="1"><Play loop="2">${w.base_url}/v1/recordings/${RecordingSid}.wav</Play></Gather>`,
        waitUrl: `<Enqueue waitUrl="${RecordingUrl}" waitUrlMethod="GET">own sound</Enqueue>`,
      }
      for (const round of ['at once', 'encrypted']) {
        for (const [verb, markup] of Object.entries(documents)) {
          const line = await callIn(doc(markup))
          await line.hears(600)
          const sid = await town.sidOf(line)
          line.hangUp()
          await line.over()
          const events = await w.voice('GET', `/Calls/${sid}/Events.json`)
          const urls = events.body.events.map((event: { request: { url: string } }) => event.request.url)
          t.notOk(
            urls.some((asked: string) => asked.includes(RecordingSid)),
            `${verb} ${round}: no request to ourselves`,
          )
        }
        if (round === 'at once') await sealed
      }
      const someone = town.someone()
      const whispered = await callIn(
        doc(`<Dial callerId="${town.trunk_number}"><Number url="${RecordingUrl}">${someone}</Number></Dial>`),
      )
      const called = await town.far.incoming(someone)
      await called.answer()
      await called.hears(600)
      whispered.hangUp()
      await whispered.over()
      await until('no copy is left', () => readdirSync(join(w.data_dir, 'recordings/.sounds')).length === 0)
    },
  )

  await t.test('a recording of another project is refused as one that does not exist', async t => {
    const rival = await addTenant(w.state, w.master_key, ['+2348030007755'])
    const own = await w.state.db
      .selectFrom('recording')
      .selectAll()
      .where('status', '=', 'completed')
      .executeTakeFirstOrThrow()
    const [theirs, gone] = [newId.recording(), newId.recording()]
    await w.state.db
      .insertInto('recording')
      .values({ ...own, sid: theirs, project_id: rival.project_id })
      .execute()
    const account = (sid: string) => `${w.base_url}/2010-04-01/Accounts/${sid}/Recordings`
    const base = w.base_url.replace('://', `://${rival.account_sid}:${rival.auth_token}@`)
    const told: Record<string, string[]> = { [theirs]: [], [gone]: [] }
    for (const sid of [theirs, gone])
      for (const address of [
        `${account(rival.account_sid)}/${sid}.wav`,
        `${account(w.account_sid)}/${sid}.wav`,
        `${base}/v1/recordings/${sid}.wav`,
      ]) {
        const line = await callIn(doc(`<Play>${address}</Play><Play>${url}/900.wav</Play>`))
        await line.hears(900)
        const call = await town.sidOf(line)
        await line.over()
        await town.noted(call, 11200)
        const { body } = await w.voice('GET', `/Calls/${call}/Events.json`)
        const missed = body.events.find(
          (event: { response: { error_code?: number } }) => event.response.error_code === 11200,
        )
        t.match(missed.request.url, `/${sid}.wav`, 'the warning names the sound')
        t.notMatch(missed.request.url, rival.auth_token)
        told[sid]?.push(missed.response.error_message)
      }
    t.same(told[theirs], told[gone], 'and nothing tells them apart')
    const waiting = await callIn(
      doc(`<Enqueue waitUrl="${account(rival.account_sid)}/${theirs}.wav" waitUrlMethod="GET">not mine</Enqueue>`),
    )
    await waiting.answered()
    await town.noted(await town.sidOf(waiting), 11200)
    waiting.hangUp()
    await waiting.over()
    await w.state.db.deleteFrom('recording').where('sid', '=', theirs).execute()
  })

  await t.test('a sound that cannot be had leaves its warning among the events of the call', async t => {
    pages['/missing.wav'] = { status: 404 }
    pages['/broken.wav'] = { type: 'audio/wav', body: Buffer.from('RIFF') }
    const gsm = readFileSync(fileURLToPath(new URL('../../../fixtures/audio/tone-600hz.gsm', import.meta.url)))
    pages['/600.gsm'] = { type: 'audio/x-gsm', body: gsm }
    const line = await callIn(
      doc(`<Play>${url}/broken.wav</Play><Play>${url}/missing.wav</Play><Play loop="0">${url}/600.gsm</Play>`),
    )
    await line.hears(600)
    const sid = await town.sidOf(line)
    line.hangUp()
    await line.over()
    for (const number of [13420, 11200]) await town.noted(sid, number)
    const { body } = await w.voice('GET', `/Calls/${sid}/Events.json`)
    const faults = body.events
      .filter((event: { response: { error_code?: number } }) => event.response.error_code !== undefined)
      .map((event: { request: { url: string }; response: { error_code: number } }) => [
        event.request.url,
        event.response.error_code,
      ])
    t.same(faults, [
      [`${url}/broken.wav`, 13420],
      [`${url}/missing.wav`, 11200],
    ])
  })

  await t.test('Connect Stream: audio both ways, a signed handshake, parameters, callbacks', async t => {
    const payload = Buffer.from(Uint8Array.from(tone(700, 1000), compressUlaw)).toString('base64')
    const server = await socketServer(t, (frame, socket) => {
      if (frame.event !== 'start') return
      const streamSid = frame['streamSid']
      socket.send(JSON.stringify({ event: 'media', streamSid, media: { payload } }))
      socket.send(JSON.stringify({ event: 'mark', streamSid, mark: { name: 'played' } }))
    })
    const stream = `<Stream url="${server.url}/audio" name="bot" track="inbound_track" statusCallback="${url}/bot" statusCallbackMethod="GET" connectorName="x" audioFormat="y" sampleRate="z"><Parameter name="lang" value="en"/></Stream>`
    const line = await callIn(doc(`<Connect action="${url}/bot-done" method="GET">${stream}</Connect>`))
    await line.hears(700)
    await line.say(600, 600)
    const connection = server.connections[0]
    await until('the mark comes back', () => connection?.frames.some(frame => frame.event === 'mark'))
    t.same(connection?.frames[1]?.['start'].customParameters, { lang: 'en' })
    const signed = createHmac('sha1', w.auth_token).update(`${server.url}/audio`).digest('base64')
    t.equal(connection?.headers['x-twilio-signature'], signed)
    line.hangUp()
    await until('stop', () => connection?.frames.some(frame => frame.event === 'stop'))
    await until('both callbacks', () => all('/bot').length === 2)
    t.match(all('/bot'), [
      { StreamEvent: 'stream-started', StreamName: 'bot' },
      { StreamEvent: 'stream-stopped', StreamName: 'bot' },
    ])
    t.equal(methodOf('/bot'), 'GET')
    await told('/bot-done')
    t.equal(methodOf('/bot-done'), 'GET')
  })

  await t.test('Connect Stream ends with its socket, and the action is requested', async t => {
    const server = await socketServer(t, (frame, socket) => {
      if (frame.event === 'start') socket.close()
    })
    const line = await callIn(doc(`<Connect action="${url}/closed"><Stream url="${server.url}"/></Connect>`))
    await told('/closed')
    await line.over()
  })

  await t.test(
    'Connect ConversationRelay: the application hears in text, answers in speech, and hands over',
    async t => {
      const app = await relayApp(t)
      const settings = `language="en-US" ttsLanguage="en-GB" transcriptionLanguage="en-GB" ttsProvider="a" voice="woman" transcriptionProvider="b" speechModel="c" interruptible="any" interruptSensitivity="high" dtmfDetection="true" reportInputDuringAgentSpeech="any" preemptible="true" hints="pizza" profanityFilter="true" noiseSuppression="true" debug="x" elevenlabsTextNormalization="x" intelligenceService="x"`
      const inner = `<Language code="de-DE" ttsProvider="a" voice="man" transcriptionProvider="b" speechModel="c"/><Parameter name="shop" value="12"/>`
      const line = await callIn(
        doc(
          `<Connect action="${url}/agent-done"><ConversationRelay url="${app.url}" welcomeGreeting="Hello." welcomeGreetingInterruptible="none" ${settings}>${inner}</ConversationRelay></Connect>`,
        ),
      )
      const sid = await town.sidOf(line)
      const setup = await app.told('setup')
      t.match(setup, { callSid: sid, direction: 'inbound', callType: 'PSTN', customParameters: { shop: '12' } })
      const signature = createHmac('sha1', w.auth_token).update(app.url).digest('base64')
      t.equal(app.headers['x-twilio-signature'], signature)
      await line.rtp.sounds(0)
      const asks = line.hum(300)
      t.match(await app.told('prompt', message => message['last']), { voicePrompt: 'two large pizzas' })
      await asks()
      // What the caller has said may still wait in the jitter buffer, and would interrupt the answer. A worker that was
      // stopped fills that time with silence first, so that two seconds of it tell nothing.
      const quiet = until('the engine hears silence', () => endsSilent(engine.connections.at(-1)?.frames ?? [], 120))
      await line.rtp.sendUntil(new Int16Array(8 * 60_000), quiet)
      app.send({ type: 'text', token: 'You want two large pizzas. ' })
      app.send({ type: 'text', token: LONG_ANSWER, last: true })
      await line.hearsSomething()
      const stop = line.hum(300)
      const { utteranceUntilInterrupt } = await app.told('interrupt')
      await stop()
      t.ok(`You want two large pizzas. ${LONG_ANSWER}`.startsWith(utteranceUntilInterrupt), utteranceUntilInterrupt)
      await line.press('5')
      t.match(await app.told('dtmf'), { digit: '5' })
      pages['/agent-done'] = doc(`<Play>${url}/900.wav</Play>`)
      app.send({ type: 'end', handoffData: '{"to":"a person"}' })
      t.match(await told('/agent-done'), {
        SessionId: setup['sessionId'],
        SessionStatus: 'ended',
        SessionDuration: /^\d+$/,
        HandoffData: '{"to":"a person"}',
      })
      await line.hears(900)
      await line.over()
      await town.noted(sid, 64101, 1)
    },
  )

  await t.test(
    'an agent talks without a network, by the engine of its application, and hands over to a person',
    async t => {
      if (!HAS_POCKETSPHINX) return t.comment('pocketsphinx is not installed')
      const application = (await w.manage('GET', '/voice/applications')).body.data.find(
        (known: { name: string }) => known.name === `Application of ${town.own_number}`,
      )
      const path = `/voice/applications/${application.id}`
      const choose = async (stt: string | null) => {
        const { etag } = Object.fromEntries((await w.manage('GET', path)).headers)
        const saved = await w.manage('PATCH', path, { stt }, { 'If-Match': etag ?? '' })
        t.match(saved, { status: 200, body: { stt } })
        await until('it is applied', async () => (await w.manage('GET', path)).body.provisioning_status === 'applied')
      }
      // The operator's recognizer hears two large pizzas in everything.
      await choose('pocketsphinx')
      const spoken = person(t)
      const phrases = ['opening hours', 'a person', 'good morning']
      const app = await echoAgent(t)
      const colleague = town.someone()
      pages['/to-a-person'] = doc(`<Dial callerId="${town.trunk_number}"><Number>${colleague}</Number></Dial>`)
      const relay = `<ConversationRelay url="${app.url}" dtmfDetection="true" hints="${phrases.join(', ')}"/>`
      const line = await callIn(doc(`<Connect action="${url}/to-a-person">${relay}</Connect>`))
      const sid = await town.sidOf(line)
      await app.told('setup')
      const from = line.rtp.received.length
      const sentence = await spoken('You said opening hours.')
      const opening = await spoken('opening hours')
      const { at_ms, answer } = await sayAndHear(app, line.rtp, 'opening hours', opening, sentence.length)
      await say(app, line.rtp, 'good morning', await spoken('good morning'))
      const { utteranceUntilInterrupt } = await app.told('interrupt', interrupt => interrupt.at_ms > at_ms)
      t.match(utteranceUntilInterrupt, /^You said opening hours\./)
      t.notMatch(utteranceUntilInterrupt, /That was it/, 'the caller interrupted')
      t.match(
        await understood(
          answer.subarray(0, sentence.length),
          phrases.map(phrase => `you said ${phrase}`),
        ),
        'you said opening hours',
      )
      await line.hearsSomething()
      await line.press('0')
      const child = await far.incoming(colleague)
      oneStream(t, line.rtp.received.slice(from), 'all that the caller heard')
      await child.answer()
      const stop = [line.hum(500), child.hum(900)]
      await Promise.all([child.hears(500), line.hears(900)])
      for (const hush of stop) await hush()
      t.match(await told('/to-a-person'), { SessionStatus: 'ended', HandoffData: '{"to":"a person"}' })
      line.hangUp()
      await child.over()

      const { events } = (await w.manage('GET', `/calls/${sid}`)).body
      const turns = events.find(({ detail }: { detail: { what?: string } }) => detail.what === 'agent_turns')?.detail
        .turns
      t.match(turns?.[0], { detector_ms: Number, recognizer_ms: Number, customer_ms: Number, voice_ms: Number })
      await choose(null)
    },
  )

  await t.test('Connect ConversationRelay whose socket cannot be reached requests its action', async t => {
    pages['/agent-lost'] = doc('<Hangup/>')
    const relay = '<ConversationRelay url="ws://127.0.0.1:9/"/>'
    const line = await callIn(doc(`<Connect action="${url}/agent-lost">${relay}</Connect>`))
    t.match(await told('/agent-lost'), { SessionStatus: 'failed', ErrorCode: '64102' })
    await line.over()
    await town.noted(await town.sidOf(line), 64102)
  })

  await t.test('Start and Stop: streams, recordings and transcriptions run alongside the script', async t => {
    const server = await socketServer(t)
    const stream = `<Stream url="${server.url}/fork" name="ears" track="both_tracks" statusCallback="${url}/fork" statusCallbackMethod="POST" connectorName="x" audioFormat="y" sampleRate="z"><Parameter name="a" value="b"/></Stream>`
    const recording = `<Recording name="tape" channels="mono" track="inbound" trim="do-not-trim" recordingStatusCallback="${url}/tape" recordingStatusCallbackMethod="GET" recordingStatusCallbackEvent="in-progress completed"/>`
    const words = `<Transcription name="words" track="inbound_track" languageCode="en-GB" inboundTrackLabel="caller" outboundTrackLabel="us" partialResults="true" transcriptionEngine="any" speechModel="m" hints="a,b" profanityFilter="false" enableAutomaticPunctuation="false" statusCallbackUrl="${url}/words" statusCallbackMethod="GET" intelligenceService="x"/>`
    const first = engine.connections.length
    const line = await callIn(
      doc(
        `<Start action="${url}/never" method="GET">${stream}${recording}${words}</Start><Gather action="${url}/stop" numDigits="1" timeout="20"><Play loop="20">${url}/900.wav</Play></Gather>`,
      ),
    )
    pages['/stop'] = doc(
      `<Stop action="${url}/never" method="GET">${stream}${recording}${words}</Stop><Pause length="1"/><Play>${url}/900.wav</Play>`,
    )
    await line.answered()
    await until('the engine listens', () => engine.connections.length > first)
    const stop = line.hum(600)
    await until('the words', () => all('/words').some(fields => fields['Final'] === 'true'))
    await stop()
    await line.press('1')
    await line.hears(900)
    await line.over()
    await until(
      'all have stopped',
      () => all('/words').length === 4 && all('/tape').length === 2 && all('/fork').length === 2,
    )
    t.match(all('/words'), [
      { TranscriptionEvent: 'transcription-started', TranscriptionName: 'words', LanguageCode: 'en-GB' },
      { TranscriptionEvent: 'transcription-content', Final: 'false', Track: 'inbound_track', TrackLabel: 'caller' },
      { TranscriptionEvent: 'transcription-content', Final: 'true', TranscriptionData: /two large pizzas/ },
      { TranscriptionEvent: 'transcription-stopped' },
    ])
    t.same(
      all('/tape').map(fields => [fields['RecordingStatus'], fields['RecordingTrack'], fields['RecordingChannels']]),
      [
        ['in-progress', 'inbound', '1'],
        ['completed', 'inbound', '1'],
      ],
    )
    await until('the fork has stopped', () => server.connections[0]?.frames.some(frame => frame.event === 'stop'))
    const tracks = new Set(server.connections[0]?.frames.map(frame => frame['media']?.track).filter(Boolean))
    t.same([...tracks].sort(), ['inbound', 'outbound'])
    t.same(
      all('/fork').map(fields => fields['StreamEvent']),
      ['stream-started', 'stream-stopped'],
    )
    t.equal(methodOf('/tape'), 'GET')
    t.same(all('/never'), [])
  })

  await t.test('a transcription by the API writes down what is said until the API stops it', async t => {
    await w.state.db.updateTable('voice_account').set({ voice_api: 'extended' }).execute()
    const { client } = stockClient(w)
    const talk = await callOut(doc(`<Play loop="0">${url}/900.wav</Play>`))
    const { sid } = await client
      .calls(talk.sid)
      .transcriptions.create({ track: 'inbound_track', name: 'notes', statusCallbackUrl: `${url}/notes` })
    await until('it listens', () => all('/notes').length > 0)
    const stop = talk.line.hum(600)
    await until('the words', () => all('/notes').length > 1)
    await stop()
    await client.calls(talk.sid).transcriptions(sid).update({ status: 'stopped' })
    await until('the end', () => all('/notes').length === 3)
    t.match(all('/notes'), [
      { TranscriptionEvent: 'transcription-started', TranscriptionSid: sid, TranscriptionName: 'notes' },
      { TranscriptionEvent: 'transcription-content', Final: 'true', TranscriptionData: /two large pizzas/ },
      { TranscriptionEvent: 'transcription-stopped' },
    ])
    await talk.line.hears(900)
    talk.line.hangUp()
  })

  await t.test('Echo sends back what the caller says', async t => {
    const line = await callIn(doc('<Echo/>'))
    await line.answered()
    const stop = line.hum(750)
    await line.hears(750)
    t.ok(line.level(600) < -40, 'and nothing else')
    await stop()
    line.hangUp()
  })

  await t.test('an unavailable feature is skipped, and the script takes its failure branch', async t => {
    pages['/sms'] = doc(`<Pay action="${url}/pay" method="GET"/>`)
    pages['/pay'] = doc(`<Prompt action="${url}/prompt" method="GET"/><Redirect>${url}/bots</Redirect>`)
    pages['/prompt'] = doc(`<Redirect>${url}/bots</Redirect>`)
    const parameter = '<Parameter name="a" value="b"/>'
    pages['/bots'] = doc(
      `<Connect><Room>${parameter}</Room></Connect>
      <Connect><VirtualAgent>${parameter}</VirtualAgent></Connect>
      <Connect><Conversation>${parameter}</Conversation></Connect>
      <Connect><Autopilot>${parameter}</Autopilot></Connect><Connect><AiSession>${parameter}</AiSession></Connect>
      <Connect><ConversationRelaySession>${parameter}</ConversationRelaySession></Connect>
      <Connect action="${url}/assistant"><Assistant>${parameter}</Assistant></Connect>`,
    )
    const line = await callIn(doc(`<Sms action="${url}/sms" method="GET">hi</Sms>`))
    t.match(await told('/sms'), { SmsStatus: 'failed' })
    t.match(await told('/pay'), { Result: 'payment-connector-error' })
    await told('/assistant')
    await line.over()
    await town.noted(await town.sidOf(line), 12200, 8)
  })

  await t.test('nothing is left', async t => {
    await w.untilNone('live_calls', 'media_legs')
    t.pass('no call and no leg')
  })
})

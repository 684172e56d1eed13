import { makeClientCredential } from '../../core/runtime/client-token.ts'
import { newId } from '../../core/runtime/ids.ts'
import { openTrap } from '../adversary/traps.ts'
import { readWav, strongestHz, tone, toneLevelDbm0, wavBytes } from '../support/audio.ts'
import { openSoftphone as openBrowser } from '../support/browser.ts'
import { addCarrier } from '../support/carriers.ts'
import t from '../support/harness/index.ts'
import { freePort } from '../support/ports.ts'
import { type Line, openSoftphone } from '../support/softphone.ts'
import { stockClient } from '../support/stock-library.ts'
import { voiceTown } from '../support/voice-town.ts'
import { until } from '../support/wait.ts'
import { world } from '../support/world.ts'

// Conferences, queues, applications and recording servers, with every attribute on live calls of several telephones.

t.test('verbs that connect several callers', async t => {
  // The recording server is a separate telephone. Its address must be known before the platform starts.
  const recorder_port = await freePort()
  const http_port = await freePort()
  const traps = { carrier: await openTrap(t, '127.0.0.68'), private: await openTrap(t, '127.0.0.69') }
  const recorders = {
    vault: `sip:vault@127.0.0.67:${recorder_port}`,
    carrier: `sip:vault@127.0.0.68:${traps.carrier.port}`,
    private: `sip:vault@127.0.0.69:${traps.private.port};transport=tcp`,
    own: `sip:vault@127.0.0.1:${http_port};transport=tcp`,
  }
  const town = await voiceTown(t, {
    addresses: ['127.0.0.65', '127.0.0.66'],
    world: () =>
      world(t, {
        STROWGER_HTTP_PORT: String(http_port),
        STROWGER_ALLOW_PRIVATE_PEERS: '127.0.0.1/32,127.0.0.64/30,127.0.0.68/32',
        STROWGER_SIPREC: Object.entries(recorders)
          .map(([name, uri]) => `${name}=${uri}`)
          .join(),
      }),
  })
  const { w, pages, web, told, all, callIn, callOut, far, trunk_number } = town
  const url = web.url
  pages['/900.wav'] = { type: 'audio/wav', body: wavBytes(8000, tone(900, 4000)) }
  const doc = (inside: string): string => `<Response>${inside}</Response>`
  const methodOf = (path: string): string | undefined => web.requests.find(request => request.path === path)?.method
  const events = (path: string): string[] => all(path).map(fields => fields['StatusCallbackEvent'] ?? '')
  const happened = (path: string, event: string, count = 1) =>
    until(`${count} ${event}`, () => events(path).filter(seen => seen === event).length >= count)

  await t.test('Conference: waits, mutes, coaches, records, fills up, labels, and ends with its host', async t => {
    pages['/music'] = { type: 'audio/wav', body: wavBytes(8000, tone(480, 1500)) }
    pages['/wait'] = doc(`<Play loop="20">${url}/music</Play>`)
    const callbacks = `statusCallback="${url}/room" statusCallbackMethod="GET" statusCallbackEvent="start end join leave mute hold modify speaker announcement" recordingStatusCallback="${url}/room-tape" recordingStatusCallbackMethod="GET" recordingStatusCallbackEvent="in-progress completed" eventCallbackUrl="${url}/old"`
    const host = await callOut(
      doc(
        `<Dial><Conference startConferenceOnEnter="true" endConferenceOnExit="true" participantLabel="host" beep="false" waitUrl="${url}/wait" waitMethod="GET" maxParticipants="4" record="record-from-start" trim="do-not-trim" jitterBufferSize="small" region="ie1" ${callbacks}>board</Conference></Dial>`,
      ),
    )
    await host.line.hears(480)
    t.equal(methodOf('/wait'), 'GET')
    const early = await callOut(
      doc('<Dial><Conference startConferenceOnEnter="false" beep="onExit">board</Conference></Dial>'),
    )
    await happened('/room', 'conference-start')
    const muted = await callOut(doc('<Dial><Conference muted="true" beep="onEnter">board</Conference></Dial>'))
    await happened('/room', 'participant-join', 3)
    const coach = await callOut(
      doc(`<Dial><Conference coach="${early.sid}" participantLabel="coach" beep="false">board</Conference></Dial>`),
    )
    await happened('/room', 'participant-join', 4)

    const speak = async (line: Line, hz: number, hearing: readonly Line[], deaf: readonly Line[]): Promise<void> => {
      const stop = line.hum(hz)
      for (const other of hearing) await other.hears(hz)
      for (const other of deaf) t.ok(other.level(hz) < -40, `${hz} Hz is not for everybody`)
      await stop()
    }
    await speak(early.line, 650, [host.line, muted.line, coach.line], [early.line])
    const hushed = muted.line.hum(1150)
    await speak(host.line, 750, [early.line, muted.line, coach.line], [])
    t.ok(host.line.level(1150) < -40, 'the muted one is not heard')
    await hushed()
    await speak(coach.line, 850, [early.line], [host.line, muted.line])
    await happened('/room', 'participant-speech-start')
    await happened('/room', 'participant-speech-stop')

    pages['/full'] = doc(
      `<Dial action="${url}/label-done"><Conference participantLabel="host">board</Conference></Dial>`,
    )
    const fifth = await callOut(doc(`<Dial action="${url}/full"><Conference>board</Conference></Dial>`))
    t.match(await told('/full'), { DialCallStatus: 'failed' })
    t.match(await told('/label-done'), { DialCallStatus: 'failed' })
    await fifth.line.over()
    await town.noted(fifth.sid, 16020)
    host.line.hangUp()
    for (const { line } of [early, muted, coach]) await line.over()
    await happened('/room', 'conference-end')
    const end = all('/room').find(fields => fields['StatusCallbackEvent'] === 'conference-end')
    t.match(end, { ReasonConferenceEnded: 'participant-with-end-conference-on-exit-left', FriendlyName: 'board' })
    const joins = all('/room').filter(fields => fields['StatusCallbackEvent'] === 'participant-join')
    t.match(joins, [
      { ParticipantLabel: 'host', EndConferenceOnExit: 'true', StartConferenceOnEnter: 'true' },
      { StartConferenceOnEnter: 'false' },
      { Muted: 'true' },
      { Coaching: 'true', CallSidToCoach: early.sid, ParticipantLabel: 'coach' },
    ])
    t.same(
      all('/room').map(fields => Number(fields['SequenceNumber'])),
      all('/room').map((_fields, index) => index),
    )
    await until('both recording callbacks', () => all('/room-tape').length === 2)
    t.match(all('/room-tape')[1], { RecordingStatus: 'completed', RecordingSource: 'Conference' })
    t.equal(methodOf('/room'), 'GET')
    t.equal(methodOf('/room-tape'), 'GET')
    t.same(all('/old'), [])
  })

  await t.test('a conference recording is one file, whoever leaves the room', async t => {
    const events = 'recordingStatusCallbackEvent="in-progress completed absent"'
    const tape = `record="record-from-start" trim="do-not-trim" recordingStatusCallback="${url}/tapes" ${events}`
    pages['/elsewhere'] = doc(`<Play loop="0">${url}/900.wav</Play>`)
    const states = (status: string) => all('/tapes').filter(fields => fields['RecordingStatus'] === status)
    const first = await callOut(
      doc(
        `<Dial hangupOnStar="true" record="record-from-answer-dual" action="${url}/elsewhere"><Conference beep="false" ${tape}>taped</Conference></Dial>`,
      ),
    )
    const second = await callOut(doc('<Dial><Conference beep="false">taped</Conference></Dial>'))
    const third = await callOut(doc('<Dial><Conference beep="false">taped</Conference></Dial>'))
    await until('it is recorded', () => states('in-progress').length === 1)
    const [named, said] = [first.line.hum(1150), second.line.hum(620)]
    await Promise.all([first.line.hears(620), second.line.hears(1150)])
    await Promise.all([named(), said()])
    await first.line.press('*')
    await first.line.hears(900)
    first.line.hangUp()
    await first.line.over()
    const later = second.line.hum(820)
    await third.line.hears(820)
    await later()
    t.equal(states('completed').length, 0, 'it goes on without the participant whose document wanted it')
    for (const { line } of [second, third]) line.hangUp()
    await until('the file is there', () => states('completed').length === 1)
    t.equal(all('/tapes').length, 2, 'one recording, and none absent')
    const [told] = states('completed')
    t.match(told, { ConferenceSid: /^CF[0-9a-f]{32}$/, CallSid: first.sid, RecordingChannels: '2' })
    const { channels } = readWav((await w.voice('GET', `/Recordings/${told?.['RecordingSid']}.wav`)).bytes)
    const has = (hz: number) => channels.map(samples => loudest(samples, hz) > -30)
    t.same(has(1150), [true, true], 'the named participant, apart and in the mix')
    t.same(has(620), [false, true])
    t.same(has(820), [false, true], 'what is said after the participant left')
    t.same(has(900), [false, false], 'what the participant hears outside the room is not recorded')
  })

  await t.test('a duplicate label and a coach without a target are refused', async t => {
    const first = await callOut(doc('<Dial><Conference participantLabel="one" waitUrl="">pair</Conference></Dial>'))
    const second = await callOut(
      doc(
        `<Dial><Conference participantLabel="one">pair</Conference></Dial><Dial><Conference coach="CA00000000000000000000000000000000">pair</Conference></Dial>`,
      ),
    )
    await second.line.over()
    // The label is in use, but no participant has that sid.
    await town.noted(second.sid, 16025)
    await town.noted(second.sid, 13240)
    t.equal(first.line.ended, null, 'the first is still there')
    first.line.hangUp()
  })

  await t.test('Enqueue: runs its wait document, obeys Leave, and refuses a full queue', async t => {
    let full = false
    pages['/wait-queue'] = () => doc(full ? '<Leave/>' : `<Play>${url}/900.wav</Play>`)
    pages['/left'] = doc('<Hangup/>')
    const first = await callOut(
      doc(
        `<Enqueue action="${url}/left" method="GET" waitUrl="${url}/wait-queue" waitUrlMethod="GET" maxQueueSize="1">small</Enqueue>`,
      ),
    )
    await first.line.hears(900)
    const second = await callOut(doc(`<Enqueue action="${url}/full-queue" maxQueueSize="1">small</Enqueue>`))
    t.match(await told('/full-queue'), { QueueResult: 'queue-full', QueueSid: /^QU/ })
    full = true
    await second.line.over()
    t.match(await told('/left'), { QueueResult: 'leave', QueueTime: /^[1-9]\d*$/ })
    t.equal(methodOf('/left'), 'GET')
    t.equal(methodOf('/wait-queue'), 'GET')
    t.match(all('/wait-queue')[0], { QueuePosition: '1', CurrentQueueSize: '1', MaxQueueSize: '1' })
    await first.line.over()
    const tasks = await callOut(
      doc(`<Enqueue workflowSid="WW1" action="${url}/workflow"><Task>{"a":1}</Task></Enqueue>`),
    )
    t.match(await told('/workflow'), { QueueResult: 'error' })
    await tasks.line.over()
  })

  await t.test('Dial Queue: the caller hears a whisper, both talk, and both get their callbacks', async t => {
    pages['/agent-here'] = doc(`<Play>${url}/900.wav</Play>`)
    const caller = await callOut(doc(`<Enqueue action="${url}/served">help</Enqueue>`))
    await caller.line.hearsSomething()
    const agent = await callOut(
      doc(
        `<Dial action="${url}/agent-done"><Queue url="${url}/agent-here" method="GET" postWorkActivitySid="WA1">help</Queue></Dial>`,
      ),
    )
    await caller.line.hears(900)
    t.match(await told('/agent-here'), { DequeingCallSid: agent.sid, QueueTime: /^\d+$/ })
    t.equal(methodOf('/agent-here'), 'GET')
    const stop = caller.line.hum(550)
    await agent.line.hears(550)
    await stop()
    caller.line.hangUp()
    t.match(await told('/agent-done'), {
      DialCallStatus: 'completed',
      DequeueResult: 'bridged',
      DequeuedCallSid: caller.sid,
    })
    await agent.line.over()
    t.match(await told('/served'), { QueueResult: /hangup|bridged/ })
    const reserved = await callOut(
      doc(`<Dial action="${url}/reserved"><Queue reservationSid="WR1">help</Queue></Dial>`),
    )
    t.match(await told('/reserved'), { DialCallStatus: 'failed' })
    await reserved.line.over()
  })

  await t.test(
    'a queued caller in its whisper keeps its agent at the timeout, and its place without an agent',
    async t => {
      const vacant = await w.manage('POST', '/queues', { name: 'vacant' }, { 'Idempotency-Key': newId.uuid() })
      t.equal(vacant.status, 201)
      let over = false
      pages['/480.wav'] = { type: 'audio/wav', body: wavBytes(8000, tone(480, 4000)) }
      pages['/hold-on'] = doc(`<Play loop="20">${url}/480.wav</Play>`)
      pages['/lengthy'] = () =>
        doc(over ? '' : `<Play>${url}/900.wav</Play><Redirect method="GET">${url}/lengthy</Redirect>`)
      const caller = await callOut(doc(`<Enqueue action="${url}/kept" waitUrl="${url}/hold-on">lengthy</Enqueue>`))
      await caller.line.hears(480)
      const place = () => w.state.db.selectFrom('queue_member').selectAll().where('call_sid', '=', caller.sid).execute()
      const placed = await place()
      t.equal(placed.length, 1)
      const queue = `<Queue url="${url}/lengthy" method="GET">lengthy</Queue>`
      const first = await callOut(doc(`<Dial>${queue}</Dial>`))
      await caller.line.hears(900)
      await until('it is with an agent', async () => (await place()).length === 0)
      first.line.hangUp()
      await caller.line.hears(480)
      await until('it waits again', async () => (await place()).length === 1)
      t.same(await place(), placed, 'in its place')
      const second = await callOut(doc(`<Dial timeout="5" action="${url}/kept-agent">${queue}</Dial>`))
      await caller.line.hears(900)
      // This agent comes later with the same timeout. When it gives up, the timeout of the first agent is over as well.
      const idle = await callOut(doc(`<Dial timeout="5" action="${url}/vacant"><Queue>vacant</Queue></Dial>`))
      t.match(await told('/vacant'), { DequeueResult: 'queue-empty' })
      await idle.line.over()
      over = true
      const stop = caller.line.hum(550)
      await second.line.hears(550)
      await stop()
      second.line.hangUp()
      t.match(await told('/kept-agent'), { DequeueResult: 'bridged', DequeuedCallSid: caller.sid })
      t.match(await told('/kept'), { QueueResult: 'bridged' })
      await caller.line.over()
    },
  )

  await t.test('an agent waits for the first caller of an empty queue, until the timeout of its Dial', async t => {
    for (const name of ['early', 'nobody']) {
      const made = await w.manage('POST', '/queues', { name }, { 'Idempotency-Key': newId.uuid() })
      t.equal(made.status, 201)
    }
    const agent = await callOut(doc(`<Dial timeout="60" action="${url}/first-served"><Queue>early</Queue></Dial>`))
    await agent.line.hearsSomething()
    const caller = await callOut(doc(`<Enqueue action="${url}/first-caller">early</Enqueue>`))
    const stop = caller.line.hum(550)
    await agent.line.hears(550)
    await stop()
    agent.line.hangUp()
    t.match(await told('/first-served'), {
      DialCallStatus: 'completed',
      DequeueResult: 'bridged',
      DequeuedCallSid: caller.sid,
    })
    t.match(await told('/first-caller'), { QueueResult: 'bridged', QueueTime: /^\d+$/ })
    await caller.line.over()
    const begun_ms = performance.now()
    const alone = await callOut(doc(`<Dial timeout="5" action="${url}/nobody"><Queue>nobody</Queue></Dial>`))
    t.match(await told('/nobody'), { DialCallStatus: 'no-answer', DequeueResult: 'queue-empty' })
    t.ok(performance.now() - begun_ms > 4900, 'not before the timeout')
    await alone.line.over()
    const lost = await callOut(doc(`<Dial timeout="600" action="${url}/no-queue"><Queue>never made</Queue></Dial>`))
    t.match(await told('/no-queue'), { DialCallStatus: 'failed', DequeueResult: 'error' })
    await lost.line.over()
  })

  await t.test('a caller who hangs up in a queue leaves its time there', async t => {
    const caller = await callOut(doc(`<Enqueue action="${url}/gave-up">patience</Enqueue>`))
    await caller.line.hearsSomething()
    caller.line.hangUp()
    t.match(await told('/gave-up'), { QueueResult: 'hangup', QueueSid: /^QU/, QueueTime: /^\d+$/ })
  })

  await t.test('a conference that never started tells its end, and who ended it', async t => {
    const room = `<Conference participantLabel="alone" statusCallback="${url}/lonely" statusCallbackEvent="start end">lonely</Conference>`
    const caller = await callOut(doc(`<Dial>${room}</Dial>`))
    await caller.line.hearsSomething()
    caller.line.hangUp()
    t.match(await told('/lonely'), {
      StatusCallbackEvent: 'conference-end',
      CallSidEndingConference: caller.sid,
      ParticipantLabelEndingConference: 'alone',
      ReasonConferenceEnded: 'last-participant-left',
    })
  })

  await t.test('Client: a browser receives its parameters, hears a whisper, and talks', async t => {
    const callback = `statusCallback="${url}/client" statusCallbackMethod="GET" statusCallbackEvent="initiated ringing answered completed"`
    const noun = (name: string): string =>
      doc(
        `<Dial action="${url}/${name}-done"><Client url="${url}/to-client" method="GET" ${callback}><Identity>${name}</Identity><Parameter name="case" value="7 %"/></Client></Dial>`,
      )
    const nobody = await callIn(noun('nobody'))
    t.match(await told('/nobody-done'), { DialCallStatus: 'no-answer' })
    await nobody.over()
    t.same(all('/client'), [], 'nothing was called')

    const { username, password, sip_uri } = makeClientCredential(
      { client: 'bob', caller: null, expires_at_seconds: Math.floor(Date.now() / 1000) + 600, allowed: ['in', 'out'] },
      { project_id: w.project_id, domain: 'localhost', auth_token: w.auth_token },
    )
    const bob = await openBrowser(t, { ...w.sip, user: username, password, uri: sip_uri })
    await bob.register()
    // DTLS takes a while, so the whisper continues until it is heard.
    let whispered = false
    pages['/to-client'] = () =>
      doc(whispered ? '' : `<Play>${url}/900.wav</Play><Redirect method="GET">${url}/to-client</Redirect>`)
    const line = await callIn(noun('bob'))
    const invitation = await until('bob is called', () => bob.invitations[0])
    t.equal(invitation.request.getHeader('X-Parameter-case'), '7%20%25')
    await invitation.accept()
    const [media] = bob.media
    if (!media) throw new Error('no media')
    await media.connected()
    const heard = (hz: number): boolean => media.packets > 10 && strongestHz(media.audio(media.packets - 10)) === hz
    await until('the whisper', () => heard(900))
    whispered = true
    t.equal(methodOf('/to-client'), 'GET')
    const stop = line.hum(550)
    await until('the caller is heard', () => heard(550))
    await stop()
    await until('the browser is heard', async () => {
      await media.send(tone(700, 600))
      return line.level(700) > -30
    })
    await invitation.bye()
    t.match(await told('/bob-done'), { DialCallStatus: 'completed', DialBridged: 'true' })
    await line.over()
    await until('four callbacks', () => all('/client').length === 4)
    t.same(
      all('/client').map(fields => fields['CallStatus']),
      ['initiated', 'ringing', 'in-progress', 'completed'],
    )
    t.equal(methodOf('/client'), 'GET')
  })

  await t.test('Application: a document of the project runs as the called side', async t => {
    const { route_id } = await w.state.db
      .selectFrom('number')
      .select('route_id')
      .where('e164', '=', town.own_number)
      .executeTakeFirstOrThrow()
    pages['/voice'] = doc(
      `<Gather action="${url}/app-key" numDigits="1" timeout="15"><Play loop="20">${url}/900.wav</Play></Gather>`,
    )
    const callback = `statusCallback="${url}/app" statusCallbackMethod="GET" statusCallbackEvent="initiated answered completed"`
    const caller = await callOut(
      doc(
        `<Dial action="${url}/app-done"><Application url="${url}/app-whisper" method="GET" ${callback} customerId="x" copyParentTo="true"><ApplicationSid>${route_id}</ApplicationSid><Parameter name="topic" value="sales"/></Application></Dial>`,
      ),
    )
    await caller.line.hears(900)
    const asked = all('/voice').at(-1)
    t.match(asked, { topic: 'sales', ParentCallSid: caller.sid, Direction: 'outbound-dial' })
    await caller.line.press('7')
    t.match(await told('/app-key'), { Digits: '7' })
    t.match(await told('/app-done'), { DialCallStatus: 'completed', DialBridged: 'true' })
    t.equal(methodOf('/app-whisper'), 'GET')
    await caller.line.over()
    await until('all callbacks', () => all('/app').length === 3)
    t.same(
      all('/app').map(fields => fields['CallStatus']),
      ['initiated', 'in-progress', 'completed'],
    )
    const nobody = await callOut(doc(`<Dial action="${url}/no-app"><Application>AP0</Application></Dial>`))
    t.match(await told('/no-app'), { DialCallStatus: 'failed' })
    await nobody.line.over()
  })

  await t.test('Siprec: a recording server gets both sides of the call and its metadata', async t => {
    const vault = await openSoftphone(t, '127.0.0.67', recorder_port)
    const siprec = `<Siprec name="law" connectorName="vault" track="both_tracks" statusCallback="${url}/law" statusCallbackMethod="GET"><Parameter name="case" value="7"/></Siprec>`
    pages['/law-stop'] = doc(`<Stop>${siprec}</Stop><Pause length="1"/>`)
    const call = callOut(
      doc(
        `<Start>${siprec}</Start><Gather action="${url}/law-stop" numDigits="1" timeout="20"><Play loop="20">${url}/900.wav</Play></Gather>`,
      ),
    )
    const session = await vault.incoming('vault')
    const offer = session.call?.offer ?? ''
    t.match(session.header('content-type'), /multipart\/mixed/)
    t.match(session.header('require'), /siprec/)
    t.match(offer, /application\/rs-metadata\+xml/)
    t.match(offer, /<parameter name="case" value="7"\/>/)
    t.equal(offer.match(/^m=audio .*$/gm)?.length, 2, 'one stream for each side')
    t.match(offer, /a=label:2/)
    const second = await session.second()
    t.teardown(() => second.close())
    await session.answerAs([session.rtp, second])
    const { line } = await call
    const stop = line.hum(620)
    await session.hears(620)
    await until('what the caller hears is on the other stream', () => second.received.length > 30)
    await stop()
    await line.press('1')
    t.equal(await session.over(), 'peer')
    await until('both callbacks', () => all('/law').length === 2)
    t.match(all('/law'), [
      { SiprecEvent: 'siprec-started', SiprecName: 'law', SiprecSid: /^SR/ },
      { SiprecEvent: 'siprec-stopped' },
    ])
    t.equal(methodOf('/law'), 'GET')
    await line.over()
    const none = await callOut(doc(`<Start><Siprec connectorName="other" statusCallback="${url}/no-vault"/></Start>`))
    t.match(await told('/no-vault'), { SiprecEvent: 'siprec-error' })
    await none.line.over()
  })

  await t.test('Siprec by the API: a recording server gets the call until the API stops it', async t => {
    const vault = await openSoftphone(t, '127.0.0.67', recorder_port)
    await w.state.db.updateTable('voice_account').set({ voice_api: 'extended' }).execute()
    const { client } = stockClient(w)
    const talk = await callOut(doc(`<Play loop="0">${url}/900.wav</Play>`))
    const started = { connectorName: 'vault', name: 'law', track: 'inbound_track' as const }
    const { sid } = await client.calls(talk.sid).siprec.create({ ...started, statusCallback: `${url}/law-api` })
    const session = await vault.incoming('vault')
    await session.answer()
    const stop = talk.line.hum(620)
    await session.hears(620)
    await stop()
    t.equal((await client.calls(talk.sid).siprec('law').update({ status: 'stopped' })).status, 'stopped')
    t.equal(await session.over(), 'peer')
    await until('both callbacks', () => all('/law-api').length === 2)
    t.match(all('/law-api'), [{ SiprecEvent: 'siprec-started', SiprecSid: sid }, { SiprecEvent: 'siprec-stopped' }])
    await talk.line.hears(900)
    talk.line.hangUp()
  })

  await t.test('Siprec: a recording server’s address passes the same guard as a call’s', async t => {
    const carrier = { name: 'Far', codecs: ['PCMU'], sources: ['127.0.0.68/32'], targets: [], routes: [] }
    const carrier_id = await addCarrier(w.state, carrier, new Date().toISOString())
    const applied = w.state.db.selectFrom('apply_report').selectAll().where('resource_id', '=', carrier_id)
    await until('the carrier is known', () => applied.executeTakeFirst())
    const starts = ['carrier', 'private', 'own'].map(
      name => `<Start><Siprec name="${name}" connectorName="${name}" statusCallback="${url}/refused"/></Start>`,
    )
    const { line } = await callOut(doc(`${starts.join('')}<Pause length="20"/>`))
    await until('each is told', () => all('/refused').length === 3)
    const errorOf = (name: string) => all('/refused').find(fields => fields['SiprecName'] === name)?.['SiprecError']
    t.match(errorOf('carrier'), /127\.0\.0\.68 is the address of a carrier/)
    t.match(errorOf('private'), /127\.0\.0\.69 is not public/)
    t.match(errorOf('own'), /is a listener of this platform/)
    t.same([...traps.carrier.caught, ...traps.private.caught], [], 'nothing is sent there')
    line.hangUp()
    await line.over()
  })

  await t.test('nothing is left', async t => {
    for (const line of far.calls) if (line.ended === null) line.hangUp()
    t.ok(trunk_number, 'the trunk served all calls')
    await w.untilNone('live_calls', 'media_legs', 'conferences', 'queued_callers', 'media_listeners')
  })
})

/** The loudest 100 ms of a tone. */
const loudest = (samples: Int16Array, hz: number): number =>
  Math.max(
    ...Array.from({ length: Math.floor(samples.length / 800) }, (_value, at) =>
      toneLevelDbm0(samples.subarray(at * 800, at * 800 + 800), hz),
    ),
  )

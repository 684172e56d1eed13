import { Peer, reply, starts } from '../conformance/edge/peer.ts'
import { tone, wavBytes } from '../support/audio.ts'
import t from '../support/harness/index.ts'
import { openPhone, registerPhone } from '../support/phone.ts'
import { sharedWorld } from '../support/shared-world.ts'
import { openSoftphone } from '../support/softphone.ts'
import { voiceTown } from '../support/voice-town.ts'
import { PATIENCE_MS, until } from '../support/wait.ts'

// Dial and related verbs, with every attribute on a live call. A desk telephone calls the platform, which dials far
// telephones. The tests check their audio, their SIP messages, and the requests to the customer's web server.

t.test('verbs that bridge calls', async t => {
  const town = await voiceTown(t, { world: () => sharedWorld(t), addresses: ['127.0.0.61', '127.0.0.62'] })
  const { w, far, pages, web, told, all, trunk_number } = town
  pages['/900.wav'] = { type: 'audio/wav', body: wavBytes(8000, tone(900, 4000)) }
  const url = web.url
  /** Calls from this number use the trunk of the far telephone. */
  const from = `callerId="${trunk_number}"`
  const doc = (inside: string): string => `<Response>${inside}</Response>`

  await t.test('answerOnBridge: the caller hears early media, and is answered when the child answers', async t => {
    const to = town.someone()
    const recording = `record="record-from-ringing-dual" recordingTrack="both" trim="do-not-trim" recordingStatusCallback="${url}/rec" recordingStatusCallbackMethod="GET" recordingStatusCallbackEvent="in-progress completed"`
    const ignored = 'callReason="sale" recordingConfigurationId="x" events="y" passports="z"'
    const line = await town.callIn(
      doc(
        `<Dial answerOnBridge="true" timeout="60" timeLimit="8" ${from} action="${url}/bridged" method="GET" ${recording} ${ignored}>${to}</Dial>`,
      ),
    )
    const child = await far.incoming(to)
    t.match(child.header('from'), trunk_number, 'the caller id of the document')
    child.early()
    const quiet = child.hum(600)
    await line.hears(600)
    t.equal(line.final, null, 'not answered yet')
    // The time limit begins with the answer, so the caller talks already, and what was heard is looked for afterwards.
    const stop = line.hum(1200)
    await child.answer()
    await line.answered()
    const early = child.rtp.received.length
    const after = await told('/bridged')
    await child.heard(1200, early)
    await stop()
    await quiet()
    t.match(after, { DialCallStatus: 'completed', DialBridged: 'true', RecordingSid: /^RE/ })
    t.ok(Number(after['DialCallDuration']) >= 8, `cut by timeLimit: ${after['DialCallDuration']}`)
    t.equal(web.requests.find(request => request.path === '/bridged')?.method, 'GET')
    t.equal(await child.over(), 'peer')
    await until('both recording callbacks', () => all('/rec').length === 2)
    t.same(
      all('/rec').map(fields => [fields['RecordingStatus'], fields['RecordingChannels'], fields['RecordingTrack']]),
      [
        ['in-progress', '2', 'both'],
        ['completed', '2', 'both'],
      ],
    )
    const wav = await w.voice('GET', `/Recordings/${after['RecordingSid']}.wav`)
    t.equal(wav.bytes.readUInt16LE(22), 2, 'channels of the file')
  })

  await t.test('a peer’s unverified caller is not presented to the network', async t => {
    const to = town.someone()
    const line = await town.callIn(doc(`<Dial action="${url}/spoofed"><Number>${to}</Number></Dial>`))
    t.match(await told('/spoofed'), { DialCallStatus: 'failed' })
    t.notOk(
      far.calls.some(call => (call.call?.invite?.uri ?? '').includes(to)),
      'no INVITE left',
    )
    line.hangUp()
    await line.over()
  })

  await t.test('the caller hears a country’s ring tone, and leaves the child with the star key', async t => {
    const to = town.someone()
    const line = await town.callIn(
      doc(
        `<Dial ${from} ringTone="us" hangupOnStar="true"><Number>${to}</Number></Dial><Redirect method="GET">${url}/next</Redirect>`,
      ),
    )
    const child = await far.incoming(to)
    child.ring()
    await line.hears(440)
    t.ok(line.level(480) > -30, 'ring tone of the United States is 440 and 480 Hz')
    await child.answer()
    const stop = child.hum(700)
    await line.hears(700)
    await stop()
    await line.press('*')
    t.equal(await child.over(), 'peer', 'the child is hung up')
    await told('/next')
    t.equal(web.requests.find(request => request.path === '/next')?.method, 'GET')
    await line.over()
  })

  await t.test('Number: sends digits, whispers to the child only, sends callbacks and detects machines', async t => {
    const to = town.someone()
    pages['/whisper'] = `<Response><Play>${url}/900.wav</Play></Response>`
    const detection = `machineDetection="Enable" machineDetectionTimeout="10" machineDetectionSpeechThreshold="2000" machineDetectionSpeechEndThreshold="1000" machineDetectionSilenceTimeout="2000" amdStatusCallback="${url}/amd" amdStatusCallbackMethod="GET"`
    const callback = `statusCallback="${url}/number" statusCallbackMethod="GET" statusCallbackEvent="initiated ringing answered completed"`
    const line = await town.callIn(
      doc(
        `<Dial ${from}><Number url="${url}/whisper" method="GET" sendDigits="w12#" byoc="x" ${callback} ${detection}>${to}</Number></Dial>`,
      ),
    )
    const child = await far.incoming(to)
    child.ring()
    await child.answer()
    await child.hearsKeys('12#')
    await child.hears(900)
    t.ok(line.level(900) < -40, 'the caller does not hear the whisper')
    const whisper = web.requests.find(request => request.path === '/whisper')
    t.equal(whisper?.method, 'GET')
    t.equal(whisper?.fields.get('Direction'), 'outbound-dial')
    const stop = child.hum(500)
    await line.hears(500)
    await stop()
    t.match(await told('/amd'), { AnsweredBy: /.+/, MachineDetectionDuration: /^\d+$/ })
    child.hangUp()
    await line.over()
    await until('four callbacks', () => all('/number').length === 4)
    t.same(
      all('/number').map(fields => fields['CallStatus']),
      ['initiated', 'ringing', 'in-progress', 'completed'],
    )
    t.ok(web.requests.filter(request => request.path === '/number').every(request => request.method === 'GET'))
  })

  await t.test('a callee with early media is screened: neither side hears the other before it accepts', async t => {
    const to = town.someone()
    // Nothing is played meanwhile: a prompt would be heard in place of the caller.
    pages['/screen'] = `<Response><Gather numDigits="1" timeout="120" action="${url}/accepted"/></Response>`
    const line = await town.callIn(
      doc(`<Dial answerOnBridge="true" ${from}><Number url="${url}/screen" method="GET">${to}</Number></Dial>`),
    )
    const child = await far.incoming(to)
    child.early()
    const humming = [child.hum(600), line.hum(1200)]
    await line.hears(600)
    await child.answer()
    await told('/screen')
    await line.hearsSomething(600)
    t.equal(line.final, null, 'the caller hears ringing')
    await child.rtp.until(() => child.level(1200) < -40, PATIENCE_MS, 'no caller')
    const heard = [line, child].map(({ rtp }) => rtp.received.length)
    await Promise.all([line, child].map(({ rtp }, at) => rtp.packets((heard[at] ?? 0) + 50)))
    t.ok(line.level(600) < -40, 'the caller does not hear the callee')
    t.ok(child.level(1200) < -40, 'the callee does not hear the caller')
    await child.press('1')
    await line.answered()
    await Promise.all([line.hears(600), child.hears(1200)])
    await Promise.all(humming.map(stop => stop()))
    child.hangUp()
    await line.over()
  })

  await t.test('an unanswered caller hears ringing again after the early media of a callee who refuses', async t => {
    const [busy, free] = [town.someone(), town.someone()]
    const numbers = [busy, free].map(to => `<Number>${to}</Number>`).join('')
    const line = await town.callIn(doc(`<Dial answerOnBridge="true" sequential="true" ${from}>${numbers}</Dial>`))
    const first = await far.incoming(busy)
    first.early()
    const stop = first.hum(600)
    await line.hears(600)
    first.call?.reject(486)
    const second = await far.incoming(free)
    second.ring()
    await line.hearsSomething(600)
    t.equal(line.final, null, 'not answered yet')
    await stop()
    await second.answer()
    const talking = second.hum(700)
    await line.hears(700)
    await talking()
    second.hangUp()
    await line.over()
  })

  await t.test('Sip: URIs by priority, digest credentials, headers of its own, a whisper that hangs up', async t => {
    const sip = `sip:agent@${far.address}:${far.port}`
    pages['/turn-down'] = '<Response><Pause length="1"/><Hangup/></Response>'
    const shared = `url="${url}/turn-down" method="POST" statusCallback="${url}/sip" statusCallbackMethod="POST" statusCallbackEvent="completed"`
    const detection = `machineDetection="DetectMessageEnd" machineDetectionTimeout="10" machineDetectionSpeechThreshold="2000" machineDetectionSpeechEndThreshold="1000" machineDetectionSilenceTimeout="2000" amdStatusCallback="${url}/sip-amd" amdStatusCallbackMethod="POST"`
    const uris = `<Uri priority="1" weight="1" username="eve" password="secret">${sip}</Uri><Uri priority="2" weight="1">sip:other@${far.address}:${far.port}</Uri>`
    const line = await town.callIn(
      doc(
        `<Dial ${from} action="${url}/sip-done"><Sip username="unused" password="unused" ${shared} ${detection}>${uris}<Headers><Header name="X-Ticket" value="42"/></Headers></Sip></Dial>`,
      ),
    )
    const challenged = await far.incoming('agent')
    challenged.call?.reject(401, {
      headers: { 'WWW-Authenticate': 'Digest realm="far", nonce="abc", algorithm=MD5, qop="auth"' },
    })
    const child = await far.incoming('agent')
    t.match(child.header('authorization'), /username="eve"/)
    t.equal(child.header('x-ticket'), '42')
    await child.answer()
    t.equal(await child.over(), 'peer', 'the whisper hangs up')
    t.match(await told('/sip-done'), {
      DialCallStatus: 'completed',
      DialBridged: 'false',
      DialSipResponseCode: '200',
      DialSipCallId: /.+/,
    })
    t.match(await told('/sip'), { CallStatus: 'completed', Direction: 'outbound-dial' })
    await line.over()
  })

  await t.test('Sip: sends nothing to a carrier, to the platform or to a private address', async t => {
    const carrier = await w.state.db.selectFrom('carrier_target').select('sip_uri').executeTakeFirstOrThrow()
    const named = [
      carrier.sip_uri.replace('sip:', 'sip:+2348030000001@'),
      `sip:+2348030000001@127.0.0.1:${w.sip.port}`,
      `sip:1@${new URL(w.base_url).host};transport=tcp`,
      'sip:1@10.255.255.1',
      `sip:1@10.255.255.1;maddr=${far.address}`,
    ]
    const line = await town.callIn(
      doc(
        `${named.map(uri => `<Dial ${from}><Sip>${uri}</Sip></Dial>`).join('')}<Redirect>${url}/nobody-asked</Redirect>`,
      ),
    )
    const sid = await town.sidOf(line)
    await told('/nobody-asked')
    await line.over()
    const attempts = await until('the end of each child is kept', async () => {
      const rows = await w.state.db
        .selectFrom('call')
        .innerJoin('call_attempt', 'call_attempt.call_sid', 'call.sid')
        .select(['target', 'result', 'call_attempt.reason', 'call_attempt.sip_call_id'])
        .where('parent_call_sid', '=', sid)
        .where('call.ended_at', 'is not', null)
        .orderBy('call.position')
        .execute()
      return rows.length === named.length && rows
    })
    t.same(
      attempts,
      named.map(target => ({ target, result: 'failed', reason: 'target_not_allowed', sip_call_id: null })),
    )
  })

  await t.test('Sip: every INVITE takes a lease, within the project’s ceiling', async t => {
    const lines = 10
    const { db } = w.state
    await db
      .insertInto('project_ceiling')
      .values({ project_id: w.project_id, concurrency: 5, revision: 1, updated_at: '2026-01-01T00:00:00.000Z' })
      .execute()
    t.teardown(() => db.deleteFrom('project_ceiling').execute())
    const sip = `<Sip>sip:flooded@${far.address}:${far.port}</Sip>`
    const line = await town.callIn(doc(`<Dial ${from} timeout="60">${sip.repeat(lines)}</Dial>`))
    const sid = await town.sidOf(line)
    const children = () => db.selectFrom('call').selectAll().where('parent_call_sid', '=', sid).execute()
    const having = async (table: 'lease' | 'call_attempt') => {
      const rows = await db
        .selectFrom(table)
        .innerJoin('call', 'call.sid', `${table}.call_sid`)
        .select('call.sid')
        .where('parent_call_sid', '=', sid)
        .execute()
      return rows.map(row => row.sid).sort()
    }
    await until('every child was decided', async () => {
      const refused = (await children()).filter(({ status }) => status === 'failed')
      return refused.length + (await having('call_attempt')).length === lines
    })
    const leased = await having('lease')
    t.same(await having('call_attempt'), leased, 'who is called has a lease')
    t.ok(leased.length > 0 && leased.length <= 4, `${leased.length} of ${lines} left`)
    const refused = (await children()).filter(({ status }) => status === 'failed')
    t.ok(
      refused.every(({ reason }) => reason === 'concurrency_exceeded'),
      'the others were refused',
    )
    for (let taken = 0; taken < leased.length; taken++) (await far.incoming('flooded')).call?.reject(486)
    await line.over()
  })

  await t.test('sequential: dials one noun after the other, and skips nouns without a destination', async t => {
    const [first, second] = [town.someone(), town.someone()]
    pages['/all-failed'] = doc(
      `<Dial ${from} sequential="true" action="${url}/second-done"><Number>${first}</Number><Number>${second}</Number></Dial>`,
    )
    const line = await town.callIn(
      doc(`<Dial ${from} action="${url}/all-failed"><Sim>DE1</Sim><WhatsApp>${second}</WhatsApp></Dial>`),
    )
    t.match(await told('/all-failed'), { DialCallStatus: 'failed' })
    const busy = await far.incoming(first)
    t.notOk(
      far.calls.some(other => other.call?.invite?.uri.includes(second)),
      'the second is not called yet',
    )
    busy.call?.reject(486)
    const child = await far.incoming(second)
    await child.answer()
    await line.answered()
    child.hangUp()
    t.match(await told('/second-done'), { DialCallStatus: 'completed' })
    await line.over()
  })

  await t.test('several Numbers ring at once: the first to answer is bridged, the others are cancelled', async t => {
    const [first, second, third] = [town.someone(), town.someone(), town.someone()]
    const callback = `statusCallback="${url}/rung" statusCallbackEvent="completed"`
    const ringing = await Peer.open(t, far.address)
    const line = await town.callIn(
      doc(
        `<Dial ${from} action="${url}/rung-done">${[first, second, third]
          .map(number => `<Number ${callback}>${number}</Number>`)
          .join('')}<Sip>sip:slow@${far.address}:${ringing.port}</Sip></Dial>`,
      ),
    )
    const answer = (asked: string, status: number): void =>
      ringing.send(reply(asked, status, 'slow', '', ringing.port), w.sip.port)
    const invite = await ringing.next(starts('INVITE'))
    answer(invite, 180)
    const [busy, slow, quick] = [await far.incoming(first), await far.incoming(second), await far.incoming(third)]
    slow.ring()
    quick.ring()
    busy.call?.reject(486)
    await until('the busy one is told', () => all('/rung').length === 1)
    await quick.answer()
    t.equal(await slow.over(), 'cancelled')
    const cancel = await ringing.next(starts('CANCEL'))
    // Without this a telephone lists a missed call (RFC 3326 §3.1).
    t.match(cancel, /^Reason: SIP;cause=200;text="Call completed elsewhere", Q\.850;cause=26\r$/m)
    answer(cancel, 200)
    answer(invite, 487)
    const stop = quick.hum(500)
    await line.hears(500)
    await stop()
    quick.hangUp()
    const done = await told('/rung-done')
    t.match(done, { DialCallStatus: 'completed', DialBridged: 'true' })
    await line.over()
    await until('three callbacks', () => all('/rung').length === 3)
    const ends = Object.fromEntries(all('/rung').map(fields => [fields['To'], fields['CallStatus']]))
    t.same(ends, { [first]: 'busy', [second]: 'canceled', [third]: 'completed' })
  })

  await t.test('the CANCEL of a Dial says that another telephone answered, when the caller’s BYE says so', async t => {
    const ringing = await Peer.open(t, far.address)
    const line = await town.callIn(
      doc(`<Play>${url}/900.wav</Play><Dial ${from}><Sip>sip:slow@${far.address}:${ringing.port}</Sip></Dial>`),
    )
    const invite = await ringing.next(starts('INVITE'))
    ringing.send(reply(invite, 180, 'slow', '', ringing.port), w.sip.port)
    line.call?.hangUp({ headers: { Reason: 'SIP;cause=200;text="it rang at 10.0.0.9"' } })
    const cancel = await ringing.next(starts('CANCEL'))
    t.match(cancel, /^Reason: SIP;cause=200;text="Call completed elsewhere"\r$/m, 'without the text of the caller')
    ringing.send(reply(cancel, 200, 'slow', '', ringing.port), w.sip.port)
    ringing.send(reply(invite, 487, 'slow', '', ringing.port), w.sip.port)
    await line.over()
  })

  await t.test('Dial and a call of the API to an application’s own number stay on the platform', async t => {
    const own = w.numbers[4] ?? ''
    await w.routeToApplication(own, `${url}/own`)
    const { db } = w.state
    const callsTo = () => db.selectFrom('call').selectAll().where('to_number', '=', own).orderBy('position').execute()
    const heard = far.calls.length

    pages['/own'] = doc(`<Play>${url}/900.wav</Play><Dial ${from} action="${url}/round">${own}</Dial><Hangup/>`)
    pages['/round'] = doc('<Hangup/>')
    const line = await town.callIn(doc(`<Dial ${from} action="${url}/own-over">${own}</Dial>`))
    await line.hears(900)
    t.match(await told('/own'), { To: own, From: trunk_number })
    t.match(await told('/round'), { DialCallStatus: 'failed' }, 'an application that calls itself is not called again')
    t.match(await told('/own-over'), { DialCallStatus: 'completed' })
    const [child, ...others] = await callsTo()
    t.same(others, [])
    const lease = await db
      .selectFrom('lease')
      .select('part')
      .where('call_sid', '=', child?.sid ?? '')
      .execute()
    t.same(lease.map(({ part }) => part).sort(), ['inbound', 'on_net'], 'both sides took a slot')

    pages['/own'] = doc(`<Gather numDigits="1" timeout="30" action="${url}/pressed"/>`)
    pages['/pressed'] = doc(`<Play>${url}/900.wav</Play><Hangup/>`)
    // A key that comes before the Gather is lost: the caller presses it again until it is taken.
    const presses = `<Play digits="${'ww7'.repeat(100)}"/><Pause length="60"/>`
    const form = { To: own, From: trunk_number, InlineMarkup: doc(presses) }
    const made = await w.voice('POST', '/Calls.json', form)
    t.equal(made.status, 201, JSON.stringify(made.body))
    t.match(await told('/pressed'), { Digits: '7', To: own, Direction: 'inbound' })
    t.match(await w.ended(made.body.sid), { status: 'completed' })
    const [, created, side] = await until('both calls have ended', async () => {
      const rows = await callsTo()
      return rows.length === 3 && rows.every(row => row.ended_at !== null) && rows
    })
    t.match(created, { sid: made.body.sid, direction: 'outbound-api' })
    t.match(side, { parent_call_sid: made.body.sid, direction: 'inbound', status: 'completed' })
    t.not(side?.application_id, created?.application_id, 'each side is of its own service')
    const charged = db
      .selectFrom('reservation')
      .selectAll()
      .where(
        'call_sid',
        'in',
        (await callsTo()).map(({ sid }) => sid),
      )
    t.same(await charged.execute(), [], 'and costs nothing')
    t.equal(far.calls.length, heard, 'no telephone outside was called')
  })

  await t.test('Dial and a call of the API ring a telephone that is registered at a number’s trunk', async t => {
    const own = w.numbers[5] ?? ''
    const home = await openSoftphone(t, '127.0.0.63')
    const { id, ...secrets } = await w.addDigestTrunk()
    await w.routeToTrunk(own, id)
    const phone = await openPhone(t, { ...w.sip, local_ip: home.address })
    await registerPhone(phone, w.sip, { ...secrets, contact: `sip:home@${home.address}:${home.port}` })
    const heard = far.calls.length

    const line = await town.callIn(doc(`<Dial ${from} action="${url}/home"><Number>${own}</Number></Dial>`))
    const dialled = await home.incoming('home')
    await dialled.answer()
    const stop = dialled.hum(700)
    await line.hears(700)
    await stop()
    dialled.hangUp()
    t.match(await told('/home'), { DialCallStatus: 'completed', DialBridged: 'true' })
    await line.over()

    const form = { To: own, From: trunk_number, InlineMarkup: doc(`<Play loop="0">${url}/900.wav</Play>`) }
    const made = await w.voice('POST', '/Calls.json', form)
    t.equal(made.status, 201, JSON.stringify(made.body))
    const called = await home.incoming('home')
    await called.answer()
    await called.hears(900)
    called.hangUp()
    t.match(await w.ended(made.body.sid), { status: 'completed' })

    const { db } = w.state
    const calls = await db.selectFrom('call').select(['sid', 'carrier_id']).where('to_number', '=', own).execute()
    t.same(
      calls.map(({ carrier_id }) => carrier_id),
      [null, null],
    )
    const sids = calls.map(({ sid }) => sid)
    t.same(await db.selectFrom('reservation').selectAll().where('call_sid', 'in', sids).execute(), [], 'it is free')
    t.equal(far.calls.length, heard, 'no telephone outside was called')
  })

  await t.test('Refer transfers the caller, and its action receives the outcome', async t => {
    const refers = (path: string) =>
      town.callIn(doc(`<Refer action="${url}${path}" method="GET"><Sip>sip:sales@example.test?X-Case=7</Sip></Refer>`))
    const quick = await refers('/referred-at-once')
    quick.onRequest = request => {
      if (request.message.method !== 'REFER') return request.answer(200)
      const headers = { Event: 'refer', 'Subscription-State': 'terminated;reason=noresource' }
      void quick
        .send('NOTIFY', { headers, body: 'SIP/2.0 200 OK\r\n', content_type: 'message/sipfrag' })
        .then(() => request.answer(202))
    }
    t.match(
      await told('/referred-at-once'),
      { ReferCallStatus: 'completed', ReferSipResponseCode: '202', NotifySipResponseCode: '200' },
      'a NOTIFY that overtakes the answer to its REFER counts',
    )
    await quick.over()
    const line = await refers('/referred')
    line.onRequest = request => {
      if (request.message.method !== 'REFER') return request.answer(200)
      request.answer(202)
      const notify = (state: string, status: string) =>
        line.send('NOTIFY', {
          headers: { Event: 'refer', 'Subscription-State': state },
          body: `SIP/2.0 ${status}\r\n`,
          content_type: 'message/sipfrag',
        })
      void notify('active;expires=60', '100 Trying').then(() => notify('terminated;reason=noresource', '200 OK'))
    }
    t.match(await told('/referred'), {
      ReferCallStatus: /completed|in-progress/,
      ReferSipResponseCode: '202',
      NotifySipResponseCode: '200',
    })
    const refer = line.requests.find(request => request.message.method === 'REFER')
    t.match(refer?.message.get('refer-to'), /sip:sales@example\.test/)
    t.equal(web.requests.find(request => request.path === '/referred')?.method, 'GET')
    await line.over()
  })

  await t.test('Refer is not sent to a carrier, which would call any number at our cost', async t => {
    const made = await w.voice('POST', '/Calls.json', {
      To: '+2348030000008',
      From: w.numbers[3] ?? '',
      InlineMarkup: doc(`<Refer action="${url}/not-referred"><Sip>sip:+2349011111111@carrier.test</Sip></Refer>`),
    })
    t.match(await told('/not-referred'), { ReferSipResponseCode: '403' })
    await w.ended(made.body.sid)
    const sent = await w.state.db.selectFrom('sip_message').select('text').where('text', 'like', 'REFER sip%').execute()
    t.notOk(sent.some(({ text }) => text.includes('carrier.test')))
  })

  await t.test(
    'referUrl: a child that requests a transfer leaves, and the document continues with the caller',
    async t => {
      const to = town.someone()
      pages['/transfer'] = doc(`<Play loop="2">${url}/900.wav</Play>`)
      const line = await town.callIn(doc(`<Dial ${from} referUrl="${url}/transfer" referMethod="GET">${to}</Dial>`))
      const child = await far.incoming(to)
      await child.answer()
      const stop = child.hum(500)
      await line.hears(500)
      await stop()
      const answer = await child.send('REFER', {
        headers: { 'Refer-To': '<sip:boss@example.test>', 'X-Reason': 'angry' },
      })
      t.equal(answer?.status, 202)
      const asked = await told('/transfer')
      t.match(asked, { ReferTransferTarget: '<sip:boss@example.test>', 'SipHeader_X-Reason': 'angry' })
      await line.hears(900)
      t.equal(await child.over(), 'peer', 'BYE to the referrer')
      const frags = child.requests.filter(request => request.message.method === 'NOTIFY').map(request => request.body)
      t.match(frags, [/^SIP\/2\.0 100/, /^SIP\/2\.0 200/])
      await line.over()
    },
  )

  await t.test('refuses a transfer with 603 without referUrl', async t => {
    const to = town.someone()
    const line = await town.callIn(doc(`<Dial ${from}>${to}</Dial>`))
    const child = await far.incoming(to)
    await child.answer()
    const stop = child.hum(500)
    await line.hears(500)
    await stop()
    t.equal((await child.send('REFER', { headers: { 'Refer-To': '<sip:boss@example.test>' } }))?.status, 603)
    t.equal(child.ended, null, 'the call goes on')
    child.hangUp()
    await line.over()
  })

  await t.test('Reject refuses an unanswered caller, as busy or rejected', async t => {
    const busy = await town.callIn(doc('<Reject reason="busy"/>'))
    await busy.over()
    t.equal(busy.final, 486)
    const rejected = await town.callIn(doc('<Reject/>'))
    await rejected.over()
    t.equal(rejected.final, 603)
  })

  await t.test('nothing is left', async t => {
    await w.untilNone('live_calls', 'media_legs')
    t.pass('no call and no leg')
  })
})

import { documentUrl } from '../../core/runtime/document-address.ts'
import { newId } from '../../core/runtime/ids.ts'
import { expandUlaw } from '../../media/files/pcm.ts'
import { readWav, tone, toneLevelDbm0, wavBytes } from '../support/audio.ts'
import t from '../support/harness/index.ts'
import { socketServer } from '../support/recognizer.ts'
import { sharedWorld } from '../support/shared-world.ts'
import type { Line } from '../support/softphone.ts'
import { stockClient } from '../support/stock-library.ts'
import { voiceTown } from '../support/voice-town.ts'
import { PATIENCE_MS, until } from '../support/wait.ts'

// The stock helper library controls conferences, queues and recordings of live calls. Each effect is heard.

/** Requests of the specification. */
const SPEC = /^((POST|GET) \/Calls\/\w+|GET \/Recordings\/\w+)\.json$/

const newDocument = {
  id: newId.voiceDocument(),
  name: 'Theirs',
  content: '<Response><Say>for our customers alone</Say></Response>',
  revision: 1,
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
  updated_by: 'somebody else',
}

/** The level of a tone in the window of 200 ms that has most of it. */
function loudest(samples: Int16Array, hz: number): number {
  let most = Number.NEGATIVE_INFINITY
  for (let at = 0; at + 1600 <= samples.length; at += 400)
    most = Math.max(most, toneLevelDbm0(samples.subarray(at, at + 1600), hz))
  return most
}

/** The length of the longest run of samples that are zero. */
function silentMs(samples: Int16Array): number {
  let [most, run] = [0, 0]
  for (const sample of samples) {
    run = sample === 0 ? run + 1 : 0
    most = Math.max(most, run)
  }
  return most / 8
}

t.test('control over what runs, by the stock library and by /v1', async t => {
  const town = await voiceTown(t, { world: () => sharedWorld(t), addresses: ['127.0.0.75', '127.0.0.76'] })
  const { w, pages, web, all, callOut, far, trunk_number } = town
  const { client, requests } = stockClient(w)
  const url = web.url
  for (const hz of [900, 1300]) pages[`/${hz}.wav`] = { type: 'audio/wav', body: wavBytes(8000, tone(hz, 4000)) }
  const doc = (inside: string): string => `<Response>${inside}</Response>`
  const room = (name: string, attributes = ''): string =>
    doc(`<Dial><Conference beep="false" ${attributes}>${name}</Conference></Dial>`)
  await w.state.db
    .updateTable('voice_account')
    .set({ voice_api: 'extended' })
    .where('account_sid', '=', w.account_sid)
    .execute()
  t.teardown(() =>
    w.state.db
      .updateTable('voice_account')
      .set({ voice_api: 'spec' })
      .where('account_sid', '=', w.account_sid)
      .execute(),
  )
  /** Waits until the API knows that these calls have joined a conference. They may be heard before. */
  const inRoom = (...sids: readonly string[]) =>
    until('they have joined', async () => {
      const rows = await w.state.db
        .selectFrom('conference_participant')
        .select('call_sid')
        .where('call_sid', 'in', sids)
        .where('joined_at', 'is not', null)
        .execute()
      return new Set(rows.map(row => row.call_sid)).size === sids.length
    })
  /** Waits until a tone is not heard any more. */
  const silent = (line: Line, hz: number) => line.rtp.until(() => line.level(hz) < -40, PATIENCE_MS, `no ${hz} Hz`)

  await t.test('a conference: list, mute, hold, announce, coach, kick, add, end', async t => {
    const events = 'statusCallbackEvent="start end join leave mute hold modify announcement"'
    const first = await callOut(
      room('board', `statusCallback="${url}/board" statusCallbackMethod="GET" ${events} participantLabel="chair"`),
    )
    const second = await callOut(room('board'))
    const third = await callOut(room('board'))
    const happened = (event: string) =>
      until(event, () => all('/board').find(fields => fields['StatusCallbackEvent'] === event))
    const humming = second.line.hum(650)
    for (const { line } of [first, third]) await line.hears(650)
    await inRoom(first.sid, second.sid, third.sid)
    const [conference] = await client.conferences.list({ friendlyName: 'board', status: 'in-progress' })
    t.match(conference, { friendlyName: 'board', status: 'in-progress' })
    const sid = conference?.sid ?? ''
    t.equal((await client.conferences(sid).fetch()).sid, sid)
    const participants = await client.conferences(sid).participants.list()
    t.same(participants.map(({ callSid }) => callSid).sort(), [first, second, third].map(one => one.sid).sort())
    t.equal((await client.conferences(sid).participants('chair').fetch()).callSid, first.sid)

    const one = client.conferences(sid).participants(second.sid)
    t.match(await one.update({ muted: true }), { muted: true, status: 'connected' })
    for (const { line } of [first, third]) await silent(line, 650)
    t.match(await happened('participant-mute'), { CallSid: second.sid, Muted: 'true' })
    t.match(await one.update({ muted: false }), { muted: false })
    for (const { line } of [first, third]) await line.hears(650)

    t.match(await one.update({ hold: true, holdUrl: `${url}/900.wav` }), { hold: true })
    await second.line.hears(900)
    const music = web.requests.filter(request => request.path === '/900.wav')
    t.ok(music.length > 0 && music.every(({ method }) => method === 'GET'), 'static files are fetched by GET')
    for (const { line } of [first, third]) await silent(line, 650)
    const other = third.line.hum(750)
    await first.line.hears(750)
    t.ok(second.line.level(750) < -40, 'who is on hold hears the music alone')
    t.match(await one.update({ hold: false }), { hold: false })
    await second.line.hears(750)
    await first.line.hears(650)

    await one.update({ announceUrl: `${url}/1300.wav`, announceMethod: 'GET' })
    await second.line.hears(1300)
    t.match(await happened('announcement-end'), { CallSid: second.sid })
    pages['/said'] = doc(`<Play>${url}/1300.wav</Play>`)
    await client.conferences(sid).update({ announceUrl: `${url}/said` })
    await Promise.all([first, second, third].map(({ line }) => line.hears(1300)))

    t.match(await one.update({ coaching: true, callSidToCoach: first.sid }), { coaching: true })
    await silent(third.line, 650)
    await first.line.hears(650)
    t.match(await happened('participant-modify'), { CallSidToCoach: first.sid })
    await one.update({ coaching: false })
    await third.line.hears(650)
    await Promise.all([humming(), other()])

    t.equal(await one.remove(), true)
    t.equal(await second.line.over(), 'peer', 'the kicked one has no further verbs')
    await until('it is gone', () =>
      one.fetch().then(
        () => false,
        error => error.status === 404 && error.code === 20404,
      ),
    )

    const to = town.someone()
    const adding = client.conferences(sid).participants.create({ from: trunk_number, to, label: 'guest', muted: true })
    const guest = await far.incoming(to)
    const added = await adding
    t.match(added, { label: 'guest', muted: true, conferenceSid: sid })
    await guest.answer()
    const speech = first.line.hum(850)
    await guest.hears(850)
    const hushed = guest.hum(1150)
    const beside = third.line.hum(950)
    await first.line.hears(950)
    t.ok(first.line.level(1150) < -40, 'the guest came muted')
    await Promise.all([speech(), hushed(), beside()])
    await inRoom(added.callSid)
    t.match(await client.conferences(sid).participants('guest').fetch(), {
      callSid: added.callSid,
      status: 'connected',
    })

    const unused = { from: trunk_number, to: town.someone() }
    for (const [wrong, code] of [
      [{ label: 'guest' }, 16025],
      [{ label: 'a/b' }, 16024],
      [{ label: first.sid }, 16024],
      [{ callSidToCoach: newId.call() }, 20001],
      [{ coaching: true }, 20001],
    ] as const) {
      const refused = client.conferences(sid).participants.create({ ...unused, ...wrong })
      await t.rejects(refused, { status: 400, code }, JSON.stringify(wrong))
    }
    const invited = await w.manage('POST', `/conferences/${sid}/participants`, { ...unused, label: 'guest' })
    t.match(invited, { status: 400 }, 'nor by /v1')
    t.notOk(
      far.calls.some(({ call }) => (call?.invite?.uri ?? '').includes(unused.to)),
      'nobody was called',
    )

    t.equal((await client.conferences(sid).update({ status: 'completed' })).sid, sid)
    t.equal(
      (await client.conferences.list({ status: 'completed', dateUpdatedBefore: new Date('2020-01-01') })).length,
      0,
    )
    for (const line of [first.line, third.line, guest]) t.equal(await line.over(), 'peer')
    t.match(await happened('conference-end'), { ReasonConferenceEnded: 'conference-ended-via-api' })
    await until('it is over', async () => (await client.conferences(sid).fetch()).status === 'completed')
    t.match(await client.conferences(sid).fetch(), { reasonConferenceEnded: 'conference-ended-via-api' })
    const listed = async (filter: object) => (await client.conferences.list(filter)).some(one => one.sid === sid)
    t.ok(await listed({ status: 'completed', dateUpdatedAfter: new Date('2020-01-01') }))
    t.notOk(await listed({}), 'without a status, those in progress')
    await t.rejects(client.conferences(sid).update({ status: 'completed' }), { status: 400 })
  })

  await t.test('a coach is heard by nobody else when the coached participant has left', async t => {
    const events = 'statusCallbackEvent="leave mute"'
    const customer = await callOut(room('desk', `statusCallback="${url}/desk" ${events}`))
    const agent = await callOut(room('desk'))
    await inRoom(customer.sid, agent.sid)
    const coach = await callOut(room('desk', `coach="${agent.sid}"`))
    const speech = [coach.line.hum(850), customer.line.hum(650)]
    await agent.line.hears(850)
    await inRoom(coach.sid)
    agent.line.hangUp()
    const happened = (event: string) =>
      until(event, () => all('/desk').find(fields => fields['StatusCallbackEvent'] === event))
    await happened('participant-leave')
    const [conference] = await client.conferences.list({ friendlyName: 'desk', status: 'in-progress' })
    const { participants } = client.conferences(conference?.sid ?? '')
    await participants(coach.sid).update({ muted: true })
    await participants(coach.sid).update({ muted: false })
    await happened('participant-unmute')
    await customer.line.rtp.packets(customer.line.rtp.received.length + 50)
    t.ok(customer.line.level(850) < -40, 'the customer does not hear what was for the agent')
    await participants(coach.sid).update({ coaching: false })
    await customer.line.hears(850)
    await Promise.all(speech.map(stop => stop()))
    for (const { line } of [customer, coach]) line.hangUp()
  })

  await t.test(
    'who waits for a conference to start hears its sound again after an announcement and a hold',
    async () => {
      pages['/480.wav'] = { type: 'audio/wav', body: wavBytes(8000, tone(480, 4000)) }
      pages['/wait-480'] = doc(`<Play loop="0">${url}/480.wav</Play>`)
      const wait = `startConferenceOnEnter="false" waitUrl="${url}/wait-480"`
      const { sid, line } = await callOut(room('lobby', wait))
      await line.hears(480)
      await inRoom(sid)
      const [conference] = await client.conferences.list({ friendlyName: 'lobby', status: 'init' })
      const participant = client.conferences(conference?.sid ?? '').participants(sid)
      await participant.update({ announceUrl: `${url}/1300.wav`, announceMethod: 'GET' })
      await line.hears(1300)
      await line.hears(480)
      await participant.update({ hold: true, holdUrl: `${url}/900.wav` })
      await line.hears(900)
      await participant.update({ hold: false })
      await line.hears(480)
      const starter = await callOut(room('lobby'))
      const humming = starter.line.hum(650)
      await line.hears(650)
      await humming()
      for (const one of [line, starter.line]) one.hangUp()
    },
  )

  await t.test('a conference that nobody is in begins with who is added to it by name', async t => {
    const to = town.someone()
    const { participants } = client.conferences('fresh')
    const added = await participants.create({
      from: trunk_number,
      to,
      waitUrl: '',
      beep: 'false',
      conferenceStatusCallback: `${url}/fresh`,
      machineDetection: 'Enable',
      machineDetectionSilenceTimeout: 2000,
      amdStatusCallback: `${url}/fresh-amd`,
    })
    t.match(added.conferenceSid, /^CF[0-9a-f]{32}$/)
    t.match(await client.conferences(added.conferenceSid).fetch(), { friendlyName: 'fresh', status: 'init' })
    const guest = await far.incoming(to)
    await guest.answer()
    await guest.rtp.packets(100)
    t.ok(guest.loudness() < -60, 'an empty WaitUrl is silence, not music')
    const joined = await callOut(room('fresh'))
    const humming = joined.line.hum(650)
    await guest.hears(650)
    await inRoom(joined.sid)
    const mentor = town.someone()
    const named = { from: trunk_number, to: mentor, callSidToCoach: joined.sid, beep: 'false' }
    const coach = await client.conferences(added.conferenceSid).participants.create(named)
    t.match(coach, { coaching: true })
    const mentoring = await far.incoming(mentor)
    await mentoring.answer()
    const advice = mentoring.hum(1150)
    await joined.line.hears(1150)
    await guest.hears(650)
    t.ok(guest.level(1150) < -40, 'the mentor is heard by the one whom CallSidToCoach names alone')
    await inRoom(coach.callSid)
    t.equal((await client.conferences(added.conferenceSid).fetch()).status, 'in-progress')
    mentoring.hangUp()
    await Promise.all([humming(), advice()])
    const detected = await until('the detection beside the conference', () => all('/fresh-amd')[0])
    t.match(detected, { CallSid: added.callSid, AnsweredBy: /.+/ })
    t.equal(await client.conferences(added.conferenceSid).participants(added.callSid).remove(), true)
    await guest.over()
    joined.line.hangUp()
    const events = () => all('/fresh').map(fields => fields['StatusCallbackEvent'])
    await until('its end is told', () => events().includes('conference-end'))
    t.same(events(), ['conference-start', 'conference-end'], 'the default of ConferenceStatusCallbackEvent')
    await until('it is over', async () => {
      const { status } = await client.conferences(added.conferenceSid).fetch()
      return status === 'completed'
    })
  })

  await t.test('who still rings when a conference ends is called no longer, unless several may still meet', async t => {
    const adds = async (name: string, how: object = {}) => {
      const to = town.someone()
      const adding = client.conferences(name).participants.create({ from: trunk_number, to, beep: 'false', ...how })
      const line = await far.incoming(to)
      line.ring()
      return { line, added: await adding }
    }
    const host = await callOut(room('brief'))
    // The conference begins with its host. Until then there is none that could end.
    await inRoom(host.sid)
    const late = await adds('brief')
    host.line.hangUp()
    t.equal(await late.line.over(), 'cancelled', 'nobody is there to talk to')
    await until(
      'its call is canceled',
      async () => (await client.calls(late.added.callSid).fetch()).status === 'canceled',
    )

    const agent = await callOut(room('pair', `statusCallback="${url}/pair" statusCallbackEvent="end"`))
    // The API begins a second conference of this name when it does not know the first one yet.
    await inRoom(agent.sid)
    const first = await adds('pair', { endConferenceOnExit: true })
    const second = await adds('pair')
    agent.line.hangUp()
    await until('the agent has left', () => all('/pair').length > 0)
    await Promise.all([first, second].map(({ line }) => line.answer()))
    const humming = [first.line.hum(650), second.line.hum(750)]
    await Promise.all([first.line.hears(750), second.line.hears(650)])
    const { conferenceSid } = first.added
    const begun = await until('the API knows that they have met', async () => {
      const found = await client.conferences(conferenceSid).fetch()
      return found.status === 'in-progress' && found
    })
    t.match(begun, { status: 'in-progress' })
    const others = [await adds(conferenceSid), await adds(conferenceSid)]
    first.line.hangUp()
    for (const { line } of others) t.equal(await line.over(), 'cancelled', 'its moderator has ended it')
    await second.line.over()
    await Promise.all(humming.map(stop => stop()))
  })

  await t.test('the errors and warnings of a call are its notifications', async t => {
    pages['/lost.wav'] = { status: 404 }
    pages['/lost'] = { status: 500 }
    const mistaken = doc(`<Foo/><Play>${url}/lost.wav</Play><Redirect>${url}/lost</Redirect>`)
    const { sid, line } = await callOut(mistaken, { FallbackUrl: `${url}/900.wav`, FallbackMethod: 'GET' })
    await line.hears(900)
    const { notifications } = client.calls(sid)
    const all = await until('three notifications', async () => {
      const found = await notifications.list()
      return found.length >= 3 ? found : undefined
    })
    t.same(
      all.map(one => [one.log, one.errorCode, one.requestMethod, one.requestUrl]),
      [
        ['0', '11217', 'POST', `${url}/lost`],
        ['1', '11200', 'GET', `${url}/lost.wav`],
        ['1', '12200', '', ''],
      ],
    )
    t.ok(all.every(one => one.callSid === sid && one.moreInfo === `${w.base_url}/docs/errors/${one.errorCode}`))
    const [newest, ...warnings] = all
    t.match(await notifications(newest?.sid ?? '').fetch(), { sid: newest?.sid, messageText: newest?.messageText })
    t.same(
      (await notifications.list({ log: 1 })).map(one => one.sid),
      warnings.map(one => one.sid),
    )
    t.same(await notifications.list({ messageDateBefore: new Date('2020-01-01') }), [])
    line.hangUp()
    await w.ended(sid)
    const other = await callOut(doc('<Hangup/>'))
    const elsewhere = client
      .calls(other.sid)
      .notifications(newest?.sid ?? '')
      .fetch()
    await t.rejects(elsewhere, { status: 404, code: 20404 }, 'of that call alone')
    await other.line.over()
  })

  await t.test('a queue: create, list, resize, members, dequeue, delete', async t => {
    const queue = await client.queues.create({ friendlyName: 'support', maxSize: 2 })
    t.match(queue, { friendlyName: 'support', maxSize: 2, currentSize: 0 })
    await t.rejects(client.queues.create({ friendlyName: 'support' }), { status: 400 })
    const callers = []
    for (const hz of [900, 1300]) {
      pages[`/wait-${hz}`] = doc(`<Play loop="20">${url}/${hz}.wav</Play>`)
      const caller = await callOut(doc(`<Enqueue waitUrl="${url}/wait-${hz}">support</Enqueue>`))
      await caller.line.hears(hz)
      callers.push(caller)
    }
    const [front, next] = callers
    if (!front || !next) throw new Error('two wait')
    pages['/full'] = doc(`<Play loop="0">${url}/900.wav</Play>`)
    const turned = await callOut(doc(`<Enqueue action="${url}/full">support</Enqueue>`))
    await turned.line.hears(900)
    t.equal(all('/full')[0]?.['QueueResult'], 'queue-full')
    turned.line.hangUp()
    t.equal((await client.queues(queue.sid).update({ maxSize: 5 })).maxSize, 5)
    t.match(await client.queues(queue.sid).fetch(), { currentSize: 2, maxSize: 5 })
    t.ok((await client.queues.list()).some(one => one.sid === queue.sid))
    const members = await client.queues(queue.sid).members.list()
    t.same(
      members.map(({ callSid, position }) => [callSid, position]),
      [
        [front.sid, 1],
        [next.sid, 2],
      ],
    )
    t.equal((await client.queues(queue.sid).members('Front').fetch()).callSid, front.sid)
    pages['/served'] = doc(`<Play loop="0">${url}/1300.wav</Play>`)
    await client
      .queues(queue.sid)
      .members('Front')
      .update({ url: `${url}/served` })
    await front.line.hears(1300)
    await until('one waits', async () => (await client.queues(queue.sid).fetch()).currentSize === 1)
    await t.rejects(client.queues(queue.sid).remove(), { status: 400 })
    for (const { line } of [front, next]) line.hangUp()
    await until('nobody waits', async () => (await client.queues(queue.sid).fetch()).currentSize === 0)
    t.equal(await client.queues(queue.sid).remove(), true)
    await t.rejects(client.queues(queue.sid).fetch(), { status: 404, code: 20404 })
  })

  await t.test('recordings: start, pause that skips, pause that keeps silence, resume, stop, list, delete', async t => {
    const [first, second] = [await callOut(room('tape')), await callOut(room('tape'))]
    const heard = async (hz: number): Promise<void> => {
      const stop = first.line.hum(hz)
      await second.line.hears(hz)
      await stop()
    }
    await heard(500)
    const callback = `${url}/taped`
    const events = ['in-progress', 'completed']
    // Signaling is late, so that the recording begins in another second than the one in which it is asked for.
    const signaling = w.pid('signaling')
    const asked = async () => {
      // We hold the lock of the database: a process that is stopped while it holds it keeps all others from writing.
      await w.state.transaction(async trx => {
        await trx.selectFrom('call').select('sid').limit(1).execute()
        process.kill(signaling, 'SIGSTOP')
      })
      const made = await client.calls(first.sid).recordings.create({
        recordingChannels: 'dual',
        recordingStatusCallback: callback,
        recordingStatusCallbackEvent: events,
      })
      await until('that second is over', () => Date.now() >= made.startTime.getTime() + 1000)
      return made
    }
    const { sid, startTime: asked_at } = await asked().finally(() => process.kill(signaling, 'SIGCONT'))
    const told = (status: string) =>
      until(`it is ${status}`, () => all('/taped').find(fields => fields['RecordingStatus'] === status))
    await told('in-progress')
    const pauses = async () => (await w.manage('GET', `/recordings/${sid}`)).body.pauses
    const one = client.calls(first.sid).recordings('Twilio.CURRENT')
    await heard(650)
    t.match(await one.update({ status: 'paused', pauseBehavior: 'skip' }), { sid, status: 'paused' })
    await until('it is paused', async () => (await pauses()).length === 1)
    await heard(1150)
    await heard(500)
    t.match(await one.update({ status: 'in-progress' }), { status: 'in-progress' })
    await until('it goes on', async () => (await pauses())[0].length_ms !== null)
    await heard(750)
    await one.update({ status: 'paused' })
    await until('it is paused again', async () => (await pauses()).length === 2)
    await heard(1250)
    await heard(500)
    await one.update({ status: 'in-progress' })
    await until('it goes on again', async () => (await pauses())[1].length_ms !== null)
    await heard(850)
    t.match(await client.calls(first.sid).recordings(sid).update({ status: 'stopped' }), { status: 'stopped' })
    const began_ms = Date.parse((await told('completed'))['RecordingStartTime'] ?? '')
    const { startTime } = await client.calls(first.sid).recordings(sid).fetch()
    t.equal(Math.floor(startTime.getTime() / 1000) * 1000, began_ms, 'when it began, as the callback says')
    t.ok(startTime > asked_at, 'not when it was asked for')
    const [skipped, hushed] = await pauses()
    t.match(
      [skipped, hushed],
      [
        { behavior: 'skip', by: 'api' },
        { behavior: 'silence', by: 'api' },
      ],
    )
    const { channels } = readWav((await w.voice('GET', `/Recordings/${sid}.wav`)).bytes)
    const [said = new Int16Array()] = channels
    const cut = (from_ms: number) => said.subarray(8 * from_ms)
    t.ok(loudest(said, 650) > -30, 'what was said before the pause')
    t.ok(loudest(said, 1150) < -40, 'nothing of the pause that skips')
    t.ok(loudest(cut(skipped.at_ms), 750) > -30, 'what was said after it')
    t.ok(loudest(said, 1250) < -40, 'nothing of the other pause')
    t.ok(silentMs(cut(skipped.at_ms)) > hushed.length_ms / 2, 'but silence, to the sample')
    t.ok(loudest(cut(hushed.at_ms), 850) > -30, 'and what was said after that')

    t.same(
      (await client.recordings.list({ callSid: first.sid })).map(row => row.sid),
      [sid],
    )
    t.equal(await client.recordings(sid).remove(), true)
    await t.rejects(client.recordings(sid).fetch(), { status: 404, code: 20404 })
    for (const { line } of [first, second]) line.hangUp()
    await Promise.all([w.ended(first.sid), w.ended(second.sid)])
    await t.rejects(client.calls(first.sid).recordings.create(), { status: 400, code: 21220 })
  })

  await t.test(
    'a recording of one track holds that side alone, by RecordingTrack and by <Recording track>',
    async t => {
      pages['/talk'] = doc(`<Play>${url}/900.wav</Play>`)
      const recorded = (track: string) => `track="${track}" recordingStatusCallback="${url}/by-verb"`
      const callback = {
        RecordingStatusCallback: `${url}/by-create`,
        RecordingStatusCallbackEvent: 'in-progress completed',
      }
      for (const [by_create, by_verb] of [
        ['outbound', 'inbound'],
        ['inbound', 'outbound'],
      ] as const) {
        const events = 'recordingStatusCallbackEvent="in-progress completed"'
        const markup = doc(
          `<Start><Recording ${recorded(by_verb)} ${events}/></Start><Gather numDigits="1" timeout="60" action="${url}/talk"><Play loop="0">${url}/1300.wav</Play></Gather>`,
        )
        const { sid, line } = await callOut(markup, { Record: 'true', RecordingTrack: by_create, ...callback })
        const of = (path: string, status: string) =>
          until(`${path} is ${status}`, () =>
            all(path).find(fields => fields['CallSid'] === sid && fields['RecordingStatus'] === status),
          )
        for (const path of ['/by-create', '/by-verb']) await of(path, 'in-progress')
        // Both sides speak once both recordings run: the peer 650 Hz for as long as the document plays 900 Hz. A key
        // before the Gather is lost, so the peer presses it when it hears that the Gather plays.
        await line.hears(1300)
        await line.press('1')
        const humming = line.hum(650)
        await line.over()
        await humming()
        for (const [path, track] of [
          ['/by-create', by_create],
          ['/by-verb', by_verb],
        ] as const) {
          const { RecordingSid, RecordingTrack } = await of(path, 'completed')
          t.equal(RecordingTrack, track)
          const [samples = new Int16Array()] = readWav(
            (await w.voice('GET', `/Recordings/${RecordingSid}.wav`)).bytes,
          ).channels
          const [own, other] = track === 'inbound' ? [650, 900] : [900, 650]
          t.ok(loudest(samples, own) > -30, `${path} ${track}: its own side`)
          t.ok(loudest(samples, other) < -40, `${path} ${track}: nothing of the other side`)
        }
      }
    },
  )

  await t.test('a stream, begun beside the document or by it, is stopped alone; messages reach clients', async t => {
    const heard = { inbound: 0, outbound: 0 }
    const server = await socketServer(t, frame => {
      if (frame.event !== 'media') return
      const samples = Int16Array.from(Buffer.from(frame['media'].payload, 'base64'), expandUlaw)
      const hz = frame['media'].track === 'inbound' ? 650 : 900
      if (toneLevelDbm0(samples, hz) > -30) heard[frame['media'].track as 'inbound' | 'outbound']++
    })
    const own = `<Stream url="${server.url}/own" name="own"/>`
    const talk = await callOut(doc(`<Start>${own}</Start><Play loop="0">${url}/900.wav</Play>`))
    const ended = (at: number) => () => server.connections[at]?.frames.some(({ event }) => event === 'stop')
    await until('the stream of the document', () => server.connections[0]?.frames[1])
    const callback = { statusCallback: `${url}/streamed`, statusCallbackMethod: 'GET' }
    const begun = await client
      .calls(talk.sid)
      .streams.create({ url: `${server.url}/api`, name: 'ears', track: 'both_tracks', ...callback })
    const humming = talk.line.hum(650)
    await until('both sides are streamed', () => heard.inbound > 0 && heard.outbound > 0)
    await humming()
    t.equal(server.connections[1]?.frames[1]?.['start'].streamSid, begun.sid)
    await client.calls(talk.sid).streams('ears').update({ status: 'stopped' })
    await until('it has stopped', ended(1))
    t.notOk(ended(0)(), 'the other goes on')
    await until('both callbacks', () => all('/streamed').length === 2)
    t.match(all('/streamed'), [
      { StreamEvent: 'stream-started', StreamSid: begun.sid, StreamName: 'ears' },
      { StreamEvent: 'stream-stopped' },
    ])
    const theirs = server.connections[0]?.frames[1]?.['start'].streamSid
    t.equal((await client.calls(talk.sid).streams(theirs).update({ status: 'stopped' })).name, 'own')
    await until('that of the document has stopped', ended(0))
    await talk.line.hears(900)

    // The far telephone stands in for a browser.
    await w.state.db.updateTable('call').set({ origin: 'client' }).where('sid', '=', talk.sid).execute()
    await client.calls(talk.sid).userDefinedMessages.create({ content: '{"seat":12}' })
    const message = await until('the message', () => talk.line.requests.find(one => one.message.method === 'MESSAGE'))
    t.equal(message.body, '{"seat":12}')
    const json = { headers: { 'Content-Type': 'application/json' }, body: '{"row":7}' }
    t.equal((await talk.line.send('MESSAGE', json))?.status, 405, 'nobody has asked for messages')
    const subscriptions = client.calls(talk.sid).userDefinedMessageSubscriptions
    const subscription = await subscriptions.create({ callback: `${url}/messages`, method: 'GET' })
    await until('it is heard', async () => (await talk.line.send('MESSAGE', json))?.status === 202)
    t.match(await town.told('/messages'), {
      CallSid: talk.sid,
      Content: '{"row":7}',
      SubscriptionSid: subscription.sid,
    })
    t.equal(await subscriptions(subscription.sid).remove(), true)
    await until('it is over', async () => (await talk.line.send('MESSAGE', json))?.status === 405)
    talk.line.hangUp()
    await w.ended(talk.sid)
    await t.rejects(client.calls(talk.sid).streams.create({ url: server.url }), { status: 400, code: 21220 })
  })

  await t.test('a document pauses its recordings: by verbs, and while a secret is typed', async t => {
    pages['/typed'] = doc(`<ResumeRecording/><Play loop="0">${url}/900.wav</Play>`)
    const asked = `<Play loop="0">${url}/1300.wav</Play>`
    const gather = `<Gather sensitive="true" numDigits="2" timeout="60" action="${url}/typed">${asked}</Gather>`
    const secret = await callOut(doc(`<Start><Recording trim="do-not-trim"/></Start>${gather}`))
    const humming = secret.line.hum(650)
    await secret.line.hears(1300)
    for (const key of '42') await secret.line.press(key)
    await secret.line.hears(900)
    const recording = await until('its pause is kept', async () => {
      const [row] = (await w.manage('GET', `/recordings?call_id=${secret.sid}`)).body.data
      return row?.pauses.length > 0 && row
    })
    t.match(recording.pauses, [{ behavior: 'silence', by: 'key' }])
    await client.calls(secret.sid).update({
      twiml: doc(`<PauseRecording behavior="skip"/><Play loop="0">${url}/1300.wav</Play>`),
    })
    await secret.line.hears(1300)
    await client.calls(secret.sid).update({ twiml: doc(`<ResumeRecording/><Play loop="0">${url}/900.wav</Play>`) })
    await secret.line.hears(900)
    await humming()
    secret.line.hangUp()
    const done = await until('the recording is finished', async () => {
      const { body } = await w.manage('GET', `/recordings/${recording.id}`)
      return !['in-progress', 'paused'].includes(body.status) && body
    })
    t.match(done, { status: 'completed' })
    t.match(done.pauses, [{ by: 'key' }, { behavior: 'skip', by: 'document' }])
    const { channels } = readWav((await w.voice('GET', `/Recordings/${recording.id}.wav`)).bytes)
    const [, heard = new Int16Array()] = channels
    const [typed, skipped] = done.pauses
    t.ok(silentMs(heard) > typed.length_ms / 2, 'nothing is heard of the secret')
    t.ok(skipped.length_ms > 0, 'the pause of the document is told, though the audio has nothing of it')
  })

  await t.test('while a secret is typed, no request makes a recording hear it, and none is lost', async t => {
    const gather = (sensitive: boolean, hz: number, next: string): string =>
      doc(
        `<Gather sensitive="${sensitive}" numDigits="1" timeout="60" action="${url}${next}"><Play loop="0">${url}/${hz}.wav</Play></Gather>`,
      )
    pages['/after'] = gather(false, 900, '/last')
    pages['/last'] = gather(false, 1300, '/none')
    const secret = gather(true, 1300, '/after')
    const { sid, line } = await callOut(
      secret.replace('<Gather', '<Start><Recording trim="do-not-trim"/></Start><Gather'),
    )
    const recordings = async () => (await w.manage('GET', `/recordings?call_id=${sid}`)).body.data
    const pauses = async (id: string) => (await w.manage('GET', `/recordings/${id}`)).body.pauses
    /** Says a tone, and then a key, so that the platform has heard the tone when the next document plays. */
    const says = async (hz: number, next: number): Promise<void> => {
      await line.say(hz, 1000)
      await line.press('1')
      await line.hears(next)
    }
    await line.hears(1300)
    const own = await until('its own recording is silent', async () => {
      const [row] = await recordings()
      return row?.pauses.length > 0 && row.id
    })
    t.match(await client.calls(sid).recordings(own).update({ status: 'paused' }), { status: 'paused' })
    await until('it is paused by the request', async () => (await pauses(own))[0].by === 'api')
    const late = (await client.calls(sid).recordings.create()).sid
    await until('the new one is silent', async () => (await pauses(late)).length > 0)
    t.match(await client.calls(sid).recordings(late).update({ status: 'in-progress' }), { sid: late })
    await until('it stays so', async () => (await client.recordings(late).fetch()).status === 'paused')
    await says(650, 900)
    await until('the new one goes on', async () => (await pauses(late))[0].length_ms !== null)
    await says(750, 1300)
    t.match(await client.calls(sid).recordings(own).update({ status: 'in-progress' }), { status: 'in-progress' })
    await until('the other goes on, too', async () => (await pauses(own))[0].length_ms !== null)
    await line.say(850, 1000)
    await line.press('1')
    await line.over()
    for (const [id, by, heard] of [
      [own, 'api', [850]],
      [late, 'key', [750, 850]],
    ] as const) {
      const done = await until('the recording is finished', async () => {
        const { body } = await w.manage('GET', `/recordings/${id}`)
        return body.status === 'completed' && body
      })
      t.match(done.pauses, [{ behavior: 'silence', by }])
      t.equal(done.pauses.length, 1)
      const { channels } = readWav((await w.voice('GET', `/Recordings/${id}.wav`)).bytes)
      for (const hz of [650, 750, 850]) {
        const most = Math.max(...channels.map(samples => loudest(samples, hz)))
        if (heard.some(one => one === hz)) t.ok(most > -30, `${by}: ${hz} Hz`)
        else t.ok(most < -40, `${by}: nothing of ${hz} Hz`)
      }
    }
  })

  await t.test('a queue that asks for a secret while it waits leaves nothing paused', async t => {
    pages['/pin'] = doc(`<Gather sensitive="true" timeout="60"><Play loop="0">${url}/1300.wav</Play></Gather>`)
    const recorded = '<Start><Recording trim="do-not-trim"/></Start>'
    const { sid, line } = await callOut(doc(`${recorded}<Enqueue waitUrl="${url}/pin">pins</Enqueue>`))
    await line.hears(1300)
    const of = async () => (await w.manage('GET', `/recordings?call_id=${sid}`)).body.data[0]
    await until('it is silent', async () => (await of())?.status === 'paused')
    const agent = await callOut(doc('<Dial><Queue>pins</Queue></Dial>'))
    await until('it goes on', async () => (await of()).status === 'in-progress')
    const humming = line.hum(650)
    await agent.line.hears(650)
    await humming()
    agent.line.hangUp()
    await line.over()
    const done = await until('it is finished', async () => {
      const row = await of()
      return row.status === 'completed' && row
    })
    t.match(done.pauses, [{ by: 'key' }])
    const { channels } = readWav((await w.voice('GET', `/Recordings/${done.id}.wav`)).bytes)
    t.ok(channels.some(samples => loudest(samples, 650) > -30))
  })

  await t.test('a saved document runs a call with no web server, and no call of another project', async t => {
    const content = doc(`<Redirect method="GET">${url}/saved?from={{From}}&amp;none={{Digits}}</Redirect>`)
    const key = { 'Idempotency-Key': 'saved-1' }
    const made = await w.manage('POST', '/voice/documents', { name: 'Saved', content }, key)
    t.match(made, { status: 201, body: { revision: 1, check: { ok: true } } })
    pages['/saved'] = doc(`<Play loop="0">${url}/900.wav</Play>`)
    const place = async (Url: string) => {
      const To = town.someone()
      const { sid } = (await w.voice('POST', '/Calls.json', { To, From: trunk_number, Url })).body
      const line = await far.incoming(To)
      await line.answer()
      return { sid: String(sid), line }
    }
    const { sid, line } = await place(made.body.url)
    await line.hears(900)
    const asked = web.requests.find(request => request.path === '/saved')
    t.equal(asked?.fields.get('from')?.trim(), trunk_number.replace('+', ''))
    t.equal(asked?.fields.get('none'), '')
    line.hangUp()
    await w.ended(sid)
    const { text } = await w.voice('GET', `/Calls/${sid}/Events.json`).then(({ bytes }) => ({ text: bytes.toString() }))
    t.ok(text.includes('[hidden]') && !text.includes(new URL(made.body.url).searchParams.get('signature') ?? ''))

    const served = await fetch(`${made.body.url}&From=${encodeURIComponent('"<Dial>')}`)
    t.equal(served.status, 200)
    t.match(served.headers.get('content-security-policy'), /default-src 'none'; sandbox/, 'its scripts do not run')
    t.ok((await served.text()).includes('from=&quot;&lt;Dial&gt;'), 'over HTTP too, filled and escaped')
    t.equal((await fetch(made.body.url.replace(/.$/, 'x'))).status, 404)

    const foreign = { ...newDocument, project_id: 'prj_of_somebody_else' }
    await w.state.db.insertInto('voice_document').values(foreign).execute()
    const theirs = await place(documentUrl({ base_url: w.base_url, master_key: w.master_key }, foreign.id))
    await theirs.line.over()
    await town.noted(theirs.sid, 11200)
    await w.state.db.deleteFrom('voice_document').where('id', '=', foreign.id).execute()
    const gone = await w.manage('DELETE', `/voice/documents/${made.body.id}`, undefined, { 'If-Match': '"1"' })
    t.equal(gone.status, 204)
    t.equal((await fetch(made.body.url)).status, 404)
  })

  await t.test('every path that the library used is 404 for an account without the wider API', async t => {
    const extended = [...new Set(requests)].filter(request => !SPEC.test(request))
    t.comment(extended.join('\n'))
    await w.state.db
      .updateTable('voice_account')
      .set({ voice_api: 'spec' })
      .where('account_sid', '=', w.account_sid)
      .execute()
    for (const request of extended) {
      const [method = '', path = ''] = request.split(' ')
      const answer = await w.voice(method, path, method === 'POST' ? {} : undefined)
      t.match(answer, { status: 404, body: { code: 'voice_route_not_proxied' } }, request)
    }
  })
})

import { existsSync, readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { WebSocketServer } from 'ws'
import { onlyFirstStories } from '../support/engine.ts'
import t from '../support/harness/index.ts'
import { recordsSound } from '../support/recordings.ts'
import { sharedWorld } from '../support/shared-world.ts'
import { addTenant } from '../support/tenants.ts'
import { until } from '../support/wait.ts'
import { webServer } from '../support/web.ts'
import { formOf, type World } from '../support/world.ts'

// Documents that connect several calls: dialled children, whispers, conferences, queues. The far ends are those of the
// sandbox carrier. Its tones and the callbacks show who is bridged with whom.

const SANDBOX = '+234803000'
const QUIET = `${SANDBOX}0008`
const BUSY = `${SANDBOX}0002`
const RINGS = `${SANDBOX}0003`
const SHORT = `${SANDBOX}0006`
/** Answers, and stays until it is hung up on. */
const ANSWERS = `${SANDBOX}4712`

const say = (text: string): string => `<Response><Say>${text}</Say></Response>`

/** Waits until the metrics report this many. A busy process may be missing from one reading. */
const counted = (w: World, name: string, count: number): Promise<unknown> =>
  until(`${name} is ${count}`, async () => (await w.metrics())(name) === count)

t.test('documents that bridge calls', async t => {
  const w = await sharedWorld(t)
  // The tests mostly wait, each for its own calls. The last one waits for all.
  t.jobs = 4
  const create = async (to: string, form: Record<string, string>): Promise<string> => {
    const { status, body } = await w.voice('POST', '/Calls.json', { To: to, From: w.numbers[0] ?? '', ...form })
    if (status !== 201 && status !== 200) throw new Error(JSON.stringify(body))
    return body.sid
  }
  const childrenOf = (sid: string) =>
    w.state.db.selectFrom('call').selectAll().where('parent_call_sid', '=', sid).orderBy('position').execute()
  /** Ends the child of a Dial once both sides are joined, which the log of the run tells. */
  const endJoined = async (sid: string): Promise<void> => {
    const log = join(w.data_dir, 'runs', `${sid}-1.jsonl`)
    await until('both sides are joined', () => existsSync(log) && readFileSync(log, 'utf8').includes('"bridged"'))
    const child = (await childrenOf(sid)).find(({ to_number }) => to_number === ANSWERS)
    const { status } = await w.voice('POST', `/Calls/${child?.sid}.json`, { Status: 'completed' })
    if (status !== 200) throw new Error(`the child was not ended: ${status}`)
  }

  t.test(
    'Dial rings several at once: the first to answer is bridged, the others are canceled',
    { buffered: true },
    async t => {
      const web = await webServer(t, { '/after': '<Response><Hangup/></Response>' })
      const markup = `<Response><Dial action="${web.url}/after"><Number>${RINGS}</Number><Number>${ANSWERS}</Number></Dial></Response>`
      const sid = await create(QUIET, { InlineMarkup: markup })
      await endJoined(sid)
      const after = await web.seen('/after')
      t.match(Object.fromEntries(after.fields), { DialCallStatus: 'completed', DialBridged: 'true' })
      await w.ended(sid)
      // A child that is canceled ends when its telephone says so.
      for (const child of await childrenOf(sid)) await w.ended(child.sid)
      const children = await childrenOf(sid)
      t.match(
        children.map(child => [child.to_number, child.status, child.direction]),
        [
          [RINGS, 'canceled', 'outbound-dial'],
          [ANSWERS, 'completed', 'outbound-dial'],
        ],
      )
    },
  )

  t.test(
    'Dial reports a busy child, an unanswered one, and one that may not be called',
    { buffered: true },
    async t => {
      const web = await webServer(t, {
        '/busy': `<Response><Dial action="${'/late'}" timeout="5"><Number>${RINGS}</Number></Dial></Response>`,
        '/late': `<Response><Dial action="${'/bad'}"><Number>12</Number></Dial></Response>`,
        '/bad': '<Response><Hangup/></Response>',
      })
      const markup = `<Response><Dial action="${web.url}/busy"><Number>${BUSY}</Number></Dial></Response>`
      const sid = await create(QUIET, { InlineMarkup: markup })
      t.match(Object.fromEntries((await web.seen('/busy')).fields), {
        DialCallStatus: 'busy',
        DialSipResponseCode: '486',
      })
      t.match(Object.fromEntries((await web.seen('/late')).fields), { DialCallStatus: 'no-answer' })
      t.match(Object.fromEntries((await web.seen('/bad')).fields), { DialCallStatus: 'failed' })
      t.match(await w.ended(sid), { status: 'completed' })
    },
  )

  t.test(
    'the called party hears a whisper before the bridge, and may decline the call',
    { buffered: true },
    async t => {
      const web = await webServer(t, {
        '/whisper': '<Response><Pause length="1"/><Hangup/></Response>',
        '/after': '<Response><Hangup/></Response>',
      })
      const number = `<Number url="${web.url}/whisper">${QUIET}</Number>`
      const sid = await create(QUIET, {
        InlineMarkup: `<Response><Dial action="${web.url}/after">${number}</Dial></Response>`,
      })
      const whisper = Object.fromEntries((await web.seen('/whisper')).fields)
      t.match(whisper, { ParentCallSid: sid, Direction: 'outbound-dial', CallStatus: 'in-progress' })
      t.match(Object.fromEntries((await web.seen('/after')).fields), {
        DialCallStatus: 'completed',
        DialBridged: 'false',
      })
      await w.ended(sid)
    },
  )

  t.test('records both parties of a Dial on two channels', { buffered: true }, async t => {
    const web = await webServer(t, { '/after': '<Response><Hangup/></Response>', '/tape': '' })
    const tape = `record="record-from-answer-dual" recordingStatusCallback="${web.url}/tape" recordingStatusCallbackEvent="in-progress"`
    const markup = `<Response><Dial action="${web.url}/after" ${tape}><Number>${ANSWERS}</Number></Dial></Response>`
    const sid = await create(QUIET, { InlineMarkup: markup })
    await web.seen('/tape')
    await recordsSound(w, sid)
    await endJoined(sid)
    const after = Object.fromEntries((await web.seen('/after')).fields)
    t.match(after, { DialCallStatus: 'completed', RecordingSid: /^RE/ })
    await w.ended(sid)
    const recording = await until('the recording is completed', async () => {
      const { body } = await w.voice('GET', `/Calls/${sid}/Recordings.json`)
      return body.recordings[0]?.status === 'completed' && body.recordings[0]
    })
    t.equal(recording.sid, after['RecordingSid'])
    const { bytes } = await w.voice('GET', `/Recordings/${recording.sid}.wav`)
    t.equal(bytes.readUInt16LE(22), 2, 'channels of the file')
  })

  if (onlyFirstStories()) return

  t.test(
    'a conference of three starts with the second participant, and ends with the host',
    { buffered: true },
    async t => {
      const web = await webServer(t, { '/events': '', '/wait': say('please wait') })
      const room = (attributes: string): string =>
        `<Response><Dial><Conference statusCallback="${web.url}/events" statusCallbackEvent="start end join leave" waitUrl="${web.url}/wait" ${attributes}>room</Conference></Dial></Response>`
      const events = (): string[] =>
        web.requests
          .filter(request => request.path === '/events')
          .map(request => Object.fromEntries(request.fields)['StatusCallbackEvent'] ?? '')
      const host = await create(QUIET, { InlineMarkup: room('endConferenceOnExit="true"') })
      await web.seen('/wait')
      const guests = [
        await create(QUIET, { InlineMarkup: room('') }),
        await create(QUIET, { InlineMarkup: room('muted="true"') }),
      ]
      await until('three have joined', () => events().filter(event => event === 'participant-join').length === 3)
      await counted(w, 'conferences', 1)
      t.ok(events().includes('conference-start'))
      await w.voice('POST', `/Calls/${host}.json`, { Status: 'completed' })
      for (const guest of guests) t.match(await w.ended(guest), { status: 'completed' })
      await until('the room has ended', () => events().includes('conference-end'))
      await counted(w, 'conferences', 0)
    },
  )

  t.test(
    'a queued caller hears its position, is taken by an agent, and continues when the agent leaves',
    { buffered: true },
    async t => {
      const web = await webServer(t, {
        '/wait': say('you are next'),
        '/left': '<Response><Hangup/></Response>',
        '/agent-done': '<Response><Hangup/></Response>',
      })
      const enqueue = `<Enqueue waitUrl="${web.url}/wait" action="${web.url}/left">support</Enqueue>`
      const caller = await create(QUIET, { InlineMarkup: `<Response>${enqueue}</Response>` })
      t.match(Object.fromEntries((await web.seen('/wait')).fields), {
        QueuePosition: '1',
        CurrentQueueSize: '1',
        QueueSid: /^QU/,
      })
      await counted(w, 'queued_callers', 1)
      const agent = await create(QUIET, {
        InlineMarkup: `<Response><Dial action="${web.url}/agent-done"><Queue>support</Queue></Dial></Response>`,
      })
      // It no longer waits, because it talks to the agent.
      await counted(w, 'queued_callers', 0)
      await w.voice('POST', `/Calls/${agent}.json`, { Status: 'completed' })
      t.match(Object.fromEntries((await web.seen('/left')).fields), { QueueResult: 'bridged' })
      t.match(await w.ended(caller), { status: 'completed' })
      t.match(await w.ended(agent), { status: 'completed' })
    },
  )

  t.test('a live call gets another document, which interrupts the running one', { buffered: true }, async t => {
    const web = await webServer(t, { '/next': '<Response><Hangup/></Response>' })
    const sid = await create(QUIET, { InlineMarkup: '<Response><Pause length="600"/></Response>' })
    await until('it talks', async () => (await w.voice('GET', `/Calls/${sid}.json`)).body.status === 'in-progress')
    await w.voice('POST', `/Calls/${sid}.json`, { Url: `${web.url}/next` })
    t.match(Object.fromEntries((await web.seen('/next')).fields), { CallSid: sid, CallStatus: 'in-progress' })
    t.match(await w.ended(sid), { status: 'completed' })
  })

  t.test('Record on create records the whole call and sends its callback', { buffered: true }, async t => {
    const web = await webServer(t, { '/recorded': '', '/status': '' })
    const sid = await create(`${SANDBOX}4711`, {
      InlineMarkup: '<Response><Pause length="600"/></Response>',
      Record: 'true',
      RecordingChannels: 'dual',
      RecordingStatusCallback: `${web.url}/recorded`,
      RecordingStatusCallbackEvent: 'in-progress completed',
      StatusCallback: `${web.url}/status`,
    })
    await web.seen('/recorded')
    await recordsSound(w, sid)
    await w.voice('POST', `/Calls/${sid}.json`, { Status: 'completed' })
    await w.ended(sid)
    const completed = await until('the callback of the whole recording', () =>
      web.requests.find(({ path, fields }) => path === '/recorded' && fields.get('RecordingStatus') === 'completed'),
    )
    const told = Object.fromEntries(completed.fields)
    t.match(told, {
      CallSid: sid,
      RecordingStatus: 'completed',
      RecordingChannels: '2',
      RecordingSource: 'OutboundAPI',
    })
    t.equal((await w.voice('GET', `/Recordings/${told['RecordingSid']}.wav`)).status, 200)
    const { body: resource } = await w.voice('GET', `/Recordings/${told['RecordingSid']}.json`)
    t.equal(String(resource.duration), told['RecordingDuration'], 'one number in callback and resource')
    t.match(Object.fromEntries((await web.seen('/status')).fields), {
      CallStatus: 'completed',
      RecordingSid: told['RecordingSid'],
      RecordingUrl: told['RecordingUrl'],
      RecordingDuration: told['RecordingDuration'],
      FromCountry: 'NG',
      CallerCountry: 'NG',
      ToCountry: 'NG',
      CalledCountry: 'NG',
    })
  })

  t.test(
    'a document that does not parse shows in the last callback, in the words of the call, and as its reason',
    { buffered: true },
    async t => {
      const web = await webServer(t, {
        '/broken': '<Response>\n<Say>Hello</Sya></Response>',
        '/typo': '<Response><Sya>Hello</Sya></Response>',
        '/saved': '<Response><Hangup/></Response>',
        '/status': '',
      })
      const run = async (path: string, form: Record<string, string> = {}) => {
        const StatusCallback = `${web.url}/status?of=${path.slice(1)}`
        const sid = await create(QUIET, { Url: `${web.url}${path}`, StatusCallback, ...form })
        await w.ended(sid)
        const told = await until('the last callback', () =>
          web.requests.find(({ fields }) => fields.get('CallSid') === sid && fields.get('CallStatus') === 'completed'),
        )
        const { body } = await w.manage('GET', `/calls/${sid}/decision`)
        return { told: Object.fromEntries(told.fields), words: body.words.join('\n') as string }
      }
      const broken = await run('/broken')
      t.match(broken.told, { ErrorCode: '12100', ErrorMessage: /unexpected close tag/ })
      t.match(broken.words, /Error 12100 in line 2 of .*\/broken: unexpected close tag\./)
      t.match(broken.words, /reason document_failed/)
      const saved = await run('/broken', { FallbackUrl: `${web.url}/saved` })
      t.equal(saved.told['ErrorCode'], undefined, 'the fallback ran in its place')
      t.notMatch(saved.words, /document_failed/)
      const typo = await run('/typo')
      t.match(typo.words, /Warning 12200 in line 1 of .*\/typo: .*Sya/)
    },
  )

  t.test(
    'without consent, no verb records a conversation, and the Record verb records a message',
    { buffered: true },
    async t => {
      const number = '+2342019990001'
      const tenant = await addTenant(w.state, w.master_key, [number])
      await until('the node has the tenant', () =>
        w.state.db
          .selectFrom('apply_report')
          .select('revision')
          .where('resource_id', '=', tenant.project_id)
          .executeTakeFirst(),
      )
      const InlineMarkup = `<Response><Start><Recording/></Start>
        <Dial record="record-from-answer"><Number>${SHORT}</Number></Dial>
        <Record maxLength="2" playBeep="false" timeout="0"/></Response>`
      const made = await fetch(`${w.base_url}/2010-04-01/Accounts/${tenant.account_sid}/Calls.json`, {
        method: 'POST',
        headers: {
          authorization: `Basic ${Buffer.from(`${tenant.account_sid}:${tenant.auth_token}`).toString('base64')}`,
        },
        body: formOf({ To: `${SANDBOX}4711`, From: number, InlineMarkup }),
      })
      const { sid } = (await made.json()) as { sid: string }
      const ended = await until('the call has ended', () =>
        w.state.db
          .selectFrom('call')
          .select('status')
          .where('sid', '=', sid)
          .where('ended_at', 'is not', null)
          .executeTakeFirst(),
      )
      t.equal(ended.status, 'completed')
      const recorded = await w.state.db
        .selectFrom('recording')
        .select('source')
        .where('project_id', '=', tenant.project_id)
        .execute()
      t.same(recorded, [{ source: 'RecordVerb' }])
      const noted = await w.state.db.selectFrom('call_event').select('detail').where('call_sid', '=', sid).execute()
      const refused = noted.filter(({ detail }) => String(detail).includes('recording consent'))
      t.ok(refused.length >= 2, 'the owner reads why')
    },
  )

  t.test(
    'machine detection finishes before the document is requested, with its result',
    { buffered: true },
    async t => {
      const web = await webServer(t, { '/voice': '<Response><Hangup/></Response>', '/status': '' })
      const sid = await create(QUIET, {
        Url: `${web.url}/voice`,
        StatusCallback: `${web.url}/status`,
        StatusCallbackEvent: 'answered completed',
        MachineDetection: 'Enable',
        MachineDetectionSilenceTimeout: '2000',
      })
      const asked = Object.fromEntries((await web.seen('/voice')).fields)
      t.match(asked, { CallSid: sid, AnsweredBy: 'unknown', MachineDetectionDuration: /^\d+$/ })
      await w.ended(sid)
      const { AnsweredBy, MachineDetectionDuration } = asked
      const told = await until('both callbacks', () => {
        const found = web.requests
          .filter(({ path }) => path === '/status')
          .map(({ fields }) => Object.fromEntries(fields))
        return found.length === 2 && found
      })
      t.match(told, [
        { CallStatus: 'in-progress', SequenceNumber: '0', AnsweredBy, MachineDetectionDuration },
        { CallStatus: 'completed', SequenceNumber: '1', AnsweredBy, MachineDetectionDuration },
      ])
    },
  )

  t.test('a media stream carries the far end’s audio, and its start and stop messages', { buffered: true }, async t => {
    const frames: { event: string; media?: { payload: string } }[] = []
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
    t.teardown(() => server.close())
    server.on('connection', socket => socket.on('message', data => frames.push(JSON.parse(String(data)))))
    await new Promise<void>(resolve => server.once('listening', resolve))
    const { port } = server.address() as AddressInfo
    const web = await webServer(t, { '/stream': '' })
    const stream = `<Stream url="ws://127.0.0.1:${port}/" statusCallback="${web.url}/stream"/>`
    const markup = `<Response><Start>${stream}</Start><Pause length="600"/></Response>`
    const sid = await create(`${SANDBOX}4711`, { InlineMarkup: markup })
    await until('media came', () => frames.filter(frame => frame.event === 'media').length >= 20)
    await w.voice('POST', `/Calls/${sid}.json`, { Status: 'completed' })
    await w.ended(sid)
    await until('the stream has stopped', () => frames.some(frame => frame.event === 'stop'))
    t.same(
      frames.slice(0, 2).map(frame => frame.event),
      ['connected', 'start'],
    )
    await until('both callbacks', () => web.requests.length >= 2)
    t.same(
      web.requests.map(request => request.fields.get('StreamEvent')),
      ['stream-started', 'stream-stopped'],
    )
  })

  t.test('no call, dialog, port or lease remains', async t => {
    await w.untilNone('live_calls', 'media_legs', 'media_listeners')
    t.same(await w.state.db.selectFrom('lease').select('call_sid').where('ended_at', 'is', null).execute(), [])
  })
})

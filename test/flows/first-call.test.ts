import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { levelDbm0, readWavFile, strongestHz, tone, wavBytes } from '../support/audio.ts'
import t from '../support/harness/index.ts'
import { sharedWorld } from '../support/shared-world.ts'
import { until } from '../support/wait.ts'
import { webServer } from '../support/web.ts'

// A newcomer's first steps: HTTP requests place real SIP calls to the sandbox carrier, with real audio.

const SANDBOX = '+234803000'

t.test('first calls by REST', async t => {
  const w = await sharedWorld(t)
  // The tests mostly wait, each for its own calls. The last one waits for all.
  t.jobs = 4
  const call = async (fields: Record<string, string | string[]>): Promise<string> => {
    const { status, body } = await w.voice('POST', '/Calls.json', { From: w.numbers[0] ?? '', ...fields })
    if (status !== 201) throw new Error(`create: ${status} ${JSON.stringify(body)}`)
    return body.sid
  }
  const recordings = async (sid: string): Promise<{ wav: ReturnType<typeof readWavFile>; sid: string }[]> => {
    // A recording is completed shortly after its call.
    const body = await until('every recording is completed', async () => {
      const { body } = await w.voice('GET', `/Calls/${sid}/Recordings.json`)
      return body.recordings.every(({ status }: { status: string }) => status === 'completed') && body
    })
    return Promise.all(
      body.recordings.map(async (recording: { sid: string }) => {
        const file = join(w.data_dir, `${recording.sid}.test.wav`)
        writeFileSync(file, (await w.voice('GET', `/Recordings/${recording.sid}.wav`)).bytes)
        return { wav: readWavFile(file), sid: recording.sid }
      }),
    )
  }

  t.test('a document speaks to the sandbox carrier, gathers its keys and records it', { buffered: true }, async t => {
    const markup = `<Response><Say>Hello from Strowger.</Say><Gather timeout="1" numDigits="4"/>
      <Record maxLength="4" playBeep="false" timeout="0" trim="do-not-trim"/></Response>`
    const sid = await call({ To: `${SANDBOX}0001`, InlineMarkup: markup })
    const ended = await w.ended(sid)
    t.match(ended, { status: 'completed', direction: 'outbound-api', to: `${SANDBOX}0001` })
    t.ok(Number(ended.duration) >= 5, `lasted ${ended.duration} s`)
    const [recording] = await recordings(sid)
    const samples = recording?.wav.channels[0] ?? new Int16Array(1)
    t.ok(Math.abs((recording?.wav.duration_ms ?? 0) - 4000) < 300, `length ${recording?.wav.duration_ms} ms`)
    t.ok(levelDbm0(samples) > -40, `speech can be heard: ${levelDbm0(samples).toFixed(1)} dBm0`)
  })

  t.test(
    'the recording has the sandbox carrier’s tone, and is served whole, by range, or refused',
    { buffered: true },
    async t => {
      const sid = await call({
        To: `${SANDBOX}4711`,
        InlineMarkup: '<Response><Record maxLength="3" playBeep="false" timeout="0" trim="do-not-trim"/></Response>',
      })
      t.equal((await w.ended(sid)).status, 'completed')
      const [recording] = await recordings(sid)
      t.equal(strongestHz(recording?.wav.channels[0] ?? new Int16Array(1), recording?.wav.rate_hz), 440)
      const path = `/Recordings/${recording?.sid}.wav`
      const whole = await w.voice('GET', path)
      t.equal(whole.status, 200)
      t.equal(whole.headers.get('accept-ranges'), 'bytes')
      t.equal(whole.bytes.subarray(0, 4).toString(), 'RIFF')
      const wrong = await fetch(`${w.base_url}/2010-04-01/Accounts/${w.account_sid}${path}`)
      t.equal(wrong.status, 401)
      const part = await fetch(`${w.base_url}/2010-04-01/Accounts/${w.account_sid}${path}`, {
        headers: {
          authorization: `Basic ${Buffer.from(`${w.account_sid}:${w.auth_token}`).toString('base64')}`,
          range: 'bytes=4-7',
        },
      })
      t.equal(part.status, 206)
      t.same(Buffer.from(await part.arrayBuffer()), whole.bytes.subarray(4, 8))
    },
  )

  t.test('each outcome of the sandbox carrier gives its call status', { buffered: true }, async t => {
    const markup = '<Response><Pause length="1"/></Response>'
    const expected: [string, string, Record<string, string>][] = [
      ['0002', 'busy', {}],
      ['0003', 'no-answer', { Timeout: '2' }],
      ['0005', 'failed', {}],
      ['0007', 'failed', {}],
      ['0006', 'completed', {}],
      ['0008', 'completed', {}],
      ['0009', 'completed', {}],
    ]
    await Promise.all(
      expected.map(async ([ending, status, extra]) => {
        const sid = await call({ To: `${SANDBOX}${ending}`, InlineMarkup: markup, ...extra })
        t.equal((await w.ended(sid)).status, status, ending)
        const cdr = await w.state.db.selectFrom('cdr').selectAll().where('call_sid', '=', sid).executeTakeFirst()
        t.equal(cdr?.status, status, `CDR of ${ending}`)
      }),
    )
  })

  t.test('cancels a ringing call, and hangs up an answered one', { buffered: true }, async t => {
    const markup = '<Response><Pause length="30"/></Response>'
    const ringing = await call({ To: `${SANDBOX}0003`, InlineMarkup: markup })
    await until('it rings', async () => (await w.voice('GET', `/Calls/${ringing}.json`)).body.status === 'ringing')
    t.equal((await w.voice('POST', `/Calls/${ringing}.json`, { Status: 'canceled' })).status, 200)
    t.equal((await w.ended(ringing)).status, 'canceled')
    const talking = await call({ To: `${SANDBOX}0008`, InlineMarkup: markup })
    await until('it talks', async () => (await w.voice('GET', `/Calls/${talking}.json`)).body.status === 'in-progress')
    t.equal((await w.voice('DELETE', `/Calls/${talking}.json`)).status, 204)
    t.equal((await w.ended(talking)).status, 'completed')
  })

  t.test(
    'the far end’s keys reach the action, whose document continues; callbacks arrive in order',
    { buffered: true },
    async t => {
      const web = await webServer(t, {
        '/start': `<Response><Gather action="/digits" timeout="8" finishOnKey="#"><Play loop="20">/tone.wav</Play>
          </Gather><Say>too late</Say></Response>`,
        '/digits': '<Response><Redirect>/last</Redirect></Response>',
        '/last': '<Response><Play>/tone.wav</Play><Hangup/></Response>',
        '/tone.wav': { type: 'audio/wav', body: wavBytes(8000, tone(700, 500)) },
        '/status': { status: 204 },
      })
      const sid = await call({
        To: `${SANDBOX}0004`,
        Url: `${web.url}/start`,
        StatusCallback: `${web.url}/status`,
        StatusCallbackEvent: ['initiated', 'ringing', 'answered', 'completed'],
      })
      t.equal((await w.ended(sid)).status, 'completed')
      const gathered = await web.seen('/digits')
      t.match(Object.fromEntries(gathered.fields), { Digits: '1234', CallSid: sid, CallStatus: 'in-progress' })
      t.ok(gathered.headers['x-twilio-signature'], 'the request is signed')
      const statuses = await until('the last callback', () => {
        const seen = web.requests.filter(request => request.path === '/status')
        return seen.some(request => request.fields.get('CallStatus') === 'completed') && seen
      })
      const steps = statuses.map(request => request.fields.get('CallStatus'))
      t.same(steps, ['initiated', 'in-progress', 'completed'])
      t.same(
        statuses.map(request => request.fields.get('SequenceNumber')),
        statuses.map((_request, index) => String(index)),
      )
    },
  )

  t.test('a document dials a second call, and both hear each other', { buffered: true }, async t => {
    const sid = await call({
      To: `${SANDBOX}0001`,
      InlineMarkup: `<Response><Dial timeLimit="3">${SANDBOX}4712</Dial></Response>`,
    })
    t.equal((await w.ended(sid)).status, 'completed')
    const children = async () => (await w.voice('GET', `/Calls.json?ParentCallSid=${sid}`)).body.calls
    // Each call writes its own end.
    for (const child of await children()) await w.ended(child.sid)
    const calls = await children()
    t.match(calls, [{ direction: 'outbound-dial', status: 'completed', parent_call_sid: sid }])
    t.ok(Number(calls[0].duration) >= 2)
  })

  t.test('an invalid request gets its error number', { buffered: true }, async t => {
    const refused = async (fields: Record<string, string>, status: number, code: number): Promise<void> => {
      const reply = await w.voice('POST', '/Calls.json', fields)
      t.match({ status: reply.status, body: reply.body }, { status, body: { code } }, JSON.stringify(fields))
    }
    const From = w.numbers[0] ?? ''
    const To = `${SANDBOX}0001`
    await refused({ From, InlineMarkup: '<Response/>' }, 400, 21201)
    await refused({ From: '+2348030000001', To, InlineMarkup: '<Response/>' }, 400, 21210)
    await refused({ From, To, InlineMarkup: '<Response>' }, 400, 12100)
    await refused({ From, To, ApplicationSid: 'AP1', InlineMarkup: '<Response/>' }, 400, 21605)
    await refused({ From, To }, 400, 21205)
  })

  t.test('nothing remains when all calls have ended', async t => {
    // A dialog remains until the transaction of its BYE has ended.
    await w.untilNone('edge_dialogs', 'sandbox_calls')
    const open = await w.state.db.selectFrom('call').select('sid').where('ended_at', 'is', null).execute()
    t.same(open, [])
  })
})

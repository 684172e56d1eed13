import { mkdirSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { dirname, join } from 'node:path'
import { partOf } from '../../../../control/http/range.ts'
import { liveChange } from '../../../../control/live/live-change.ts'
import { ending } from '../../../../core/domain/calls/endings.ts'
import { readCallRequest } from '../../../../core/domain/calls/request.ts'
import { iso } from '../../../../core/runtime/clock.ts'
import { newId } from '../../../../core/runtime/ids.ts'
import { recordExchange } from '../../../../core/state/calls/calls.ts'
import { finishCall, writeCall } from '../../../../core/state/calls/running-calls.ts'
import { putSandboxCarrier } from '../../../../core/state/configuration/bootstrap.ts'
import type { CallTable } from '../../../../core/state/index.ts'
import { type ControlPlane, controlPlane, type Form } from '../../../support/control-plane.ts'
import t from '../../../support/harness/index.ts'

const FROM = '+2342010000001'
const TO = '+2348030000001'
const GOOD = { To: TO, From: FROM, Twiml: '<Response><Say>hello</Say></Response>' }

/** Starts a control plane with a carrier, so that calls have a route. */
async function plane(t: Parameters<typeof controlPlane>[0]): Promise<ControlPlane> {
  const w = await controlPlane(t)
  await putSandboxCarrier(w.state, { machine_id: 'mac_1', host: '127.0.0.1', port: 5999, now: iso(Date.now()) })
  return w
}

const accountPath = (w: ControlPlane): string => `/2010-04-01/Accounts/${w.demo.account_sid}`
const basic = (user: string, password: string): Record<string, string> => ({
  Authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
})

async function created(w: ControlPlane, form: Form = GOOD): Promise<string> {
  const { status, body } = await w.voice('POST', '/Calls.json', form)
  if (status !== 201) throw new Error(JSON.stringify(body))
  return body.sid
}

const row = (w: ControlPlane, sid: string) =>
  w.state.db.selectFrom('call').selectAll().where('sid', '=', sid).executeTakeFirstOrThrow()

const commands = async (w: ControlPlane, sid: string) =>
  (await w.state.db.selectFrom('call_command').selectAll().where('call_sid', '=', sid).orderBy('id').execute()).map(
    ({ kind, payload, done_at, outcome }) => ({ kind, payload: JSON.parse(payload), done: done_at !== null, outcome }),
  )

/** Advances the call to the status `to`, as a signaling node would. */
async function advance(w: ControlPlane, sid: string, to: CallTable['status'], now = Date.now()): Promise<void> {
  await w.state.transaction(async trx => {
    await trx
      .updateTable('call_command')
      .set({ taken_by: 'node_x', done_at: iso(now) })
      .where('call_sid', '=', sid)
      .execute()
    const initiated = { step: 'initiated', at_ms: now, changes: { node_id: 'node_x' } } as const
    await writeCall(trx, sid, [initiated])
    if (to === 'queued') return
    await writeCall(trx, sid, [{ step: 'ringing', at_ms: now }])
    if (to === 'ringing') return
    await writeCall(trx, sid, [{ step: 'answered', at_ms: now }])
    if (to === 'in-progress') return
    const final = ending({ cause: 'called_hung_up', answered: true })
    await finishCall(trx, sid, { ending: final, ended_ms: now + 65_900, pdd_ms: 10, media: null })
  })
}

t.test('credentials are checked in the documented order, each failure with its own error', async t => {
  const w = await plane(t)
  const sid = w.demo.account_sid
  const other = newId.account()
  const ask = (path: string, headers: Record<string, string>) => w.ask('GET', path, { key: null, headers })
  const calls = `${accountPath(w)}/Calls.json`
  for (const [name, headers] of Object.entries({
    'no header': {},
    'a bearer key': { Authorization: `Bearer ${w.key}` },
    'another account': basic(other, w.demo.auth_token),
    'no colon': { Authorization: `Basic ${Buffer.from(sid).toString('base64')}` },
    'an API key as user name': basic(w.key, 'x'),
    rubbish: { Authorization: 'Basic !!!!' },
  })) {
    const { status, body, headers: got } = await ask(calls, headers)
    t.equal(status, 401, name)
    t.equal(got.get('content-type'), 'application/problem+json', name)
    t.match(got.get('www-authenticate'), /^Basic realm=/, name)
    t.same(
      body,
      {
        type: 'http://strowger.test/docs/errors/unauthenticated',
        title: 'Unauthorized',
        status: 401,
        detail: 'Basic authentication with the AccountSid as username is required.',
        code: 'unauthenticated',
        request_id: got.get('x-request-id'),
        message: 'Basic authentication with the AccountSid as username is required.',
        more_info: 'http://strowger.test/docs/errors/unauthenticated',
      },
      name,
    )
  }
  const unknown = await ask(`/2010-04-01/Accounts/${other}/Calls.json`, basic(other, w.demo.auth_token))
  t.match(unknown, { status: 404, body: { code: 'voice_route_not_proxied', status: 404, title: 'Not Found' } })
  for (const token of [`${w.demo.auth_token}x`, '', w.key]) {
    const { status, body, headers } = await ask(calls, basic(sid, token))
    t.equal(status, 401)
    t.same(Object.keys(body), ['code', 'message', 'more_info', 'status'])
    t.match(body, { code: 20003, status: 401, more_info: 'http://strowger.test/docs/errors/20003' })
    t.match(headers.get('www-authenticate'), /^Basic/)
  }
  t.match(await ask(`${accountPath(w)}/Nowhere.json`, basic(sid, 'wrong')), { status: 401, body: { code: 20003 } })
  t.match(await ask(calls.replace(sid, sid.toUpperCase()), basic(sid, w.demo.auth_token)), {
    status: 404,
    body: { code: 'voice_route_not_proxied' },
  })
  await w.state.db.updateTable('voice_account').set({ status: 'revoked' }).execute()
  t.match(await w.voice('GET', '/Calls.json'), { status: 404, body: { code: 'voice_route_not_proxied' } })
})

t.test('unsupported paths, methods, sids and content types get their documented errors', async t => {
  const w = await plane(t)
  const sid = await created(w)
  for (const path of [
    '/Calls.xml',
    '/Calls.csv',
    '/Messages.json',
    '',
    '/',
    `/Calls/${sid}/Streams.json`,
    `/Calls/${sid}.xml`,
  ])
    t.match(await w.voice('GET', path), { status: 404, body: { code: 'voice_route_not_proxied' } }, path)
  t.match(await w.voice('GET', `/Recordings/${newId.recording()}.mp3`), { body: { code: 'voice_route_not_proxied' } })
  for (const bad of [`CA${'A'.repeat(32)}`, 'CA1', sid.toUpperCase(), `${sid}0`, '..%2f..', 'PN0'])
    t.match(await w.voice('GET', `/Calls/${bad}.json`), { status: 404, body: { code: 20404, status: 404 } }, bad)
  t.match(await w.voice('GET', `/Calls/${newId.call()}.json`), { status: 404, body: { code: 20404 } })
  t.match(await w.voice('GET', `/Calls/${newId.call()}/Recordings.json`), { status: 404, body: { code: 20404 } })
  t.match(await w.voice('GET', `/Calls/${newId.call()}/Events.json`), { status: 404, body: { code: 20404 } })
  const patched = await w.voice('PATCH', `/Calls/${sid}.json`, { Status: 'completed' })
  t.match(patched, { status: 405, body: { code: 20004, status: 405 } })
  t.equal(patched.headers.get('allow'), 'GET, POST, DELETE')
  const audio = await w.voice('POST', `/Recordings/${newId.recording()}.wav`, {})
  t.equal(audio.status, 405)
  t.equal(audio.headers.get('allow'), 'GET, HEAD')
  const json = { 'Content-Type': 'application/json' }
  const auth = basic(w.demo.account_sid, w.demo.auth_token)
  const post = (raw: string, headers: Record<string, string>) =>
    w.ask('POST', `${accountPath(w)}/Calls.json`, { key: null, raw, headers: { ...auth, ...headers } })
  t.match(await post('{}', json), { status: 415, body: { code: 20422 } })
  const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
  t.match(await post(`To=${'1'.repeat(1024 * 1024)}`, form), { status: 413, body: { code: 20413 } })
  t.match(await post('', form), { status: 400, body: { code: 21201 } }, 'an empty form lacks To')
})

t.test('creating a call with every field queues the call and a command, and wakes signaling', async t => {
  const w = await plane(t)
  let rings = 0
  w.bus.on('commands', () => {
    rings += 1
  })
  const { status, body, headers } = await w.voice('POST', '/Calls.json', {
    To: '2348030000001',
    From: '2342010000001',
    CallerId: '2342010000002',
    Url: 'https://user:pw@app.example.test/voice?x=1#rc=2',
    Twiml: '<not parsed',
    Method: 'get',
    FallbackUrl: 'https://app.example.test/fallback',
    FallbackMethod: 'PUT',
    StatusCallback: 'http://app.example.test/status',
    StatusCallbackMethod: 'GET',
    StatusCallbackEvent: ['initiated answered', 'unheard-of'],
    Timeout: '9999',
    TimeLimit: '30',
    SendDigits: 'w1A#',
    Record: 'true',
    RecordingChannels: 'dual',
    RecordingStatusCallback: 'http://app.example.test/recording',
    RecordingStatusCallbackEvent: 'in-progress completed',
    MachineDetection: 'Enable',
    SipAuthUsername: 'ignored',
  })
  t.equal(status, 201)
  t.match(headers.get('x-request-id'), /^req_[0-9a-f]{32}$/)
  const uri = `${accountPath(w)}/Calls/${body.sid}`
  t.match(body.sid, /^CA[0-9a-f]{32}$/)
  t.match(body.date_created, /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d \+0000$/)
  t.same(body, {
    sid: body.sid,
    account_sid: w.demo.account_sid,
    api_version: '2010-04-01',
    annotation: null,
    answered_by: null,
    caller_name: null,
    date_created: body.date_created,
    date_updated: body.date_created,
    direction: 'outbound-api',
    duration: null,
    end_time: null,
    forwarded_from: null,
    from: '2342010000001',
    from_formatted: '2342010000001',
    group_sid: null,
    parent_call_sid: null,
    phone_number_sid: (await w.state.db.selectFrom('number').select('id').where('e164', '=', FROM).executeTakeFirst())
      ?.id,
    price: null,
    price_unit: null,
    queue_time: '0',
    start_time: null,
    status: 'queued',
    subresource_uris: { recordings: `${uri}/Recordings.json`, events: `${uri}/Events.json` },
    to: '2348030000001',
    to_formatted: '2348030000001',
    trunk_sid: null,
    uri: `${uri}.json`,
  })
  t.same(readCallRequest((await row(w, body.sid)).request), {
    url: 'https://user:pw@app.example.test/voice?x=1#rc=2',
    method: 'GET',
    markup: null,
    fallback_url: 'https://app.example.test/fallback',
    fallback_method: 'POST',
    status_callback: 'http://app.example.test/status',
    status_callback_method: 'GET',
    status_callback_events: ['initiated', 'answered'],
    timeout_seconds: 600,
    caller_id: '2342010000002',
    time_limit_seconds: 30,
    send_digits: 'w1A#',
    record: {
      channels: 'dual',
      track: 'both',
      trim: false,
      status_callback: 'http://app.example.test/recording',
      status_callback_method: 'POST',
      status_callback_events: ['in-progress', 'completed'],
    },
    machine_detection: {
      mode: 'Enable',
      timeout_seconds: 30,
      speech_threshold_ms: 2400,
      speech_end_threshold_ms: 1200,
      silence_timeout_ms: 5000,
      asynchronous: false,
      callback: null,
      callback_method: 'POST',
    },
  })
  t.same(await commands(w, body.sid), [{ kind: 'originate', payload: {}, done: false, outcome: null }])
  t.equal(rings, 1)
  t.match(await w.voice('GET', `/Calls/${body.sid}`), { status: 200, body: { sid: body.sid } }, 'without the suffix')
})

t.test('creating a call reports the first error in the documented order', async t => {
  const w = await plane(t)
  const long = `<Response>${'<Say>x</Say>'.repeat(400)}</Response>`
  const cases: [string, Form, number, number][] = [
    ['To missing', { From: 'x', ApplicationSid: 'AP' }, 400, 21201],
    ['To empty', { ...GOOD, To: '' }, 400, 21201],
    ['To too short', { ...GOOD, To: '+123456', From: '' }, 400, 21211],
    ['To a SIP URI', { ...GOOD, To: 'sip:bob@example.test' }, 400, 21211],
    ['From missing', { To: TO }, 400, 21213],
    ['From not a number', { ...GOOD, From: 'anonymous', ApplicationSid: 'AP' }, 400, 21212],
    ['ApplicationSid', { ...GOOD, From: '+15550001111', ApplicationSid: newId.application() }, 400, 21605],
    ['From not owned', { ...GOOD, From: '+15550001111', CallerId: 'x' }, 400, 21210],
    ['CallerId not a number', { ...GOOD, CallerId: 'anonymous' }, 400, 13214],
    ['CallerId in another format', { ...GOOD, CallerId: '2342010000002' }, 400, 13214],
    ['To and From in different formats', { ...GOOD, From: '2342010000001', CallerId: FROM }, 400, 13214],
    ['CallerId not owned', { ...GOOD, CallerId: '+15550001111', Twiml: '' }, 400, 21210],
    ['no document', { To: TO, From: FROM }, 400, 21205],
    ['Url relative', { ...GOOD, Url: '/voice' }, 400, 21205],
    ['Url of another scheme', { ...GOOD, Url: 'ftp://example.test/' }, 400, 21205],
    ['markup that does not parse', { ...GOOD, Twiml: '<Response><Say></Response>' }, 400, 12100],
    ['markup of another root', { ...GOOD, Twiml: '<Reply/>' }, 400, 12100],
    ['markup by its neutral name', { To: TO, From: FROM, InlineMarkup: '<Response>' }, 400, 12100],
    ['markup too long', { ...GOOD, Twiml: long }, 400, 12100],
    ['StatusCallback', { ...GOOD, StatusCallback: 'nowhere' }, 400, 21205],
    ['Timeout', { ...GOOD, Timeout: 'soon' }, 400, 21208],
    ['TimeLimit', { ...GOOD, TimeLimit: '0' }, 400, 13216],
    ['SendDigits too long', { ...GOOD, SendDigits: '1'.repeat(33) }, 400, 21206],
    ['SendDigits', { ...GOOD, SendDigits: '1E' }, 400, 21206],
    ['Record', { ...GOOD, Record: 'yes' }, 400, 20001],
    ['RecordingChannels', { ...GOOD, Record: 'true', RecordingChannels: 'stereo' }, 400, 20001],
    ['RecordingTrack', { ...GOOD, Record: 'true', RecordingTrack: 'all' }, 400, 20001],
    ['Trim', { ...GOOD, Record: 'true', Trim: 'x' }, 400, 20001],
    ['RecordingStatusCallbackEvent', { ...GOOD, Record: 'true', RecordingStatusCallbackEvent: 'end' }, 400, 20001],
    ['Record without consent', { ...GOOD, Record: 'true' }, 403, 20403],
    ['MachineDetection', { ...GOOD, MachineDetection: 'true' }, 400, 21234],
    ['AsyncAmd', { ...GOOD, MachineDetection: 'Enable', AsyncAmd: 'yes' }, 400, 20001],
    ['MachineDetectionTimeout', { ...GOOD, MachineDetection: 'Enable', MachineDetectionTimeout: '1' }, 400, 21234],
    ['To without a known country code', { ...GOOD, To: '+9990000000' }, 400, 21211],
  ]
  await w.state.db.deleteFrom('recording_consent').execute()
  for (const [name, form, status, code] of cases) {
    const answer = await w.voice('POST', '/Calls.json', form)
    t.match(answer, { status, body: { code, status } }, name)
    t.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8', name)
  }
  t.same(await w.state.db.selectFrom('call').selectAll().execute(), [], 'nothing was queued')
  const exact = `<Response><Say>${'\u{1f600}'.repeat(4000 - '<Response><Say></Say></Response>'.length)}</Say></Response>`
  t.equal(
    (await w.voice('POST', '/Calls.json', { ...GOOD, Twiml: exact })).status,
    201,
    'the limit counts characters, not UTF-16 units',
  )
  t.equal((await w.voice('POST', '/Calls.json', { ...GOOD, MachineDetection: 'Disable' })).status, 201, 'not wanted')
  t.equal(
    (await w.voice('POST', '/Calls.json', { ...GOOD, From: FROM.slice(1) })).status,
    201,
    'ownership compares only the digits',
  )
  t.match(
    (await w.voice('POST', '/Calls.json', { ...GOOD, To: GOOD.To.replace('+', ' ') })).body,
    { code: 21211, message: /A plus sign is written %2B in a form/ },
    'a plus sign that the client did not encode',
  )
  t.match(
    (await w.voice('POST', '/Calls.json', { ...GOOD, Twiml: '<Response><Say>x</Response>' })).body,
    { code: 12100, message: /unexpected close tag\.$/ },
    'one full stop',
  )
})

t.test('a create that admission refuses gets the refusal at once', async t => {
  const w = await controlPlane(t)
  t.match(await w.voice('POST', '/Calls.json', GOOD), {
    status: 400,
    body: { code: 21214, details: { reason: 'no_route' } },
  })
  await putSandboxCarrier(w.state, { machine_id: 'mac_1', host: '127.0.0.1', port: 5999, now: iso(Date.now()) })
  const ceiling = { project_id: w.demo.project_id, cps: null, daily_spend_cap_minor: null, velocity_cap_minor: null }
  const none = { max_call_duration_seconds: null, max_destination_rate_minor: null, revision: 1, updated_at: iso(0) }
  await w.state.db
    .insertInto('project_ceiling')
    .values({ ...ceiling, ...none, concurrency: 0 } as never)
    .execute()
  t.match(await w.voice('POST', '/Calls.json', GOOD), {
    status: 429,
    body: { code: 20429, details: { reason: 'concurrency_exceeded' } },
  })
  await w.state.db.updateTable('project_ceiling').set({ concurrency: null, cps: 0 }).execute()
  t.equal((await w.voice('POST', '/Calls.json', GOOD)).status, 201, 'a call over the CPS limit waits in the queue')
  await w.state.db.updateTable('project').set({ status: 'disabled' }).execute()
  t.match(await w.voice('POST', '/Calls.json', GOOD), { status: 403, body: { code: 10001 } })
})

t.test('two creates with the same Idempotency-Key dial once', async t => {
  const w = await plane(t)
  const key = { 'Idempotency-Key': 'once' }
  const [first, second] = await Promise.all([
    w.voice('POST', '/Calls.json', GOOD, key),
    w.voice('POST', '/Calls.json', GOOD, key),
  ])
  t.equal(first.status, 201)
  t.same(first.body, second.body)
  t.equal((await w.state.db.selectFrom('call').selectAll().execute()).length, 1)
  t.match(await w.voice('POST', '/Calls.json', { ...GOOD, Timeout: '5' }, key), {
    body: { details: { reason: 'idempotency_key_reused' } },
  })
})

t.test(
  'page sizes are clamped, and page links keep filters and neither repeat nor lose calls as new ones arrive',
  async t => {
    const w = await plane(t)
    const sids: string[] = []
    for (let at = 0; at < 7; at++) sids.unshift(await created(w, { ...GOOD, To: `+23480300000${10 + at}` }))
    const { body: all } = await w.voice('GET', '/Calls.json')
    t.same(
      all.calls.map((call: { sid: string }) => call.sid),
      sids,
      'newest first',
    )
    t.match(all, { uri: `${accountPath(w)}/Calls.json`, page: 0, page_size: 50 })
    t.notOk('next_page_uri' in all)
    t.notOk('previous_page_uri' in all)
    const { body: first } = await w.voice('GET', '/Calls.json?PageSize=3')
    t.equal(first.first_page_uri, `${accountPath(w)}/Calls.json?PageSize=3&Page=0`)
    const newcomer = await created(w)
    const { body: second } = await w.voice('GET', first.next_page_uri)
    t.same(
      second.calls.map((call: { sid: string }) => call.sid),
      sids.slice(3, 6),
    )
    t.equal(second.page, 1)
    const { body: third } = await w.voice('GET', second.next_page_uri)
    t.same(
      third.calls.map((call: { sid: string }) => call.sid),
      sids.slice(6),
    )
    t.notOk('next_page_uri' in third)
    const { body: back } = await w.voice('GET', third.previous_page_uri)
    t.same(back.calls, second.calls)
    const { body: start } = await w.voice('GET', back.previous_page_uri)
    t.same(start.calls, first.calls, 'the link leads back to the same calls, without the new one')
    t.equal((await w.voice('GET', '/Calls.json?page=0&page_size=1')).body.calls[0].sid, newcomer)
    t.match((await w.voice('GET', '/Calls.json?PageSize=1000&Page=-3')).body, { page: 0, page_size: 100 })
    t.match((await w.voice('GET', '/Calls.json?PageSize=0')).body, { page_size: 1 })
    t.match((await w.voice('GET', '/Calls.json?Page=900')).body, { calls: [], page: 900 })
    t.match(await w.voice('GET', '/Calls.json?PageSize=ten'), { status: 400, body: { code: 20001 } })
    t.match(await w.voice('GET', '/Calls.json?PageToken=x'), { status: 400, body: { code: 21481 } })
    t.match(await w.voice('GET', '/Calls.json?Status=unheard-of'), { status: 400, body: { code: 20001 } })

    // Both calls get the same day, even around midnight.
    const now = Date.now()
    for (const sid of sids.slice(1, 3)) await advance(w, sid, 'in-progress', now)
    const seen = async (query: string) =>
      (await w.voice('GET', `/Calls.json?${query}`)).body.calls?.map((call: { sid: string }) => call.sid)
    t.same(await seen('Status=in-progress'), sids.slice(1, 3))
    t.same(await seen('To=2348030000016'), [sids[0]])
    t.same(await seen('From=%2B2349999999999'), [])
    t.same(await seen('To=+2348030000016'), [sids[0]], 'a plus sign that is not written %2B')
    const today = iso(now).slice(0, 10)
    const tomorrow = iso(now + 86_400_000).slice(0, 10)
    t.same(await seen(`StartTime=${today}`), sids.slice(1, 3), 'calls without a start time are left out')
    t.same(await seen(`StartTime%3C=${today}`), sids.slice(1, 3))
    t.same(await seen(`StartTime%3E=${tomorrow}`), [])
    t.same(await seen(`StartTime%3E=${today}T00:00:00Z&Status=in-progress`), sids.slice(1, 3))
    t.same(await seen(`StartTime%3E=${today}T00:00:00+00:00&Status=in-progress`), sids.slice(1, 3))
    t.match(await w.voice('GET', '/Calls.json?StartTime=yesterday'), { status: 400, body: { code: 20001 } })
    const { body: filtered } = await w.voice('GET', '/Calls.json?Status=in-progress&PageSize=1')
    const { body: rest } = await w.voice('GET', filtered.next_page_uri)
    t.same([filtered.calls[0].sid, rest.calls[0].sid], sids.slice(1, 3))
  },
)

t.test('the status of a call and a pending end decide whether it accepts a change', async t => {
  const rows: [Parameters<typeof liveChange>, ReturnType<typeof liveChange>][] = [
    [['redirect', 'in-progress', false], { command: 'redirect' }],
    [['redirect', 'in-progress', true], { refused: true }],
    [['redirect', 'queued', false], { refused: true }],
    [['redirect', 'ringing', false], { refused: true }],
    [['redirect', 'completed', false], { refused: true }],
    [['complete', 'in-progress', false], { command: 'hangup' }],
    [['complete', 'in-progress', true], { command: null }],
    [['complete', 'queued', false], { command: 'hangup' }],
    [['complete', 'ringing', false], { command: 'hangup' }],
    [['complete', 'failed', false], { refused: true }],
    [['cancel', 'queued', false], { command: 'cancel' }],
    [['cancel', 'ringing', false], { command: 'cancel' }],
    [['cancel', 'ringing', true], { command: null }],
    [['cancel', 'in-progress', false], { refused: true }],
    [['cancel', 'busy', false], { refused: true }],
    [['delete', 'in-progress', false], { command: 'hangup' }],
    [['delete', 'ringing', false], { command: 'hangup' }],
    [['delete', 'no-answer', false], { command: null }],
    [['delete', 'canceled', true], { command: null }],
  ]
  for (const [given, expected] of rows) t.same(liveChange(...given), expected, given.join(' '))
})

t.test('commands redirect and end a live call; a queued call that no node has taken ends at once', async t => {
  const w = await plane(t)
  const update = (sid: string, form: Form) => w.voice('POST', `/Calls/${sid}.json`, form)
  const live = await created(w)
  await advance(w, live, 'in-progress')
  for (const [name, form] of Object.entries<Form>({
    none: {},
    two: { Url: 'http://a.test/', Status: 'completed' },
    'an unknown status': { Status: 'busy' },
  }))
    t.match(await update(live, form), { status: 400, body: { code: 20001 } }, name)
  t.match(await update(live, { Twiml: '<Response' }), { status: 400, body: { code: 12100 } })
  t.match(await update(live, { Url: 'a.test' }), { status: 400, body: { code: 21205 } })
  t.match(await update(live, { Status: 'canceled' }), { status: 400, body: { code: 21220 } })
  t.match(await update(live, { Twiml: '<Response><Pause/></Response>' }), {
    status: 200,
    body: { status: 'in-progress' },
  })
  t.equal((await update(live, { Url: 'http://a.test/', Method: 'GET', StatusCallback: 'http://a.test/s' })).status, 200)
  t.same((await commands(w, live)).slice(1), [
    {
      kind: 'redirect',
      payload: { url: null, method: 'POST', markup: '<Response><Pause/></Response>' },
      done: true,
      outcome: 'replaced',
    },
    { kind: 'redirect', payload: { url: 'http://a.test/', method: 'GET', markup: null }, done: false, outcome: null },
  ])
  t.match(readCallRequest((await row(w, live)).request), { status_callback: 'http://a.test/s' })
  t.equal((await w.voice('DELETE', `/Calls/${live}.json`)).status, 204)
  const again = await w.voice('DELETE', `/Calls/${live}`)
  t.match(again, { status: 204, text: '' })
  t.same(
    (await commands(w, live)).slice(-1).map(({ kind, done }) => [kind, done]),
    [['hangup', false]],
  )
  t.match(
    await update(live, { Url: 'http://a.test/' }),
    { status: 400, body: { code: 21220 } },
    'a redirect does not replace a pending hang-up',
  )

  const ringing = await created(w)
  await advance(w, ringing, 'ringing')
  t.match(await update(ringing, { Url: 'http://a.test/' }), { status: 400, body: { code: 21220 } })
  t.equal((await update(ringing, { Status: 'canceled' })).status, 200)
  t.same(
    (await commands(w, ringing)).map(({ kind }) => kind),
    ['originate', 'cancel'],
  )

  const queued = await created(w, { ...GOOD, StatusCallback: 'http://a.test/status' })
  t.match(await update(queued, { Status: 'completed' }), { status: 200, body: { status: 'canceled', duration: '0' } })
  t.same(
    (await commands(w, queued)).map(({ kind, done }) => [kind, done]),
    [['originate', true]],
    'no node dials it',
  )
  const callbacks = await w.state.db.selectFrom('outbox').select('parameters').where('call_sid', '=', queued).execute()
  t.match(
    callbacks.map(({ parameters }) => JSON.parse(parameters)),
    [{ CallStatus: 'canceled', SequenceNumber: '0' }],
  )
  t.match(await update(queued, { Status: 'completed' }), { status: 400, body: { code: 21220 } })

  const over = await created(w)
  await advance(w, over, 'completed')
  t.match((await w.voice('GET', `/Calls/${over}.json`)).body, { status: 'completed', duration: '65' })
  t.match(await update(over, { Url: 'http://a.test/' }), { status: 400, body: { code: 21220 } })
  t.equal((await w.voice('DELETE', `/Calls/${over}.json`)).status, 204, 'deleting an ended call succeeds')
  t.equal((await w.voice('GET', `/Calls/${over}.json`)).status, 200)
  t.match(await w.voice('DELETE', `/Calls/${newId.call()}.json`), { status: 404, body: { code: 20404 } })
})

t.test('a byte range selects the bytes that RFC 9110 defines', async t => {
  const file = { bytes: 100, etag: '"tag"' }
  const whole = { kind: 'whole' }
  const part = (first: number, last: number) => ({ kind: 'part', first, last })
  const rows: [string | undefined, string | undefined, object][] = [
    [undefined, undefined, whole],
    ['bytes=0-9', undefined, part(0, 9)],
    ['bytes=90-', undefined, part(90, 99)],
    ['bytes=90-1000', undefined, part(90, 99)],
    ['bytes=-10', undefined, part(90, 99)],
    ['bytes=-1000', undefined, part(0, 99)],
    ['bytes=-0', undefined, { kind: 'unsatisfiable' }],
    ['bytes=100-', undefined, { kind: 'unsatisfiable' }],
    ['bytes=5-2', undefined, whole],
    ['bytes=-', undefined, whole],
    ['bytes=0-1,5-6', undefined, whole],
    ['lines=0-1', undefined, whole],
    ['bytes=0-9', '"tag"', part(0, 9)],
    ['bytes=0-9', '"other"', whole],
    ['bytes=0-9', 'W/"tag"', whole],
    ['bytes=0-9', 'Sat, 21 Nov 2026 00:00:00 GMT', whole],
  ]
  for (const [range, if_range, expected] of rows)
    t.same(partOf(range, if_range, file), expected, `${range} ${if_range}`)
})

t.test('recordings are listed, fetched and downloaded, whole and in ranges', async t => {
  const w = await plane(t)
  const call_sid = await created(w)
  t.same((await w.voice('GET', `/Calls/${call_sid}/Recordings.json`)).body.recordings, [])
  const audio = Buffer.from(Array.from({ length: 1000 }, (_, at) => at % 251))
  const [done, running, outside] = [newId.recording(), newId.recording(), newId.recording()]
  const add = (sid: string, changes: object) =>
    w.state.db
      .insertInto('recording')
      .values({
        sid,
        call_sid,
        project_id: w.demo.project_id,
        source: 'RecordVerb',
        channels: 1,
        track: 'inbound',
        status: 'completed',
        file: `recordings/${sid}.wav`,
        started_at: iso(0),
        duration_ms: 2900,
        bytes: audio.length,
        sha256: 'ab'.repeat(32),
        error_number: null,
        created_at: iso(1000),
        updated_at: iso(2000),
        ...changes,
      })
      .execute()
  await add(done, {})
  await add(running, { status: 'in-progress', duration_ms: null, sha256: null, created_at: iso(3000) })
  await add(outside, { file: '../../../etc/passwd', created_at: iso(500) })
  const file = join(w.settings.data_dir, `recordings/${done}.wav`)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, audio)

  const { body } = await w.voice('GET', `/Calls/${call_sid}/Recordings.json`)
  t.same(
    body.recordings.map((one: { sid: string }) => one.sid),
    [running, done, outside],
    'newest first',
  )
  t.notOk('duration' in body.recordings[0], 'an unfinished recording has no duration')
  t.same((await w.voice('GET', `/Recordings/${done}`)).body, {
    sid: done,
    account_sid: w.demo.account_sid,
    call_sid,
    channels: 1,
    source: 'RecordVerb',
    status: 'completed',
    track: 'inbound',
    start_time: iso(0),
    duration: 3,
    format: 'wav',
    date_created: iso(1000),
    date_updated: iso(2000),
    uri: `${accountPath(w)}/Recordings/${done}.json`,
  })

  const wav = (method: string, headers: Record<string, string> = {}, sid = done) =>
    new Promise<{ status: number; headers: Record<string, unknown>; body: Buffer }>((resolve, reject) => {
      const auth = basic(w.demo.account_sid, w.demo.auth_token)
      const url = `${w.base_url}${accountPath(w)}/Recordings/${sid}.wav`
      const asked = request(url, { method, headers: { ...auth, ...headers } }, async answer => {
        const chunks: Buffer[] = []
        for await (const chunk of answer) chunks.push(chunk)
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(chunks) })
      })
      asked.on('error', reject)
      asked.end()
    })
  const all = await wav('GET')
  t.equal(all.status, 200)
  t.same(all.body, audio)
  t.match(all.headers, {
    'content-type': 'audio/wav',
    'content-length': '1000',
    'accept-ranges': 'bytes',
    etag: `"${'ab'.repeat(32)}"`,
    'cache-control': 'private, no-store',
    'last-modified': new Date(2000).toUTCString(),
  })
  const head = await wav('HEAD')
  t.same([head.status, head.body.length], [200, 0])
  for (const name of ['content-type', 'content-length', 'accept-ranges', 'etag', 'last-modified', 'cache-control'])
    t.equal(head.headers[name], all.headers[name], `HEAD has the ${name} of GET`)
  const part = await wav('GET', { Range: 'bytes=10-19', 'If-Range': String(all.headers['etag']) })
  t.equal(part.status, 206)
  t.match(part.headers, { 'content-range': 'bytes 10-19/1000', 'content-length': '10' })
  t.same(part.body, audio.subarray(10, 20))
  t.same((await wav('GET', { Range: 'bytes=10-19', 'If-Range': '"old"' })).body, audio)
  const beyond = await wav('GET', { Range: 'bytes=1000-' })
  t.same([beyond.status, beyond.headers['content-range']], [416, 'bytes */1000'])
  t.equal((await wav('GET', {}, running)).status, 404, 'an unfinished recording has no audio')
  t.equal((await wav('GET', {}, outside)).status, 404, 'a file outside the data folder is not served')
  t.equal((await wav('GET', {}, newId.recording())).status, 404)
  t.equal((await wav('GET', { Authorization: 'Basic eDp5' })).status, 401, 'a download checks the token too')
  await w.state.db.updateTable('recording').set({ project_id: 'prj_other' }).where('sid', '=', done).execute()
  t.equal((await wav('GET')).status, 404, "another project's recording does not exist")
})

t.test('the events of a call are its HTTP exchanges; an account without event history has none', async t => {
  const w = await plane(t)
  const sid = await created(w)
  await recordExchange(
    w.state.db,
    {
      call_sid: sid,
      method: 'POST',
      url: 'https://app.example.test/voice',
      parameters: { CallSid: sid, Digits: '1234' },
      secret: ['Digits'],
      reply: { ok: false, status: 500, duration_ms: 31.4, number: 11217, detail: 'answered with status 500' },
    },
    1000,
  )
  const { status, body } = await w.voice('GET', `/Calls/${sid}/Events.json`)
  t.equal(status, 200)
  t.same(body.events, [
    {
      request: {
        method: 'POST',
        url: 'https://app.example.test/voice',
        parameters: { call_sid: sid, digits: '[secret]' },
      },
      response: {
        response_code: 500,
        request_duration: 31,
        content_type: null,
        response_body: '',
        error_message: 'answered with status 500',
        error_code: 11217,
        date_created: iso(1000),
      },
    },
  ])
  await w.state.db.updateTable('voice_account').set({ call_event_history: 'disabled' }).execute()
  t.same((await w.voice('GET', `/Calls/${sid}/Events.json`)).body.events, [])
})

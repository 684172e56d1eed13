import { FLOWS, simulatedStatus } from '../../../../control/general/simulate.ts'
import { createWindows } from '../../../../control/http/window.ts'
import { readCallRequest } from '../../../../core/domain/calls/request.ts'
import { iso } from '../../../../core/runtime/clock.ts'
import { putSandboxCarrier } from '../../../../core/state/configuration/bootstrap.ts'
import { standingClock } from '../../../support/clock.ts'
import { type ControlPlane, controlPlane } from '../../../support/control-plane.ts'
import t from '../../../support/harness/index.ts'

const CALL = { to: '+2348030000001', message: 'Your code is 4 & 2 < 7' }

const asker = (w: ControlPlane) => {
  const { account_sid, auth_token } = w.demo
  const Authorization = `Basic ${Buffer.from(`${account_sid}:${auth_token}`).toString('base64')}`
  return (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    w.ask(method, path, { key: null, headers: { Authorization, ...headers }, ...(body === undefined ? {} : { body }) })
}

t.test('the general API queues a real call that speaks the message', async t => {
  const w = await controlPlane(t)
  const ask = asker(w)
  await putSandboxCarrier(w.state, { machine_id: 'mac_1', host: '127.0.0.1', port: 5999, now: iso(Date.now()) })
  const { status, body } = await ask('POST', '/api/v1/calls', CALL)
  t.equal(status, 201)
  t.same(Object.keys(body), ['id', 'status', 'to', 'created_at'])
  t.match(body, { id: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, status: 'queued', to: CALL.to })
  t.equal(body.created_at, new Date(body.created_at).toISOString())
  const sid = `CA${body.id.replaceAll('-', '')}`
  t.match((await w.voice('GET', `/Calls/${sid}.json`)).body, { status: 'queued', from: w.demo.numbers[0] })
  const row = await w.state.db.selectFrom('call').selectAll().where('sid', '=', sid).executeTakeFirstOrThrow()
  const markup = '<Response><Say>Your code is 4 &amp; 2 &lt; 7</Say></Response>'
  t.equal(readCallRequest(row.request).markup, markup)
  t.same((await ask('GET', `/api/v1/calls/${body.id}`)).body, body)
  await w.voice('POST', '/Calls.json', { To: CALL.to, From: w.demo.numbers[0] ?? '', Twiml: '<Response/>' })
  t.same((await ask('GET', '/api/v1/calls')).body, { data: [body], page: 0, page_size: 50, has_more: false })
  t.same((await ask('GET', '/sandbox/api/v1/calls')).body.data, [], 'the sandbox has its own calls')
})

t.test('the sandbox simulates calls by test number and time, and places none', async t => {
  const clock = standingClock()
  const w = await controlPlane(t, { clock })
  const ask = asker(w)
  const ids: string[] = []
  for (const to of ['+2348030000001', '+2348030000002', '+2348030000003', '+2348030000005']) {
    const { status, body } = await ask('POST', '/sandbox/api/v1/calls', { ...CALL, to })
    t.match({ status, body }, { status: 201, body: { status: 'queued', to } })
    ids.unshift(body.id)
  }
  clock.move(120_000)
  const statuses = []
  for (const id of ids) statuses.push((await ask('GET', `/sandbox/api/v1/calls/${id}`)).body.status)
  t.same(statuses, ['failed', 'no-answer', 'busy', 'completed'])
  t.same(await w.state.db.selectFrom('call').selectAll().execute(), [], 'no call was placed')
  const first = (await ask('GET', '/sandbox/api/v1/calls?page=0&page_size=3')).body
  const second = (await ask('GET', '/sandbox/api/v1/calls?page=1&page_size=3')).body
  t.match([first.has_more, second.has_more], [true, false])
  t.same(
    [...first.data, ...second.data].map(call => call.id),
    ids,
    'newest first',
  )
  t.equal((await ask('GET', `/api/v1/calls/${ids[0]}`)).status, 404, 'production does not have the sandbox calls')
  for (const flow of Object.values(FLOWS)) t.equal(flow[0]?.[1], 'queued')
  t.equal(simulatedStatus('+10000', -5000), 'queued', 'a clock that steps back leaves the call queued')
  t.equal(simulatedStatus('+10006', 4000), 'in-progress')
})

t.test("errors have this API's format", async t => {
  const w = await controlPlane(t)
  const ask = asker(w)
  const rows: [string, string, unknown, Record<string, string>, number, string][] = [
    ['POST', '/api/v1/calls', CALL, { Authorization: 'Basic eDp5' }, 401, 'unauthenticated'],
    ['POST', '/api/v1/calls', CALL, { Authorization: `Bearer ${w.key}` }, 401, 'unauthenticated'],
    ['POST', '/api/v1/calls', { message: 'x' }, {}, 400, 'invalid_parameter'],
    ['POST', '/api/v1/calls', { ...CALL, to: '08030000001' }, {}, 400, 'invalid_parameter'],
    ['POST', '/api/v1/calls', { ...CALL, message: ' ' }, {}, 400, 'invalid_parameter'],
    ['POST', '/api/v1/calls', { ...CALL, message: 'x'.repeat(3001) }, {}, 400, 'invalid_parameter'],
    ['POST', '/api/v1/calls', { ...CALL, message: 'bell\u0007' }, {}, 400, 'invalid_parameter'],
    ['POST', '/api/v1/calls', { ...CALL, message: 'half \ud83d' }, {}, 400, 'invalid_parameter'],
    ['POST', '/api/v1/calls', { ...CALL, from: '+1' }, {}, 400, 'invalid_parameter'],
    ['POST', '/api/v1/calls', [], {}, 400, 'body_malformed'],
    ['POST', '/api/v1/calls', CALL, { 'Content-Type': 'text/plain' }, 415, 'unsupported_media_type'],
    ['POST', '/api/v1/calls', CALL, {}, 400, 'no_route'],
    ['GET', '/api/v1/calls?page_size=101', undefined, {}, 400, 'invalid_parameter'],
    ['GET', '/api/v1/calls?page=-1', undefined, {}, 400, 'invalid_parameter'],
    ['GET', '/api/v1/calls/x', undefined, {}, 404, 'not_found'],
    ['GET', '/api/v1/nowhere', undefined, {}, 404, 'not_found'],
    ['DELETE', '/api/v1/calls', undefined, {}, 405, 'method_not_allowed'],
  ]
  for (const [method, path, body, headers, status, code] of rows) {
    const answer = await ask(method, path, body, headers)
    t.match(answer, { status, body: { error: { code } } }, `${method} ${path} ${JSON.stringify(body)}`)
    t.same(Object.keys(answer.body), ['error'])
    t.same(Object.keys(answer.body.error), ['code', 'message'])
    t.match(answer.headers.get('x-request-id'), /^req_/)
  }
})

t.test('the rate-limit headers count down to a 429, separately for each environment', async t => {
  // The clock stands still, so that the window does not end before 600 requests are answered.
  const clock = standingClock()
  const w = await controlPlane(t, { clock })
  const ask = asker(w)
  const first = await ask('GET', '/sandbox/api/v1/calls')
  t.match(first.headers.get('x-ratelimit-limit'), /^600$/)
  t.equal(first.headers.get('x-ratelimit-remaining'), '599')
  const reset = Number(first.headers.get('x-ratelimit-reset')) - clock.now() / 1000
  t.ok(reset >= 60 && reset <= 61, `${reset} s`)
  for (let at = 0; at < 599; at += 50)
    await Promise.all(Array.from({ length: Math.min(50, 599 - at) }, () => ask('GET', '/sandbox/api/v1/calls/x')))
  const refused = await ask('GET', '/sandbox/api/v1/calls')
  t.match(refused, { status: 429, body: { error: { code: 'rate_limited' } } })
  t.equal(refused.headers.get('x-ratelimit-remaining'), '0')
  t.ok(Number(refused.headers.get('retry-after')) > 0)
  t.equal((await ask('GET', '/api/v1/calls')).status, 200)
  const windows = createWindows({ requests: 1, seconds: 10 })
  t.ok(windows.take('a', 0, 0).allowed)
  t.notOk(windows.take('a', 9999, 0).allowed)
  t.ok(windows.take('b', 9999, 0).allowed)
  t.ok(windows.take('a', 10_000, 0).allowed, 'a new window has begun')
})

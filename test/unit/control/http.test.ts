import { connect } from 'node:net'
import t from 'tap'
import { type ControlPlane, controlPlane, freshKey } from '../../support/control-plane.ts'

// What the HTTP side does with clients that are broken, slow or hostile, byte by byte.

/** Sends bytes as they are, and gives what comes until the server closes the connection. */
function exchange(w: ControlPlane, bytes: string): Promise<string> {
  const { hostname, port } = new URL(w.base_url)
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const socket = connect(Number(port), hostname, () => socket.write(bytes))
    socket.on('data', chunk => chunks.push(chunk))
    socket.on('error', reject)
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('utf8')))
  })
}

function read(answer: string) {
  const [head = '', body = ''] = answer.split('\r\n\r\n')
  return { status: Number(head.split(' ')[1]), head, problem: JSON.parse(body) as Record<string, unknown> }
}

t.test('framing that two servers could read differently is refused, and the connection ends', async t => {
  const w = await controlPlane(t)
  const start = 'POST /v1/trunks HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
  const cases: Record<string, string> = {
    'a length and chunks': `${start}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    'two lengths': `${start}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`,
    'a negative length': `${start}Content-Length: -2\r\n\r\n{}`,
    'a length that is no number': `${start}Content-Length: 2x\r\n\r\n{}`,
    'chunks inside another coding': `${start}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n`,
    'a blank before the colon': 'GET /v1/projects HTTP/1.1\r\nHost : x\r\n\r\n',
    'no request at all': 'SIP/2.0 200 OK\r\n\r\n',
  }
  for (const [name, bytes] of Object.entries(cases)) {
    const { status, head, problem } = read(await exchange(w, bytes))
    t.equal(status, 400, name)
    t.match(head, /^content-type: application\/problem\+json/im, name)
    t.match(head, /^x-request-id: req_[0-9a-f]{32}/im, name)
    t.match(problem, { status: 400, code: 'body_malformed' }, name)
  }
  const long = read(await exchange(w, `GET /v1/projects HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(40_000)}\r\n\r\n`))
  t.match(long, { status: 431, problem: { status: 431 } })
})

t.test('a client that is slow over its headers or its body is answered, and let go', async t => {
  // Long enough for the one that is not slow, on a machine that has much else to do.
  const w = await controlPlane(t, { patience: { headers_ms: 4000, request_ms: 4000, look_ms: 20 } })
  const head = `POST /v1/trunks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${w.key}\r\nContent-Length: 9\r\n\r\n`
  const slow = ['GET /v1/projects HTTP/1.1\r\nHost: x\r\nX-Slow:', `${head}{"a"`].map(bytes => exchange(w, bytes))
  t.equal((await w.ask('GET', '/v1/projects')).status, 200, 'others are served meanwhile')
  for (const answer of await Promise.all(slow)) t.match(read(answer), { status: 408, problem: { status: 408 } })
})

t.test('a connection without a request is kept longer than proxies keep theirs, so that they close first', async t => {
  const w = await controlPlane(t)
  const { headers } = await w.ask('GET', '/v1/projects')
  const [, seconds] = /^timeout=(\d+)$/.exec(headers.get('keep-alive') ?? '') ?? []
  t.ok(Number(seconds) > 60, `${seconds} s`)
})

t.test('one Authorization header; no answer says what it was made with', async t => {
  const w = await controlPlane(t)
  const twice = `Authorization: Bearer ${w.key}\r\nAuthorization: Bearer ${w.key}\r\n`
  const bytes = `GET /v1/projects HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${twice}\r\n`
  const { status, head, problem } = read(await exchange(w, bytes))
  t.equal(status, 401)
  t.equal(problem['code'], 'unauthenticated')
  t.notMatch(head, /^(server|x-powered-by):/im)
})

t.test('bodies of great depth and of many keys are refused as what they are', async t => {
  const w = await controlPlane(t)
  const post = (raw: string) => w.ask('POST', '/v1/trunks', { raw, headers: { 'Idempotency-Key': freshKey() } })
  const deep = await post(`{"name":${'['.repeat(100_000)}${']'.repeat(100_000)}}`)
  t.match(deep, { status: 422, body: { code: 'validation_failed' } })
  const keys = Array.from({ length: 20_000 }, (_, at) => `"k${at}":1`)
  const wide = await post(`{${keys.join(',')}}`)
  t.match(wide, { status: 422, body: { code: 'validation_failed' } })
  t.ok(wide.body.errors.length <= 50, 'not every one of them is told')
  t.equal((await post('{"name":"a"} {"name":"b"}')).body.code, 'body_malformed', 'one JSON value')
})

t.test('whoever has no good credential is bounded by address, and nobody else by them', async t => {
  const w = await controlPlane(t, { rate_limit: { burst: 3, per_second: 0.01 } })
  const statuses: number[] = []
  for (let at = 0; at < 5; at += 1)
    statuses.push((await w.ask('GET', '/v1/projects', { key: at % 2 === 0 ? null : 'sk_live_x' })).status)
  t.same(statuses, [401, 401, 401, 429, 429])
  t.equal((await w.ask('GET', '/v1/projects')).status, 200, 'a good key from the same address')
})

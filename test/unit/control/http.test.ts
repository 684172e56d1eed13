import { once } from 'node:events'
import { mkdirSync, readFileSync } from 'node:fs'
import { get } from 'node:https'
import { connect } from 'node:net'
import { join } from 'node:path'
import { requestClient } from '../../../control/http/address.ts'
import { pipeline } from '../../../control/http/pipeline.ts'
import { serveHttp } from '../../../control/http/server.ts'
import { CURRENCY } from '../../../core/domain/rating/currency.ts'
import { standingClock } from '../../support/clock.ts'
import { type ControlPlane, controlPlane, freshKey, METRICS_TOKEN } from '../../support/control-plane.ts'
import t from '../../support/harness/index.ts'

// The HTTP server with broken, slow and hostile clients, byte by byte.

/** Sends raw bytes. Resolves with everything that arrives until the server closes the connection. */
function exchange(w: ControlPlane, bytes: string | Buffer): Promise<string> {
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

t.test('framing that two servers could parse differently gets a 400 and closes the connection', async t => {
  const w = await controlPlane(t)
  const start = 'POST /v1/trunks HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
  const cases: Record<string, string> = {
    'a length and chunks': `${start}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    'two lengths': `${start}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`,
    'a negative length': `${start}Content-Length: -2\r\n\r\n{}`,
    'a length that is not a number': `${start}Content-Length: 2x\r\n\r\n{}`,
    'chunks inside another coding': `${start}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n`,
    'a space before the colon': 'GET /v1/projects HTTP/1.1\r\nHost : x\r\n\r\n',
    'not a request': 'SIP/2.0 200 OK\r\n\r\n',
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

t.test('a client that sends its headers or body too slowly gets a 408 and is disconnected', async t => {
  // Long enough for the normal request, even on a busy machine.
  const w = await controlPlane(t, { patience: { headers_ms: 4000, request_ms: 4000, look_ms: 20 } })
  const head = `POST /v1/trunks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${w.key}\r\nContent-Length: 9\r\n\r\n`
  const slow = ['GET /v1/projects HTTP/1.1\r\nHost: x\r\nX-Slow:', `${head}{"a"`].map(bytes => exchange(w, bytes))
  t.equal((await w.ask('GET', '/v1/projects')).status, 200, 'others are served meanwhile')
  for (const answer of await Promise.all(slow)) t.match(read(answer), { status: 408, problem: { status: 408 } })
})

t.test('idle connections are kept for more than 60 s, so that proxies close them first', async t => {
  const w = await controlPlane(t)
  const { headers } = await w.ask('GET', '/v1/projects')
  const [, seconds] = /^timeout=(\d+)$/.exec(headers.get('keep-alive') ?? '') ?? []
  t.ok(Number(seconds) > 60, `${seconds} s`)
})

t.test('a repeated Authorization header gets a 401, and no header names the server software', async t => {
  const w = await controlPlane(t)
  const twice = `Authorization: Bearer ${w.key}\r\nAuthorization: Bearer ${w.key}\r\n`
  const bytes = `GET /v1/projects HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${twice}\r\n`
  const { status, head, problem } = read(await exchange(w, bytes))
  t.equal(status, 401)
  t.equal(problem['code'], 'unauthenticated')
  t.notMatch(head, /^(server|x-powered-by):/im)
})

t.test('a body with extreme nesting or very many keys fails validation', async t => {
  const w = await controlPlane(t)
  const post = (raw: string) => w.ask('POST', '/v1/trunks', { raw, headers: { 'Idempotency-Key': freshKey() } })
  const deep = await post(`{"name":${'['.repeat(100_000)}${']'.repeat(100_000)}}`)
  t.match(deep, { status: 422, body: { code: 'validation_failed' } })
  const keys = Array.from({ length: 20_000 }, (_, at) => `"k${at}":1`)
  const wide = await post(`{${keys.join(',')}}`)
  t.match(wide, { status: 422, body: { code: 'validation_failed' } })
  t.ok(wide.body.errors.length <= 50, 'the list of errors is bounded')
  t.equal((await post('{"name":"a"} {"name":"b"}')).body.code, 'body_malformed', 'a body is exactly one JSON value')
})

t.test('invalid credentials are limited by address over all APIs, without limiting valid ones', async t => {
  const w = await controlPlane(t, { bad_credentials: { burst: 4, per_second: 0.01 } })
  const account = `/2010-04-01/Accounts/${w.demo.account_sid}/Calls.json`
  const wrong = { Authorization: `Basic ${Buffer.from(`${w.demo.account_sid}:wrong`).toString('base64')}` }
  const asks = {
    'no key': () => w.ask('GET', '/v1/projects', { key: null }),
    'a wrong key': () => w.ask('GET', '/v1/projects', { key: 'sk_live_x' }),
    'a wrong auth token': () => w.ask('GET', account, { key: null, headers: wrong }),
    'the general API': () => w.ask('GET', '/api/v1/calls', { key: null, headers: wrong }),
  }
  for (const [what, ask] of Object.entries(asks)) t.equal((await ask()).status, 401, what)
  for (const [what, ask] of Object.entries(asks)) {
    const { status, headers } = await ask()
    t.equal(status, 429, `${what}: over the limit`)
    t.ok(Number(headers.get('retry-after')) > 0, `${what}: has a Retry-After`)
  }
  t.equal((await w.ask('GET', '/v1/projects')).status, 200, 'a valid key works from the same address')
  t.equal((await w.voice('GET', '/Calls.json')).status, 200, 'a valid auth token works too')
})

t.test('a client that sends a body far above the limit can read its 413', async t => {
  const w = await controlPlane(t)
  const body = 'x'.repeat(5 * 1024 * 1024)
  const head = `POST /v1/trunks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${w.key}\r\nContent-Type: application/json\r\n`
  const chunked = `Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
  const next = 'GET /v1/projects HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
  for (const rest of [`Content-Length: ${body.length}\r\n\r\n${body}`, chunked]) {
    const answer = await exchange(w, `${head}${rest}${next}`)
    t.match(answer, /^HTTP\/1\.1 413 [\s\S]*"body_too_large"/, 'the answer')
    t.match(answer, /HTTP\/1\.1 401 /, 'the connection serves the next request')
  }
  const form = `Authorization: Basic ${Buffer.from(`${w.demo.account_sid}:${w.demo.auth_token}`).toString('base64')}\r\n`
  const path = `/2010-04-01/Accounts/${w.demo.account_sid}/Calls.json`
  const posted = `POST ${path} HTTP/1.1\r\nHost: x\r\n${form}Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`
  t.match(await exchange(w, posted), /^HTTP\/1\.1 413 [\s\S]*20413/, 'an oversized form gets a 413 too')
})

t.test('a body is read as its headers declare, byte for byte', async t => {
  const w = await controlPlane(t)
  const post = async (headers: string, body: Buffer) => {
    const more = `Idempotency-Key: ${freshKey()}\r\nConnection: close\r\n${headers}\r\n`
    const head = `POST /v1/subaccounts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${w.key}\r\n${more}`
    return read(await exchange(w, Buffer.concat([Buffer.from(head), body])))
  }
  const name = 'Ẹ káàárọ̀ 🌍'
  const configuration = { currency: CURRENCY, max_concurrent: 10, max_cps: 2 }
  const json = Buffer.from(JSON.stringify({ name, configuration }))
  const length = `Content-Length: ${json.length}\r\n`
  const chunked = 'Transfer-Encoding: chunked\r\n'
  // One byte per chunk, so that characters arrive in parts.
  const bytes = [...json].map(byte => Buffer.from([0x31, 13, 10, byte, 13, 10]))
  const good: readonly (readonly [string, Buffer])[] = [
    [`${length}Content-Type: application/json\r\n`, json],
    [`${length}Content-Type: APPLICATION/JSON; charset="utf-8"\r\n`, json],
    [`${length}Content-Type: application/json;\r\n`, json],
    [`${length}Content-Type: application/json\r\nContent-Encoding: Identity\r\n`, json],
    [`${chunked}Content-Type: application/json\r\n`, Buffer.concat([...bytes, Buffer.from('0\r\n\r\n')])],
  ]
  for (const [headers, body] of good) t.match(await post(headers, body), { status: 201, problem: { name } }, headers)
  for (const type of ['', 'Content-Type: text/json\r\n', 'Content-Type: json\r\n'])
    t.match(await post(`${length}${type}`, json), { status: 415, problem: { code: 'unsupported_media_type' } }, type)
  const empty = Buffer.from('0\r\n\r\n')
  const missing = { status: 400, problem: { code: 'body_malformed', detail: /it is missing/ } }
  t.match(await post(chunked, empty), missing, 'an empty body without a type')
  t.match(await post(`${chunked}Content-Type: application/json\r\n`, empty), missing, 'an empty JSON body')
})

t.test('a page answers other methods with 405 and its allowed methods', async t => {
  const w = await controlPlane(t)
  for (const path of ['/healthz', '/v1/openapi.json', '/docs/errors/not_found']) {
    t.equal((await fetch(`${w.base_url}${path}`, { method: 'HEAD' })).status, 200, path)
    const answer = await w.ask('POST', path, { key: null })
    t.match(answer, { status: 405, body: { code: 'method_not_allowed' } }, path)
    t.equal(answer.headers.get('allow'), 'GET, HEAD', path)
  }
  t.match(await w.ask('GET', '/docs/nothing', { key: null }), { status: 404, body: { code: 'not_found' } })
})

t.test('pipeline steps run in order, and an exception is reported with its step', async t => {
  const handle = pipeline<{ readonly words: readonly string[] }, { readonly no: string }>({
    isRefusal: (value): value is { readonly no: string } =>
      typeof value === 'object' && value !== null && 'no' in value,
    failed: (error, { request_id, step }) => ({ no: `${(error as Error).message} at ${step} of ${request_id}` }),
    send: (ctx, { words }) => {
      ctx.body = words.join(' ')
    },
    refuse: (ctx, { no }) => {
      ctx.status = 400
      ctx.body = no
    },
  })
    .gather('word', ({ ctx }) => (ctx.path === '/say/none' ? { no: 'no word' } : { word: ctx.path.slice(5) }))
    .check('manners', async ({ word }) => (word === 'rude' ? { no: 'rude' } : null))
    .gather('length', async ({ word }) => {
      if (word === 'endless') throw new Error('endless')
      return { length: word.length }
    })
    .answer('say', async ({ word, length }) => ({ words: [word, String(length)] }))
  const w = await controlPlane(t)
  const server = await serveHttp({ pages: {}, below: { '/say': handle } }, w, { host: '127.0.0.1', port: 0 })
  t.teardown(() => server.close())
  const say = async (word: string) => (await fetch(`http://127.0.0.1:${server.port}/say/${word}`)).text()
  t.equal(await say('hello'), 'hello 5')
  t.equal(await say('none'), 'no word')
  t.equal(await say('rude'), 'rude')
  t.match(await say('endless'), /^endless at length of req_[0-9a-f]{32}$/)
})

t.test('metrics require a local client or the token, and readiness checks are rate-limited', async t => {
  const w = await controlPlane(t, { clock: standingClock() })
  mkdirSync(join(w.settings.run_dir, 'metrics'), { recursive: true })
  const ask = (headers: Record<string, string>) => w.ask('GET', '/metrics', { key: null, headers })
  t.equal((await ask({})).status, 200, 'from this machine')
  const proxied = { 'X-Forwarded-For': '203.0.113.9' }
  const refused = await ask(proxied)
  t.match(
    refused,
    { status: 401, body: { code: 'unauthenticated', detail: /STROWGER_METRICS_TOKEN/ } },
    'through a proxy',
  )
  t.equal((await ask({ ...proxied, Authorization: 'Bearer wrong' })).status, 401, 'with another token')
  t.equal((await ask({ ...proxied, Authorization: `Bearer ${METRICS_TOKEN}` })).status, 200, 'with the token')
  const statuses = await Promise.all(
    Array.from({ length: 40 }, async () => (await w.ask('GET', '/readyz', { key: null })).status),
  )
  t.equal(statuses.filter(status => status === 429).length, 20, 'checks above the limit get 429')
  t.equal(statuses.filter(status => status === 503).length, 20, 'checks within the limit are answered')
})

t.test('behind a trusted proxy each client has limits of its own, and cannot choose its address', async t => {
  const bad_credentials = { burst: 2, per_second: 0.001 }
  const attempts = async (trusted_proxies: readonly string[], lists: readonly string[]) => {
    const w = await controlPlane(t, { clock: standingClock(), bad_credentials, trusted_proxies })
    const statuses = []
    for (const list of lists) {
      const headers = { 'X-Forwarded-For': list }
      statuses.push((await w.ask('GET', '/v1/trunks', { key: 'sk_live_wrong', headers })).status)
    }
    return statuses
  }
  const [thief, other] = ['203.0.113.9', '198.51.100.7']
  t.same(await attempts(['loopback'], [thief, thief, thief, other]), [401, 401, 429, 401], 'the client is limited')
  t.same(
    await attempts(
      ['loopback'],
      ['1.1.1.1', '2.2.2.2', '3.3.3.3'].map(claim => `${claim}, ${thief}`),
    ),
    [401, 401, 429],
  )
  t.same(
    await attempts([], ['1.1.1.1', '2.2.2.2', '3.3.3.3']),
    [401, 401, 429],
    'a stranger’s header counts for nothing',
  )
})

t.test('nothing that a trusted proxy passes on reads the metrics without the token', async t => {
  const w = await controlPlane(t, { trusted_proxies: ['loopback'] })
  mkdirSync(join(w.settings.run_dir, 'metrics'), { recursive: true })
  for (const list of ['127.0.0.1', '203.0.113.9', 'unknown'])
    t.equal((await w.ask('GET', '/metrics', { key: null, headers: { 'X-Forwarded-For': list } })).status, 401, list)
})

t.test('HTTPS serves the same APIs, renews its certificate, and survives what is no TLS', async t => {
  const w = await controlPlane(t)
  const pem = (name: string) => readFileSync(join('fixtures/tls', name), 'utf8')
  const pair = (cert: string) => ({ cert: pem(cert), key: pem('leaf.key') })
  const page: Parameters<typeof serveHttp>[0]['pages'][string] = ctx => {
    ctx.body = { secure: requestClient(ctx.req).secure, address: requestClient(ctx.req).address }
  }
  const server = await serveHttp({ pages: { '/who': page }, below: {} }, w, {
    host: '127.0.0.1',
    port: 0,
    secure: { host: '127.0.0.1', port: 0, tls: pair('other-name.pem') },
  })
  t.teardown(() => server.close())
  const ask = (servername: string) =>
    new Promise<string>((resolve, reject) => {
      const at = {
        host: '127.0.0.1',
        port: server.secure_port,
        path: '/who',
        servername,
        agent: false,
        ca: pem('root.pem'),
      }
      get(at, answer => {
        let text = ''
        answer.on('data', chunk => {
          text += chunk
        })
        answer.on('end', () => resolve(text))
      }).on('error', error => reject(error))
    })
  const secure = '{"secure":true,"address":"127.0.0.1"}'
  t.equal(await ask('elsewhere.example.test'), secure)
  const strange = connect(server.secure_port ?? 0, '127.0.0.1', () => strange.write('GET /who HTTP/1.1\r\n\r\n'))
  strange.on('error', () => undefined)
  await once(strange.resume(), 'close')
  server.renewTls(pair('good.pem'))
  t.equal(await ask('app.example.test'), secure)
  await t.rejects(ask('elsewhere.example.test'), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' }, 'the former one is gone')
  const plain = await fetch(`http://127.0.0.1:${server.port}/who`)
  t.same(await plain.json(), { secure: false, address: '127.0.0.1' })
})

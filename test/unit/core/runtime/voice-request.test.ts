import { createHash, createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import twilio from 'twilio'
import { createCookieJar } from '../../../../core/domain/webhooks/cookies.ts'
import { type Parameters, signatureData } from '../../../../core/domain/webhooks/signature.ts'
import { createHttpClient } from '../../../../core/runtime/http/index.ts'
import {
  createVoiceRequester,
  handshakeSignature,
  type VoiceReply,
  type VoiceRequest,
} from '../../../../core/runtime/voice-request.ts'
import { ManualClock } from '../../../fuzz/edge/manual-clock.ts'
import t, { type Test } from '../../../support/harness/index.ts'
import { freePort } from '../../../support/ports.ts'

const TOKEN = '0123456789abcdefghij0123456789AB'

interface Seen {
  readonly method: string
  /** Path and query as received. */
  readonly path: string
  /** The URL that a receiver rebuilds from Host and path. */
  readonly url: string
  readonly headers: IncomingHttpHeaders
  /** Header names in their original case. */
  readonly names: readonly string[]
  readonly body: string
}

/** Starts a server that records its requests. `answer` may leave the response open. */
async function receiver(t: Test, answer: (seen: Seen, response: ServerResponse, count: number) => void) {
  const requests: Seen[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', chunk => chunks.push(chunk))
    request.on('end', () => {
      const { method = '', url: path = '', headers } = request
      const url = `http://${headers.host}${path}`
      const names = request.rawHeaders.filter((_text, index) => index % 2 === 0)
      const seen = { method, path, url, headers, names, body: Buffer.concat(chunks).toString() }
      requests.push(seen)
      answer(seen, response, requests.length)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return { requests, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const requester = (t: Test) => {
  const http = createHttpClient({ allow_private: ['loopback'], user_agent: 'Strowger/test' })
  t.teardown(() => http.close())
  return createVoiceRequester({ http, random: () => 0 })
}

/**
 * Returns a requester whose time the test moves. Its own time passes only before a repetition, at once: a limit cannot
 * end before the server was asked, however slow this process is.
 */
function timedRequester(t: Test) {
  const clock = new ManualClock()
  const http = createHttpClient({ allow_private: ['loopback'], user_agent: 'Strowger/test', clock })
  t.teardown(() => http.close())
  const after = (ms: number, run: () => void) => {
    clock.advance(ms)
    const soon = setImmediate(run)
    return { cancel: () => clearImmediate(soon) }
  }
  const now = { now: () => clock.now(), monotonic_ms: () => clock.monotonic_ms() }
  const voice = createVoiceRequester({ http, random: () => 0, clock: { ...now, after, every: after } })
  return { voice, clock }
}

const CALL: Parameters = [
  ['CallSid', 'CA11111111111111111111111111111111'],
  ['From', '+2342010000001'],
  ['To', 'sip:ada@example.test;user=phone'],
  ['CallerName', 'Adaéze & "Sons" 🎉'],
  ['Empty', ''],
  ['Digits', '1#*'],
]

const request = (url: string, more: Partial<VoiceRequest> = {}): VoiceRequest => ({
  url,
  method: 'POST',
  parameters: CALL,
  auth_token: TOKEN,
  reply: 'document',
  ...more,
})

const form = (body: string): Record<string, string | string[]> => {
  const values: Record<string, string | string[]> = {}
  for (const [name, value] of new URLSearchParams(body)) {
    const before = values[name]
    values[name] = before === undefined ? value : [before, value].flat()
  }
  return values
}
const signatureOf = ({ headers }: Seen): string => String(headers['x-twilio-signature'])
/** Reports whether the vendor's library accepts the signature of a request. */
const valid = (seen: Seen, token = TOKEN): boolean =>
  twilio.validateRequest(token, signatureOf(seen), seen.url, form(seen.body))
const outcome = (reply: VoiceReply): string =>
  reply.ok ? `${reply.status} ${reply.body}` : `${reply.error} ${reply.number}`

t.test('signatures equal the published vectors', async t => {
  const sign = (url: string, parameters: Parameters) =>
    createHmac('sha1', TOKEN).update(signatureData(url, parameters)).digest('base64')
  const voice = 'https://app.example.test/voice'
  t.equal(sign(voice, []), 'NSP8tDS4C2AsOCulgDOVN8Oqu38=')
  t.equal(
    sign(`${voice}?shop=a%26b&x=1`, [
      ['CallSid', 'CA11111111111111111111111111111111'],
      ['From', '+2342010000001'],
      ['To', '+2348030000099'],
      ['CallStatus', 'in-progress'],
    ]),
    'M9KTe6LPZEokb8EnHvzQwcZjYJg=',
  )
  const repeated: Parameters = [
    ['B', '2'],
    ['B', '1'],
    ['B', '2'],
    ['A', 'x'],
  ]
  t.equal(sign(voice, repeated), '7Jn35cld8upbHE3k0hBPIeC8eVs=')
  t.equal(sign(`${voice}?keep=1&CallSid=CA1&From=%2B2342010000001`, []), 'pFZNCj1W7StuorWWSCl8DtPDsO8=')
  const hash = 'be8fe7d198f9958b19b3e16b39c043b1ce09d112fe21c5d4e28c940c3aa91094'
  t.equal(sign(`https://app.example.test/hook?bodySHA256=${hash}`, []), 'dfcfh5c4yDQMNNbCtWd4ZQ/8g5I=')
  const stream = 'wss://app.example.test/stream'
  t.ok(twilio.validateRequest(TOKEN, handshakeSignature(TOKEN, `${stream}#x`), stream, {}))
})

t.test('the vendor library accepts the signature of a POST, and rejects it with another token', async t => {
  const there = await receiver(t, (_seen, response) => response.end('<Response/>'))
  const voice = requester(t)
  const urls = ['', '/', '/voice', "/voice?shop=a%26b&x='1'&y=[2]", '/a b?c d=é', '/voice?', '/v?x=1#rc=2&rp=5xx']
  for (const path of urls) t.match(await voice.send(request(there.url + path)), { ok: true, status: 200 }, path)
  for (const seen of there.requests) {
    t.ok(valid(seen), seen.path)
    t.notOk(valid(seen, `${TOKEN}x`), 'another token')
    t.same(Object.entries(form(seen.body)), CALL, 'every value arrives unchanged')
  }
  const [first] = there.requests
  t.match(first, { method: 'POST', path: '/' })
  t.match(first?.headers, {
    'content-type': 'application/x-www-form-urlencoded; charset=UTF-8',
    accept: '*/*',
    'user-agent': 'Strowger/test',
    'i-twilio-idempotency-token': /^[0-9a-f-]{36}$/,
  })
  for (const name of ['X-Twilio-Signature', 'I-Twilio-Idempotency-Token', 'X-Strowger-Signature', 'Content-Type'])
    t.ok(first?.names.includes(name), `${name} is spelled so`)
  t.equal(there.requests.at(-1)?.path, '/v?x=1', 'the fragment is not sent')
})

t.test('the vendor library accepts the signature of repeated parameters', async t => {
  const there = await receiver(t, (_seen, response) => response.end())
  await requester(t).send(
    request(`${there.url}/v`, {
      parameters: [
        ['B', '2'],
        ['A', 'x'],
        ['B', '1'],
        ['B', '2'],
      ],
    }),
  )
  t.equal(there.requests[0]?.body, 'B=2&A=x&B=1&B=2')
  t.ok(there.requests.every(seen => valid(seen)))
})

t.test('a GET appends the parameters to its query, which stays byte for byte', async t => {
  const there = await receiver(t, (_seen, response) => response.end('<Response/>'))
  const voice = requester(t)
  await voice.send(request(`${there.url}/v?shop='a'%2Fb+c#rc=0`, { method: 'GET' }))
  await voice.send(request(`${there.url}/v`, { method: 'GET' }))
  const [with_query, without] = there.requests
  t.match(with_query, { method: 'GET', body: '' })
  t.match(with_query?.path, /^\/v\?shop='a'%2Fb\+c&CallSid=CA1111/)
  t.ok(without?.path.startsWith('/v?CallSid=CA1111'))
  t.equal(with_query?.headers['content-type'], undefined)
  t.same([...new URLSearchParams(without?.path.slice(3))], CALL)
  t.ok(there.requests.every(seen => valid(seen)))
})

t.test('the hash in the query signs a JSON body', async t => {
  const there = await receiver(t, (_seen, response) => response.end())
  const voice = requester(t)
  const json = '{"event":"call.completed","seq":3}'
  for (const path of ['/hook', '/hook?x=1#rc=1'])
    await voice.send(request(there.url + path, { json, reply: 'ignored' }))
  for (const seen of there.requests) {
    t.equal(seen.headers['content-type'], 'application/json')
    t.equal(seen.body, json)
    t.ok(twilio.validateRequestWithBody(TOKEN, signatureOf(seen), seen.url, seen.body))
    t.notOk(twilio.validateRequestWithBody(TOKEN, signatureOf(seen), seen.url, `${seen.body} `))
  }
  t.match(there.requests[1]?.path, /^\/hook\?x=1&bodySHA256=[0-9a-f]{64}$/)
  t.equal(there.requests[0]?.path.slice(-64), createHash('sha256').update(json).digest('hex'))
})

t.test('X-Strowger-Signature covers time, URL and body', async t => {
  const there = await receiver(t, (_seen, response) => response.end())
  const voice = requester(t)
  const before = Math.floor(Date.now() / 1000)
  await voice.send(request(`${there.url}/v?x=1`))
  await voice.send(request(`${there.url}/v?x=1`, { method: 'GET' }))
  for (const { headers, url, body } of there.requests) {
    const [, timestamp = '', v1] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers['x-strowger-signature'])) ?? []
    t.ok(Number(timestamp) >= before && Number(timestamp) <= Date.now() / 1000)
    t.equal(v1, createHmac('sha256', TOKEN).update(`${timestamp}.${url}${body}`).digest('hex'))
  }
})

t.test('user info becomes Basic authentication and is not part of the sent or signed URL', async t => {
  const there = await receiver(t, (_seen, response) => response.end())
  const reply = await requester(t).send(request(`${there.url.replace('//', '//shop:pa%40ss@')}/v`))
  const [seen] = there.requests
  t.equal(seen?.headers.authorization, `Basic ${Buffer.from('shop:pa@ss').toString('base64')}`)
  t.ok(seen && valid(seen))
  t.equal(reply.url, `${there.url}/v`)
})

t.test('each hop of a redirect has a signature over what it sends', async t => {
  const there = await receiver(t, ({ path }, response) => {
    const status = Number(path.slice(1))
    if (status) response.writeHead(status, { location: '/end?q=1' }).end()
    else response.end('<Response/>')
  })
  const voice = requester(t)
  for (const status of [301, 302, 303, 307, 308]) {
    there.requests.length = 0
    const reply = await voice.send(request(`${there.url}/${status}`))
    t.match(
      reply,
      { ok: true, redirects: 1, url: `${there.url}/end?q=1` },
      'relative URLs resolve against the last hop',
    )
    const [first, last] = there.requests
    t.match(last, status > 303 ? { method: 'POST', path: '/end?q=1', body: first?.body } : { method: 'GET', body: '' })
    t.ok(
      there.requests.every(seen => valid(seen)),
      `${status}`,
    )
    t.equal(first?.headers['i-twilio-idempotency-token'], last?.headers['i-twilio-idempotency-token'])
  }
  const round = await receiver(t, (_seen, response) => response.writeHead(302, { location: '/' }).end())
  t.equal(outcome(await voice.send(request(round.url))), 'too_many_redirects 11215')
  t.equal(round.requests.length, 6)
})

t.test('keeps cookies for the call and per origin, also those of a redirect', async t => {
  const other = await receiver(t, (_seen, response) => response.end())
  const there = await receiver(t, ({ path }, response) => {
    if (path === '/login') response.writeHead(302, { location: '/home', 'set-cookie': 'sid=42; Path=/' }).end()
    else if (path === '/away') response.writeHead(307, { location: `${other.url}/` }).end()
    else response.end()
  })
  const voice = requester(t)
  const cookies = createCookieJar()
  await voice.send(request(`${there.url}/login`, { cookies }))
  await voice.send(request(`${there.url}/menu`, { cookies }))
  await voice.send(request(`${there.url}/away`, { cookies }))
  await voice.send(request(`${there.url}/menu`, { cookies: createCookieJar() }))
  await voice.send(request(`${there.url}/menu`))
  t.same(
    there.requests.map(({ path, headers }) => [path, headers.cookie]),
    [
      ['/login', undefined],
      ['/home', 'sid=42'],
      ['/menu', 'sid=42'],
      ['/away', 'sid=42'],
      ['/menu', undefined],
      ['/menu', undefined],
    ],
  )
  t.equal(other.requests[0]?.headers.cookie, undefined)
})

t.test('retries as the fragment says, keeps the idempotency token and reports every attempt', async t => {
  const there = await receiver(t, (_seen, response, count) =>
    count < 3 ? response.writeHead(503).end('not yet') : response.end('<Response/>'),
  )
  const voice = requester(t)
  const reply = await voice.send(request(`${there.url}/v#rc=2&rp=5xx`))
  t.equal(outcome(reply), '200 <Response/>')
  t.same(
    reply.attempts.map(attempt => attempt.status),
    [503, 503, 200],
  )
  t.equal(new Set(there.requests.map(seen => seen.headers['i-twilio-idempotency-token'])).size, 1)
  t.equal(reply.idempotency_token, there.requests[0]?.headers['i-twilio-idempotency-token'])
  t.ok(there.requests.every(seen => valid(seen) && seen.path === '/v'))
})

t.test('retries an error status only if the URL asks for it, and reports its number', async t => {
  const there = await receiver(t, ({ path }, response) =>
    response.writeHead(Number(path.slice(1))).end('x'.repeat(200_000)),
  )
  const voice = requester(t)
  for (const [path, requests] of [
    ['/500', 1],
    ['/404', 1],
    ['/404#rp=5xx', 1],
    ['/404#rp=4xx&rc=1', 2],
  ] as const) {
    there.requests.length = 0
    const reply = await voice.send(request(there.url + path))
    t.match(reply, { ok: false, error: 'status', number: 11217, status: Number(path.slice(1, 4)) })
    t.equal(there.requests.length, requests, path)
  }
  const reply = await voice.send(request(`${there.url}/500#rc=often`, { idempotency_token: 'again-7' }))
  t.same([reply.warnings, reply.idempotency_token], [[11243], 'again-7'])
  t.equal(there.requests.at(-1)?.headers['i-twilio-idempotency-token'], 'again-7')
})

t.test('retries a refused connection once by default, and a silent server only if the URL asks for it', async t => {
  const { voice, clock } = timedRequester(t)
  const gone = await receiver(t, () => clock.advance(100))
  const silent = await receiver(t, () => clock.advance(100))
  // A port that the system gives to no other socket meanwhile.
  const port = await freePort()
  const refused = await voice.send(request(`http://127.0.0.1:${port}/`))
  t.equal(outcome(refused), 'refused 11202')
  t.same(
    refused.attempts.map(attempt => attempt.error),
    ['refused', 'refused'],
  )
  t.equal((await voice.send(request(`http://127.0.0.1:${port}/#rc=4`))).attempts.length, 5)
  t.equal(outcome(await voice.send(request(`${gone.url}/#rt=100`))), 'read_timeout 11200')
  t.equal(gone.requests.length, 1)
  t.equal(outcome(await voice.send(request(`${silent.url}/#rt=100&rp=rt&rc=1`))), 'read_timeout 11200')
  t.equal(silent.requests.length, 2)
})

t.test('the total timeout covers all attempts', async t => {
  const { voice, clock } = timedRequester(t)
  const silent = await receiver(t, () => clock.advance(200))
  const attempts = async (fragment: string) =>
    (await voice.send(request(`${silent.url}/#${fragment}`))).attempts.map(({ error }) => error)
  // The attempts end after 200 and 450 ms. The next one would begin after 550.
  t.same(await attempts('tt=500&rt=200&rc=5&rp=all'), ['read_timeout', 'read_timeout'])
  t.equal(silent.requests.length, 2)
  t.same(await attempts('tt=400&rt=200&rc=5&rp=all'), ['read_timeout', 'total_timeout'])
  t.equal(silent.requests.length, 4)
  t.equal((await attempts('rt=200&rc=5&rp=all')).length, 6, 'without a total timeout the fragment allows six')
})

t.test('a URL that cannot be requested gives a failure with its number', async t => {
  const large = await receiver(t, (_seen, response) => response.end('x'.repeat(64 * 1024 + 1)))
  const voice = requester(t)
  t.equal(outcome(await voice.send(request('/relative'))), 'bad_url 11100')
  t.equal(outcome(await voice.send(request('ftp://a.example.test/'))), 'bad_url 11100')
  t.equal(outcome(await voice.send(request('http://10.0.0.1/'))), 'private_address 11210')
  t.equal((await voice.send(request('http://10.0.0.1/#rc=3&rp=all'))).attempts.length, 1)
  t.equal(outcome(await voice.send(request(large.url))), 'too_large 11750')
  t.match(await voice.send(request(large.url, { max_bytes: 70_000 })), { ok: true })
  t.match(await voice.send(request(large.url, { reply: 'ignored' })), { ok: true, body: Buffer.alloc(0) })
  const aborted = await voice.send(request(large.url, { signal: AbortSignal.abort() }))
  t.match(aborted, { ok: false, error: 'aborted', attempts: { length: 1 } })
})

t.test('the end of the call ends the wait for a retry', async t => {
  const call = new AbortController()
  const there = await receiver(t, (_seen, response) => {
    response.writeHead(500).end()
    setImmediate(() => call.abort())
  })
  const reply = await requester(t).send(request(`${there.url}/#rc=5&rp=5xx`, { signal: call.signal }))
  t.equal(reply.ok, false)
  t.ok(there.requests.length <= 2, `${there.requests.length} requests`)
})

t.test('a reply contains neither the token nor the user info', async t => {
  const socketless = await receiver(t, (_seen, response) => response.destroy())
  const reply = await requester(t).send(request(`${socketless.url.replace('//', '//u:hunter2@')}/v`))
  const text = JSON.stringify(reply)
  t.equal(reply.ok, false)
  t.notOk(text.includes(TOKEN) || text.includes('hunter2'), text)
  const bad = await requester(t).send(request('http://u:hunter2@[nonsense]/'))
  t.notOk(JSON.stringify(bad).includes('hunter2'), JSON.stringify(bad))
})

t.test('line breaks in a parameter cannot inject headers', async t => {
  const there = await receiver(t, (_seen, response) => response.end())
  const parameters: Parameters = [['CallerName', 'a\r\nX-Injected: 1\r\n\r\nGET /evil HTTP/1.1']]
  for (const method of ['POST', 'GET'] as const)
    await requester(t).send(request(`${there.url}/v`, { method, parameters }))
  t.equal(there.requests.length, 2)
  for (const seen of there.requests) {
    t.equal(seen.headers['x-injected'], undefined)
    t.ok(valid(seen))
  }
})

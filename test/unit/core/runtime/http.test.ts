import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { createAddressGuard } from '../../../../core/domain/network/address-guard.ts'
import { parseTarget } from '../../../../core/domain/webhooks/target.ts'
import { connectSocket } from '../../../../core/runtime/http/connect.ts'
import { createHttpClient, type HttpClientOptions, type HttpResult } from '../../../../core/runtime/http/index.ts'
import { parseHosts } from '../../../../core/runtime/http/resolve.ts'
import t, { type Test } from '../../../support/harness/index.ts'
import { freePort } from '../../../support/ports.ts'
import { SEED } from '../../../support/seed.ts'
import { PATIENCE_MS, until } from '../../../support/wait.ts'

const certificates = new URL('../../../../../fixtures/tls/', import.meta.url)
const pem = (name: string): string => readFileSync(new URL(name, certificates), 'utf8')

const client = (t: Test, options: Partial<HttpClientOptions> = {}) => {
  const http = createHttpClient({ allow_private: ['loopback'], user_agent: 'Strowger/test', ...options })
  t.teardown(() => http.close())
  return http
}

interface Served {
  readonly port: number
  readonly url: string
  readonly sockets: Set<Socket>
  /** Returns the number of connections since the start. */
  connections(): number
}

async function listen(t: Test, server: Server, scheme: string, host = '127.0.0.1'): Promise<Served> {
  const sockets = new Set<Socket>()
  let connections = 0
  server.on('connection', (socket: Socket) => {
    connections++
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(0, host)
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const { port } = server.address() as AddressInfo
  return { port, url: `${scheme}://${host}:${port}`, sockets, connections: () => connections }
}

/** The server keeps connections open, so that only the client decides which ones to keep. */
const serve = (t: Test, handler: RequestListener, host?: string) =>
  listen(t, createServer({ keepAliveTimeout: PATIENCE_MS }, handler), 'http', host)
const serveTls = (t: Test, certificate: string, handler: RequestListener) =>
  listen(t, createHttpsServer({ cert: pem(certificate), key: pem('leaf.key') }, handler), 'https')
const serveRaw = (t: Test, handler: (socket: Socket) => void) => listen(t, createTcpServer(handler), 'http')

/** For answers that come: after a stop of this process its timers run before it reads what has arrived meanwhile. */
const PATIENT = { connect_timeout_ms: PATIENCE_MS, read_timeout_ms: PATIENCE_MS, total_timeout_ms: PATIENCE_MS }

const told = (result: HttpResult): string => (result.ok ? `${result.status} ${result.body.toString()}` : result.error)
const echo = (request: IncomingMessage, response: ServerResponse): void => {
  const body: Buffer[] = []
  request.on('data', chunk => body.push(chunk))
  request.on('end', () => {
    const { method, url, headers } = request
    response.end(JSON.stringify({ method, url, headers, body: Buffer.concat(body).toString() }))
  })
}
const echoed = (result: HttpResult) => {
  if (!result.ok) throw new Error(`${result.error}: ${result.detail}`)
  return JSON.parse(result.body.toString()) as {
    method: string
    url: string
    headers: Record<string, string | undefined>
    body: string
  }
}

t.test('sends path, query, headers and body as given, user info as Basic authentication, and no fragment', async t => {
  const server = await serve(t, echo)
  const http = client(t)
  const result = await http.request({
    url: `http://me%40corp:s%3Acret@127.0.0.1:${server.port}/a b?x='1'&y=%26#rc=2`,
    method: 'POST',
    headers: { 'Content-Type': 'text/plain' },
    body: 'hello',
  })
  const seen = echoed(result)
  t.match(seen, { method: 'POST', url: "/a%20b?x='1'&y=%26", body: 'hello' })
  t.match(seen.headers, { 'user-agent': 'Strowger/test', accept: '*/*', 'content-type': 'text/plain' })
  t.equal(seen.headers['authorization'], `Basic ${Buffer.from('me@corp:s:cret').toString('base64')}`)
  t.match(result, { ok: true, status: 200, redirects: 0, url: `http://127.0.0.1:${server.port}/a%20b?x='1'&y=%26` })
  t.equal(told(await http.request({ url: server.url, method: 'HEAD' })), '200 ')
})

t.test('the guard refuses private, special and disguised addresses and allows public ones', async t => {
  const guard = createAddressGuard([])
  const refused: [address: string, range: string][] = [
    ['127.0.0.1', 'loopback'],
    ['127.255.255.254', 'loopback'],
    ['0.0.0.0', 'unspecified'],
    ['0.1.2.3', 'unspecified'],
    ['10.0.0.1', 'private'],
    ['172.16.0.1', 'private'],
    ['192.168.1.1', 'private'],
    ['169.254.169.254', 'linkLocal'],
    ['100.64.0.1', 'carrierGradeNat'],
    ['100.100.100.200', 'carrierGradeNat'],
    ['168.63.129.16', 'metadata'],
    ['192.0.0.192', 'reserved'],
    ['198.18.0.1', 'reserved'],
    ['203.0.113.9', 'reserved'],
    ['224.0.0.1', 'multicast'],
    ['240.0.0.1', 'reserved'],
    ['255.255.255.255', 'broadcast'],
    ['::', 'unspecified'],
    ['::1', 'loopback'],
    ['::ffff:127.0.0.1', 'loopback'],
    ['::ffff:a9fe:a9fe', 'linkLocal'],
    ['::ffff:168.63.129.16', 'metadata'],
    ['::127.0.0.1', 'loopback'],
    ['::7f00:1', 'unassigned'],
    ['64:ff9b::7f00:1', 'rfc6052'],
    ['64:ff9b:1::1', 'rfc6052'],
    ['2002:7f00:1::', '6to4'],
    ['2001:0:1::1', 'teredo'],
    ['fe80::1', 'linkLocal'],
    ['fe80::1%eth0', 'linkLocal'],
    ['fc00::1', 'uniqueLocal'],
    ['fd00:ec2::254', 'uniqueLocal'],
    ['ff02::1', 'multicast'],
    ['fec0::1', 'deprecatedSiteLocal'],
    ['2001:db8::1', 'reserved'],
    ['4000::1', 'unassigned'],
    ['nonsense', 'not an address'],
    ['', 'not an address'],
  ]
  for (const [address, range] of refused) t.equal(guard.refusal(address), range, address || '(empty)')
  for (const address of ['8.8.8.8', '197.210.0.1', '2600:1f18::1', '2a00:1450::5', '::ffff:8.8.8.8'])
    t.equal(guard.refusal(address), null, address)
})

t.test('an allow list allows exactly its ranges', async t => {
  const guard = createAddressGuard(['loopback', '10.1.0.0/16', '192.168.7.7', 'fd12::/16'])
  for (const address of ['127.0.0.1', '::1', '::ffff:127.0.0.1', '10.1.2.3', '192.168.7.7', 'fd12::9'])
    t.equal(guard.refusal(address), null, address)
  for (const address of ['10.2.0.1', '192.168.7.8', 'fd13::1', '169.254.169.254'])
    t.not(guard.refusal(address), null, address)
  t.throws(() => createAddressGuard(['everything']), /neither a CIDR/)
})

t.test('refuses a literal private host in every spelling without connecting', async t => {
  const server = await serve(t, echo)
  const http = client(t, { allow_private: [] })
  const hosts = ['127.0.0.1', '2130706433', '0x7f.1', '0177.0.0.1', '127.1', '[::ffff:7f00:1]', '[::ffff:127.0.0.1]']
  for (const host of [...hosts, '[::1]', '0', '0.0.0.0', '[::]', 'localhost', 'LOCALHOST', '127。0。0。1'])
    t.equal(told(await http.request({ url: `http://${host}:${server.port}/` })), 'private_address', host)
  t.equal(server.connections(), 0)
})

t.test('checks every address of a name and connects to a checked one', async t => {
  const server = await serve(t, echo)
  const asked: string[] = []
  const answers: Record<string, string[]> = {
    'app.example.test': ['127.0.0.1'],
    'mixed.example.test': ['127.0.0.1', '10.0.0.1'],
    'metadata.example.test': ['169.254.169.254'],
    'mapped.example.test': ['::ffff:10.0.0.1'],
    'none.example.test': [],
    'junk.example.test': ['localhost'],
  }
  const http = client(t, {
    idle_ms: 0,
    resolver: async hostname => {
      asked.push(hostname)
      const found = answers[hostname]
      if (found === undefined) throw new Error('queryA ENOTFOUND')
      return found
    },
  })
  const ask = async (host: string) => told(await http.request({ url: `http://${host}:${server.port}/` }))
  const seen = echoed(await http.request({ url: `http://app.example.test:${server.port}/` }))
  t.equal(seen.headers['host'], `app.example.test:${server.port}`)
  t.same(asked, ['app.example.test'], 'the name is resolved only once, before the check')
  for (const host of ['mixed.example.test', 'metadata.example.test', 'mapped.example.test', 'junk.example.test'])
    t.equal(await ask(host), 'private_address', host)
  t.equal(await ask('none.example.test'), 'dns')
  t.equal(await ask('unknown.example.test'), 'dns')
  t.same(await http.resolve('app.example.test'), { ok: true, addresses: ['127.0.0.1'] })
  t.match(await http.resolve('mixed.example.test'), { ok: false, error: 'private_address' })
  t.match(await http.resolve('10.0.0.1'), { ok: false, error: 'private_address' })
  t.match(await http.resolve('unknown.example.test'), { ok: false, error: 'dns' })
  t.equal(server.connections(), 1)
})

t.test('refuses the second hop when a name changes to a private address', async t => {
  const server = await serve(t, (_request, response) => response.writeHead(307, { location: '/again' }).end())
  const answers = [['127.0.0.1'], ['127.0.0.2']]
  const http = client(t, {
    allow_private: ['127.0.0.1'],
    idle_ms: 0,
    resolver: async () => answers.shift() ?? ['127.0.0.2'],
  })
  const result = await http.request({ url: `http://rebind.example.test:${server.port}/` })
  t.match(result, { ok: false, error: 'private_address', url: `http://rebind.example.test:${server.port}/again` })
  t.equal(server.connections(), 1)
})

t.test('refuses a redirect to a private address', async t => {
  const inner = await serve(t, echo, '127.0.0.2')
  const targets = [inner.url, `http://2130706434:${inner.port}/`, 'http://169.254.169.254/latest/', 'http://[::1]/']
  const server = await serve(t, (request, response) =>
    response.writeHead(302, { location: targets[Number(request.url?.slice(1))] }).end(),
  )
  const http = client(t, { allow_private: ['127.0.0.1'] })
  for (const [index, target] of targets.entries())
    t.equal(told(await http.request({ url: `${server.url}/${index}` })), 'private_address', target)
  t.equal(inner.connections(), 0)
})

t.test('tries the next address of a name when one does not listen', async t => {
  const server = await serve(t, echo)
  const http = client(t, { resolver: async () => ['127.0.0.3', '127.0.0.1'] })
  t.equal((await http.request({ url: `http://app.example.test:${server.port}/` })).ok, true)
})

t.test('parses hosts files like the system', async t => {
  const hosts = parseHosts('127.0.0.1 localhost # here\n::1\tLocalHost ip6\n# 10.0.0.1 no\nnonsense name\n\n')
  t.same(
    [...hosts],
    [
      ['localhost', ['127.0.0.1', '::1']],
      ['ip6', ['::1']],
    ],
  )
})

t.test('a redirect to another origin drops credentials and cookies', async t => {
  const other = await serve(t, echo)
  const server = await serve(t, (request, response) => {
    if (request.url === '/here') echo(request, response)
    else response.writeHead(307, { location: request.url === '/away' ? `${other.url}/there` : '/here' }).end()
  })
  const http = client(t)
  const headers = { Cookie: 'sid=1', 'x-kept': 'yes' }
  const ask = (path: string) =>
    http.request({ url: `http://u:p@127.0.0.1:${server.port}${path}`, method: 'POST', body: 'b', headers })
  t.match(echoed(await ask('/home')), { body: 'b', headers: { authorization: /^Basic /, cookie: 'sid=1' } })
  const away = echoed(await ask('/away'))
  t.match(away, { url: '/there', method: 'POST', body: 'b', headers: { 'x-kept': 'yes' } })
  t.equal(away.headers['authorization'], undefined)
  t.equal(away.headers['cookie'], undefined)
})

t.test('301 to 303 become a GET without body headers, and each hop gets its own headers', async t => {
  const server = await serve(t, (request, response) => {
    const status = Number(request.url?.slice(1))
    if (status) response.writeHead(status, { location: '/end?x=1', 'set-cookie': ['a=1', 'b=2'] }).end()
    else echo(request, response)
  })
  const http = client(t)
  for (const status of [301, 302, 303, 307, 308]) {
    const hops: string[] = []
    const cookies: string[] = []
    const result = await http.request({
      url: `${server.url}/${status}`,
      method: 'POST',
      body: 'A=1',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      hop_headers: hop => {
        hops.push(`${hop.method} ${new URL(hop.url).pathname} ${hop.body ?? '-'}`)
        return { 'x-hop': String(hops.length) }
      },
      hop_answered: (_hop, answer) => cookies.push(...answer.set_cookie),
    })
    const repeats = status > 303
    const seen = echoed(result)
    t.match(result, { redirects: 1, url: `${server.url}/end?x=1` })
    t.match(seen, { method: repeats ? 'POST' : 'GET', body: repeats ? 'A=1' : '', headers: { 'x-hop': '2' } })
    t.equal(seen.headers['content-type'] !== undefined, repeats, `${status}`)
    t.same(hops, [`POST /${status} A=1`, repeats ? 'POST /end A=1' : 'GET /end -'])
    t.same(cookies, ['a=1', 'b=2'])
  }
})

t.test('follows five redirects and fails on more, a loop and a bad Location', async t => {
  let requests = 0
  const server = await serve(t, (request, response) => {
    requests++
    const left = Number(request.url?.slice(1))
    if (request.url === '/loop') response.writeHead(302, { location: '/loop' }).end()
    else if (request.url === '/none') response.writeHead(302).end()
    else if (request.url === '/odd') response.writeHead(302, { location: 'ftp://a.test/' }).end()
    else if (left > 0) response.writeHead(302, { location: `/${left - 1}` }).end()
    else response.end('done')
  })
  const http = client(t)
  t.match(await http.request({ url: `${server.url}/5` }), { ok: true, redirects: 5 })
  t.equal(told(await http.request({ url: `${server.url}/6` })), 'too_many_redirects')
  requests = 0
  t.equal(told(await http.request({ url: `${server.url}/loop` })), 'too_many_redirects')
  t.equal(requests, 6)
  t.equal(told(await http.request({ url: `${server.url}/1`, max_redirects: 0 })), 'too_many_redirects')
  t.equal(told(await http.request({ url: `${server.url}/none` })), 'bad_redirect')
  t.equal(told(await http.request({ url: `${server.url}/odd` })), 'bad_redirect')
  t.equal(told(await http.request({ url: 'ftp://a.test/' })), 'bad_url')
})

t.test('a request to a server that hangs or drips ends at its timeout', async t => {
  const server = await serve(t, (request, response) => {
    if (request.url === '/hang') return
    response.writeHead(200, { 'content-type': 'text/xml' })
    response.write('<Response>')
    if (request.url === '/stop') return
    const drip = setInterval(() => response.write(' '), 20)
    response.on('close', () => clearInterval(drip))
  })
  const mute = await serveRaw(t, () => undefined)
  const http = client(t, {
    resolver: hostname =>
      hostname === 'slow.example.test' ? new Promise(() => undefined) : Promise.resolve(['127.0.0.1']),
  })
  const ask = async (url: string, limits: object) => told(await http.request({ url, ...limits }))
  t.equal(await ask(`${server.url}/hang`, { read_timeout_ms: 100 }), 'read_timeout')
  t.equal(await ask(`${server.url}/stop`, { read_timeout_ms: 100 }), 'read_timeout')
  t.equal(await ask(`${server.url}/drip`, { read_timeout_ms: 5000, total_timeout_ms: 300 }), 'total_timeout')
  t.equal(await ask(`${server.url}/hang`, { total_timeout_ms: 100 }), 'total_timeout')
  t.equal(
    await ask(`https://127.0.0.1:${mute.port}/`, { connect_timeout_ms: 100 }),
    'connect_timeout',
    'a server that accepts but never starts TLS',
  )
  t.equal(await ask('http://slow.example.test/', { connect_timeout_ms: 100 }), 'dns')
  t.equal(await ask('http://slow.example.test/', { total_timeout_ms: 100 }), 'total_timeout')
  t.same(http.stats(), { in_flight: 0, waiting: 0, idle_connections: 0 })
})

t.test('a body over the limit fails, declared or not', async t => {
  const chunk = Buffer.alloc(64 * 1024, 'x')
  let sent = 0
  const server = await serve(t, (request, response) => {
    if (request.url === '/declared') return void response.writeHead(200, { 'content-length': 2 ** 30 }).write(chunk)
    if (request.url === '/exact') return void response.end(Buffer.alloc(1000))
    if (request.url === '/over') return void response.end(Buffer.alloc(1001))
    const pour = (): void => {
      while (!response.destroyed && sent < 2 ** 30) {
        sent += chunk.length
        if (!response.write(chunk)) return void response.once('drain', pour)
      }
    }
    pour()
  })
  const http = client(t)
  t.equal(told(await http.request({ url: `${server.url}/declared` })), 'too_large')
  t.equal(told(await http.request({ url: `${server.url}/pour` })), 'too_large')
  t.ok(sent < 64 * 2 ** 20, `${sent} bytes were sent of a gibibyte`)
  t.match(await http.request({ url: `${server.url}/exact`, max_bytes: 1000 }), { ok: true })
  t.equal(told(await http.request({ url: `${server.url}/over`, max_bytes: 1000 })), 'too_large')
})

t.test('decodes bodies within the limit, ignores names of no coding and rejects decompression bombs', async t => {
  const text = '<Response><Say>Hello</Say></Response>'.repeat(20)
  const bomb = gzipSync(Buffer.alloc(256 * 2 ** 20))
  const bodies: Record<string, [coding: string, body: Buffer]> = {
    '/gzip': ['gzip', gzipSync(text)],
    '/x-gzip': ['X-GZIP', gzipSync(text)],
    '/deflate': ['deflate', deflateSync(text)],
    '/raw': ['deflate', deflateRawSync(text)],
    '/br': ['br', brotliCompressSync(text)],
    '/identity': ['identity', Buffer.from(text)],
    '/bomb': ['gzip', bomb],
    '/bomb-br': ['br', brotliCompressSync(Buffer.alloc(16 * 2 ** 20))],
    '/bomb-deflate': ['deflate', deflateSync(Buffer.alloc(16 * 2 ** 20))],
    '/cut': ['gzip', gzipSync(text).subarray(0, -9)],
    '/lie': ['gzip', Buffer.from(text)],
    '/lie-deflate': ['deflate', Buffer.from([0xff, 0xff, 0xff])],
    '/twice': ['deflate, gzip', gzipSync(deflateSync(text))],
    '/bomb-twice': ['gzip, gzip', gzipSync(bomb)],
    '/many': ['gzip, gzip, gzip, gzip', gzipSync(text)],
    '/utf-8': ['utf-8', Buffer.from(text)],
    '/none': ['none', Buffer.from(text)],
    '/charset': ['UTF-8, gzip', gzipSync(text)],
    '/zstd': ['zstd', Buffer.from(text)],
  }
  const server = await serve(t, (request, response) => {
    const [coding, body] = bodies[request.url ?? ''] ?? ['identity', Buffer.alloc(0)]
    response.writeHead(200, { 'content-encoding': coding }).end(body)
  })
  const http = client(t)
  const ask = async (path: string) => told(await http.request({ url: server.url + path, max_bytes: 2 ** 20 }))
  const whole = ['/gzip', '/x-gzip', '/deflate', '/raw', '/br', '/identity', '/twice', '/utf-8', '/none', '/charset']
  for (const path of whole) t.equal(await ask(path), `200 ${text}`, path)
  t.ok(bomb.length < 2 ** 20, 'the compressed bomb is within the limit')
  for (const path of ['/bomb', '/bomb-br', '/bomb-deflate', '/bomb-twice']) t.equal(await ask(path), 'too_large', path)
  for (const path of ['/cut', '/lie', '/lie-deflate', '/many', '/zstd']) t.equal(await ask(path), 'protocol', path)
})

t.test('rejects a certificate with an unknown root, a wrong name or a past expiry', async t => {
  const good = await serveTls(t, 'good.pem', echo)
  const other = await serveTls(t, 'other-name.pem', echo)
  const expired = await serveTls(t, 'expired.pem', echo)
  const plain = await serve(t, echo)
  const http = client(t, { ca: pem('root.pem'), resolver: async () => ['127.0.0.1'] })
  t.match(await http.request({ url: `https://localhost:${good.port}/` }), { ok: true, status: 200 })
  t.match(await http.request({ url: `https://app.example.test:${good.port}/` }), { ok: true })
  t.match(await http.request({ url: `https://127.0.0.1:${good.port}/` }), { ok: true }, 'an address in the certificate')
  t.equal(told(await http.request({ url: `https://www.example.test:${good.port}/` })), 'tls_name')
  t.equal(told(await http.request({ url: `https://localhost:${other.port}/` })), 'tls_name')
  t.equal(told(await http.request({ url: `https://localhost:${expired.port}/` })), 'tls_expired')
  t.equal(told(await http.request({ url: `https://localhost:${plain.port}/` })), 'tls')
  t.equal(told(await client(t).request({ url: `https://localhost:${good.port}/` })), 'tls_untrusted')
})

t.test('distinguishes protocol errors, broken connections and refused ones', async t => {
  const answers: Record<string, string> = {
    '/garbage': 'SSH-2.0-OpenSSH_9.2\r\n',
    '/header': 'HTTP/1.1 200 OK\r\nBad Header: x\r\n\r\n',
    '/framing': 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    '/long': `HTTP/1.1 200 OK\r\nX-Long: ${'x'.repeat(100_000)}\r\n\r\n`,
    '/upgrade': 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
    '/switch': 'HTTP/1.1 101 Switching Protocols\r\n\r\n',
    '/short': 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc',
    '/chunk': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab',
    '/nothing': '',
    '/until-close': 'HTTP/1.0 200 OK\r\n\r\nuntil the end',
    '/interim':
      'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
    '/proto': 'HTTP/1.1 200 OK\r\n__proto__: x\r\nContent-Length: 2\r\n\r\nok',
  }
  const server = await serveRaw(t, socket =>
    socket.on('data', data => socket.end(answers[data.toString('latin1').split(' ')[1] ?? ''] ?? '')),
  )
  const http = client(t)
  const ask = async (path: string) => told(await http.request({ url: server.url + path, ...PATIENT }))
  for (const path of ['/garbage', '/header', '/framing', '/long', '/upgrade', '/switch'])
    t.equal(await ask(path), 'protocol', path)
  for (const path of ['/short', '/chunk', '/nothing']) t.equal(await ask(path), 'network', path)
  t.equal(await ask('/until-close'), '200 until the end')
  t.equal(await ask('/interim'), '200 ok')
  t.equal(await ask('/proto'), '200 ok')
  t.equal(told(await http.request({ url: `http://127.0.0.1:${await freePort()}/` })), 'refused')
})

t.test('a 100 Continue that nobody asked for precedes a response in any pieces, also on a kept connection', async t => {
  const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nHTTP/1.1 100 is text'
  const go_on = 'HTTP/1.1 100 Continue\r\n\r\n'
  const arrivals: Record<string, readonly string[]> = {
    '/apart': [go_on, answer],
    '/together': [go_on + answer],
    '/bytes': [...(go_on + answer)],
    '/twice': [`${go_on}HTTP/1.1 103 Early Hints\r\n\r\n`, `HTTP/1.1 100\r\nDate: now\r\n\r\n${answer}`],
    '/body': [answer.slice(0, -20), answer.slice(-20)],
  }
  const server = await serveRaw(t, socket => {
    socket.setNoDelay(true)
    let asked = ''
    socket.on('data', async data => {
      asked += data.toString('latin1')
      if (!asked.includes('\r\n\r\n') || (asked.startsWith('POST') && !asked.endsWith('hello'))) return
      const pieces = arrivals[asked.split(' ')[1] ?? ''] ?? []
      asked = ''
      for (const piece of pieces) await new Promise(sent => socket.write(piece, sent))
    })
  })
  const http = client(t)
  const ask = async (path: string, method: 'GET' | 'POST') => {
    const body = method === 'POST' ? { body: 'hello', replayable: true } : {}
    return told(await http.request({ url: server.url + path, method, ...PATIENT, ...body }))
  }
  for (const path of Object.keys(arrivals))
    for (const method of ['GET', 'POST'] as const)
      t.equal(await ask(path, method), '200 HTTP/1.1 100 is text', `${method} ${path}`)
  t.equal(server.connections(), 1)
})

/** Reads the parameters of `Digest a="b", c=d`. */
const digestOf = (header: string): Record<string, string> =>
  Object.fromEntries([...header.matchAll(/(\w+)="?([^",]*)"?/g)].map(([, name, value]) => [name, value]))

/** The Authorization that a server expects, computed from the same parameters (RFC 7616 §3.4.1). */
function digestFits(request: IncomingMessage, [user, password]: [user: string, password: string], nonce: string) {
  const given = digestOf(request.headers.authorization?.replace(/^Digest /, '') ?? '')
  const hash = (text: string) => createHash('sha256').update(text).digest('hex')
  const first = hash(`${user}:voice:${password}`)
  const second = hash(`${request.method}:${request.url}`)
  const wanted = hash(`${first}:${nonce}:${given['nc']}:${given['cnonce']}:auth:${second}`)
  return given['username'] === user && given['uri'] === request.url && given['response'] === wanted
}

t.test('answers a Digest challenge with the URL user info, and sends the body again', async t => {
  const seen: string[] = []
  let nonce = 'first'
  const server = await serve(t, (request, response) => {
    const body: Buffer[] = []
    request.on('data', chunk => body.push(chunk))
    request.on('end', () => {
      seen.push(`${request.headers.authorization?.split(' ')[0]} ${Buffer.concat(body)}`)
      const too_old = request.url === '/stale' && seen.length === 2
      if (too_old) nonce = 'second'
      if (digestFits(request, ['ann', 'p:ss'], nonce)) return void response.end('let in')
      const stale = too_old ? ', stale=true' : ''
      const challenge = `Digest realm="voice", qop="auth,auth-int", algorithm=SHA-256, nonce="${nonce}"${stale}`
      response.writeHead(401, { 'WWW-Authenticate': [challenge, 'Basic realm="voice"'] }).end('who are you?')
    })
  })
  const http = client(t)
  const ask = async (path: string, user: string) => {
    seen.length = 0
    const url = `http://${user}127.0.0.1:${server.port}${path}`
    return [told(await http.request({ url, method: 'POST', body: 'hello' })), ...seen]
  }
  t.same(await ask('/hook?a=b%20c', 'ann:p%3Ass@'), ['200 let in', 'Basic hello', 'Digest hello'])
  t.same(await ask('/hook', 'ann:wrong@'), ['401 who are you?', 'Basic hello', 'Digest hello'], 'answered once')
  t.same(await ask('/hook', ''), ['401 who are you?', 'undefined hello'])
  const answered = ['200 let in', 'Basic hello', 'Digest hello', 'Digest hello']
  t.same(await ask('/stale', 'ann:p%3Ass@'), answered, 'only the nonce was too old')
})

t.test('a Digest challenge of another origin gets no answer, and one behind a redirect at home does', async t => {
  const challenge = { 'WWW-Authenticate': 'Digest realm="voice", qop="auth", algorithm=SHA-256, nonce="n"' }
  const heard: (string | undefined)[] = []
  const other = await serve(t, (request, response) => {
    heard.push(request.headers.authorization)
    response.writeHead(401, challenge).end('no')
  })
  const server = await serve(t, (request, response) => {
    if (request.url === '/away') return void response.writeHead(307, { location: `${other.url}/` }).end()
    if (request.url === '/home') return void response.writeHead(307, { location: '/hook' }).end()
    if (digestFits(request, ['ann', 'secret'], 'n')) return void response.end('let in')
    response.writeHead(401, challenge).end('no')
  })
  const http = client(t)
  const ask = async (path: string) =>
    told(await http.request({ url: `http://ann:secret@127.0.0.1:${server.port}${path}` }))
  t.equal(await ask('/away'), '401 no')
  t.same(heard, [undefined], 'another origin learns nothing')
  t.equal(await ask('/home'), '200 let in')
})

t.test('random responses always end as a value and leave no connection behind', async t => {
  let state = SEED
  const random = (below: number): number => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff
    return Math.floor((state / 2 ** 31) * below)
  }
  const head = 'HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n'
  const answers = [
    () => head.slice(0, random(head.length)),
    () => `${head}5\r\nabcde\r\n`,
    () => 'HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n',
    () => 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello',
    () => 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello and more',
    () => String.fromCharCode(...Array.from({ length: 60 }, () => random(256))),
    () => 'HTTP/1.1 307 Away\r\nLocation: http://10.0.0.1/\r\nContent-Length: 9\r\n\r\nxx',
  ]
  const server = await serveRaw(t, socket =>
    socket.on('data', () => {
      socket.write(answers[random(answers.length)]?.() ?? '', 'latin1')
      const then = random(10)
      if (then < 3) socket.end()
      else if (then < 5) socket.destroy()
      else if (then < 6) socket.resetAndDestroy()
    }),
  )
  const http = client(t)
  const one = (round: number): Promise<HttpResult> => {
    const caller = new AbortController()
    if (random(10) === 0) setImmediate(() => caller.abort())
    return http.request({
      url: server.url,
      ...(random(2) === 0 ? { method: 'POST', body: 'a=1' } : {}),
      replayable: random(2) === 0,
      keep_body: (['always', 'success', 'never'] as const)[random(3)] ?? 'always',
      // A busy machine rarely answers within these times. From the tenth round on they grow.
      read_timeout_ms: 50 * Math.max(1, round - 9),
      total_timeout_ms: 150 * Math.max(1, round - 9),
      signal: caller.signal,
    })
  }
  const ends = new Set<string>()
  const rare = (): boolean => !['200', 'protocol', 'private_address'].every(end => ends.has(end))
  for (let round = 1; round <= 10 || (round <= 100 && rare()); round++)
    for (const result of await Promise.all(Array.from({ length: 40 }, () => one(round))))
      ends.add(result.ok ? String(result.status) : result.error)
  t.notOk(rare(), [...ends].join(' '))
  t.match(http.stats(), { in_flight: 0, waiting: 0 })
  await http.close()
  // The server may still accept a pending connection before the client closes it.
  await until('no socket is left', () => server.sockets.size === 0)
})

t.test('a caller can abort its request, and close aborts all', async t => {
  const server = await serve(t, () => undefined)
  const http = client(t)
  const caller = new AbortController()
  const first = http.request({ url: server.url, signal: caller.signal })
  const second = http.request({ url: server.url })
  const third = http.request({ url: `${server.url}/x`, method: 'POST', body: 'x' })
  while (server.connections() < 3) await new Promise(resolve => setImmediate(resolve))
  caller.abort()
  t.equal(told(await first), 'aborted')
  t.equal(http.stats().in_flight, 2)
  await http.close()
  t.equal(told(await second), 'aborted')
  t.equal(told(await third), 'aborted')
  t.equal(told(await http.request({ url: server.url })), 'aborted')
  t.equal(told(await http.request({ url: server.url, signal: AbortSignal.abort() })), 'aborted')
  await until('no socket is left', () => server.sockets.size === 0)
})

t.test('who opens a connection may give up at any moment, by a signal without a reason', async t => {
  const server = await serve(t, () => undefined)
  const parsed = parseTarget(server.url)
  if (!parsed.ok) throw new Error(parsed.detail)
  const { target } = parsed
  const guard = createAddressGuard(['loopback'])
  const open = (signal: AbortSignal) =>
    connectSocket({ target, addresses: ['127.0.0.1'], timeout_ms: PATIENCE_MS, ca: undefined, signal }, guard)
  const late = new AbortController()
  const opening = open(late.signal)
  late.abort()
  await t.rejects(opening, { error: 'network' }, 'while it connects')
  await t.rejects(open(AbortSignal.abort()), { error: 'network' }, 'before')
  await until('no socket is left', () => server.sockets.size === 0)
})

t.test('repeatable requests reuse a connection, and a closed one causes no failure', async t => {
  let requests = 0
  const server = await serve(t, (request, response) => {
    requests++
    request.resume().on('end', () => response.end('ok'))
  })
  const http = client(t, { idle_ms: PATIENCE_MS })
  const post = { url: server.url, method: 'POST', body: 'x' } as const
  await http.request({ url: server.url })
  await http.request({ ...post, replayable: true })
  t.equal(server.connections(), 1)
  const warnings: Error[] = []
  const warned = (warning: Error): unknown => warnings.push(warning)
  process.on('warning', warned)
  for (let n = 0; n < 30; n++) await http.request({ ...post, replayable: true })
  await new Promise(resolve => setImmediate(resolve))
  process.off('warning', warned)
  t.same(warnings, [], 'a connection does not accumulate listeners')
  t.equal(server.connections(), 1)
  await http.request(post)
  t.equal(server.connections(), 2, 'a POST that must not run twice gets a new connection')
  const before = requests
  // The server closes its connections just as the next request is sent.
  for (const socket of server.sockets) socket.destroy()
  t.match(await http.request({ ...post, replayable: true }), { ok: true })
  t.equal(requests, before + 1)
  await http.close()
  t.equal(http.stats().idle_connections, 0)
})

t.test('does not wait for or limit an unwanted body, and a short one keeps the connection', async t => {
  const server = await serve(t, (request, response) => {
    if (request.url === '/error') response.writeHead(500).end(Buffer.alloc(200_000))
    else if (request.url === '/endless') response.writeHead(200).write('x')
    else response.end('short')
  })
  const http = client(t)
  t.match(await http.request({ url: `${server.url}/error`, keep_body: 'success' }), { ok: true, status: 500 })
  t.match(await http.request({ url: `${server.url}/endless`, keep_body: 'never' }), { ok: true, status: 200 })
  const connections = server.connections()
  t.equal(told(await http.request({ url: server.url, keep_body: 'never' })), '200 ')
  while (http.stats().idle_connections === 0) await new Promise(resolve => setImmediate(resolve))
  t.equal(told(await http.request({ url: server.url })), '200 short')
  t.equal(server.connections(), connections + 1)
})

t.test('a slow origin delays only its own callers, and requests over the total limit fail', async t => {
  const held: ServerResponse[] = []
  const slow = await serve(t, (_request, response) => held.push(response))
  const quick = await serve(t, (_request, response) => response.end('quick'))
  const http = client(t, { max_in_flight: 4, max_in_flight_per_origin: 2 })
  const waiting = [1, 2, 3].map(n => http.request({ url: `${slow.url}/${n}` }))
  const given_up = new AbortController()
  while (held.length < 2) await new Promise(resolve => setImmediate(resolve))
  t.same(http.stats(), { in_flight: 2, waiting: 1, idle_connections: 0 })
  t.equal(told(await http.request({ url: quick.url })), '200 quick')
  const fourth = http.request({ url: `${slow.url}/4`, signal: given_up.signal })
  t.equal(told(await http.request({ url: quick.url })), 'network', 'the fifth request fails at once')
  given_up.abort()
  t.equal(told(await fourth), 'aborted')
  held[0]?.end('first')
  while (held.length < 3) await new Promise(resolve => setImmediate(resolve))
  for (const response of held.slice(1)) response.end('later')
  t.same((await Promise.all(waiting)).map(told), ['200 first', '200 later', '200 later'])
  t.match(http.stats(), { in_flight: 0, waiting: 0 })
})

t.test('a project whose server hangs leaves places for the requests of others', async t => {
  const held: ServerResponse[] = []
  const slow = await serve(t, (_request, response) => held.push(response))
  const quick = await serve(t, (_request, response) => response.end('quick'))
  const http = client(t, { max_in_flight: 6, max_in_flight_per_origin: 1 })
  const ask = (project_id: string, url: string) => http.request({ url, project_id }).then(told)
  const waiting = [1, 2, 3, 4, 5, 6].map(n => ask('greedy', `${slow.url}/${n}`))
  t.same(await Promise.all(waiting.slice(3)), ['network', 'network', 'network'], 'those that wait count too')
  t.equal(await ask('rival', quick.url), '200 quick')
  for (let n = 0; n < 3; n++) {
    await until('the next request is at the server', () => held.length > n)
    held[n]?.end('late')
  }
  t.same(await Promise.all(waiting.slice(0, 3)), ['200 late', '200 late', '200 late'])
  t.equal(await ask('greedy', quick.url), '200 quick', 'its places are free again')
})

t.test('a project that names slow pages of a rival leaves the rival its places at that server', async t => {
  const held: ServerResponse[] = []
  const server = await serve(
    t,
    ({ url }, response) => void (url === '/slow' ? held.push(response) : response.end('own')),
  )
  const http = client(t, { max_in_flight: 12, max_in_flight_per_origin: 2 })
  const ask = (project_id: string, path: string) => http.request({ url: server.url + path, project_id }).then(told)
  const waiting = [1, 2, 3].map(() => ask('greedy', '/slow'))
  await until('both places of the project are taken', () => held.length === 2)
  t.equal(http.stats().waiting, 1, 'a place at a server is one of many, for one project')
  t.equal(await ask('rival', '/own'), '200 own')
  held[0]?.end('late')
  await until('the next one has its turn', () => held.length === 3)
  for (const response of held.slice(1)) response.end('late')
  t.same(await Promise.all(waiting), ['200 late', '200 late', '200 late'])
})

t.test('a download replaces its file only when it is complete', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'strowger-http-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'prompt.wav')
  const audio = Buffer.alloc(300_000, 'audio')
  const server = await serve(t, (request, response) => {
    if (request.url === '/missing') response.writeHead(404).end('no such prompt')
    else if (request.url === '/cut')
      response.writeHead(200, { 'content-length': 99 }).write('half', () => response.destroy())
    else if (request.url === '/moved') response.writeHead(302, { location: '/prompt.wav' }).end()
    else if (request.headers['if-none-match'] === '"v1"') response.writeHead(304, { etag: '"v1"' }).end()
    else if (request.headers['if-modified-since']) response.writeHead(304).end()
    else {
      const validators = { etag: '"v1"', 'last-modified': 'Sat, 21 Nov 2026 12:00:00 GMT' }
      response.writeHead(200, { 'content-type': 'audio/wav', ...validators }).end(audio)
    }
  })
  const http = client(t)
  const url = `${server.url}/prompt.wav`
  await writeFile(file, 'older')
  // Many at once: a response may be cut while its file is being opened.
  const cut = await Promise.all(Array.from({ length: 40 }, () => http.download({ url: `${server.url}/cut`, file })))
  t.notOk(cut.some(({ ok }) => ok))
  t.match(await http.download({ url: `${server.url}/missing`, file }), {
    ok: true,
    status: 404,
    saved: false,
    bytes: 0,
  })
  t.match(await http.download({ url, file, max_bytes: 100_000 }), { ok: false, error: 'too_large' })
  t.equal(await readFile(file, 'utf8'), 'older')
  t.match(await http.download({ url: `${server.url}/moved`, file }), {
    ok: true,
    status: 200,
    saved: true,
    bytes: audio.length,
    etag: '"v1"',
    last_modified: 'Sat, 21 Nov 2026 12:00:00 GMT',
    content_type: 'audio/wav',
    redirects: 1,
  })
  t.ok((await readFile(file)).equals(audio))
  t.match(await http.download({ url, file, etag: '"v1"' }), { ok: true, status: 304, saved: false })
  const last_modified = 'Sat, 21 Nov 2026 12:00:00 GMT'
  t.match(await http.download({ url, file, etag: null, last_modified }), { ok: true, status: 304, saved: false })
  t.match(await http.download({ url, file: join(folder, 'no', 'such', 'folder') }), { ok: false, error: 'file' })
  t.same(await readdir(folder), ['prompt.wav'], 'no partial files remain')
})

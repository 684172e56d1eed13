import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { WebSocket } from 'ws'
import t, { type Test } from '../../support/harness/index.ts'
import { until } from '../../support/wait.ts'
import { Peer, request, SDP, starts, tagOf, type World, world } from './peer.ts'
import { testClock } from './test-clock.ts'
import { testTls } from './test-tls.ts'

// Tests that memory and sockets stay bounded when connections stall, are silent, never read or are too many.

const tls = await testTls()

interface Stream {
  readonly socket: Socket
  /** Returns all text so far. */
  read(): string
  readonly closed: Promise<unknown>
}

async function open(t: Test, w: World, protocol = 'tcp', from = '127.0.0.1'): Promise<Stream> {
  const port = w.edge.listeners.find(l => l.protocol === protocol)?.port ?? 0
  const socket = connect({ port, host: '127.0.0.1', localAddress: from })
  let text = ''
  socket.on('data', data => {
    text += data.toString('latin1')
  })
  socket.on('error', () => undefined)
  const closed = new Promise(resolve => socket.once('close', resolve))
  await once(socket, 'connect')
  t.teardown(() => socket.destroy())
  return { socket, read: () => text, closed }
}

const options = (parts: Parameters<typeof request>[2] = {}): string =>
  request('OPTIONS', 9, { via: 'SIP/2.0/TCP', ...parts })
const answered = (stream: Stream) => until('it is answered', () => stream.read().includes('SIP/2.0 200'))

t.test('a keep-alive is answered, and a message may arrive byte by byte', async t => {
  const w = await world(t)
  const a = await open(t, w)
  a.socket.write('\r\n\r\n')
  await until('a line break', () => a.read() === '\r\n')
  for (const c of options()) a.socket.write(c)
  await answered(a)
  a.socket.write(`${options({ call_id: 'p1' })}\r\n\r\n${options({ call_id: 'p2' })}`)
  await until('both requests of one chunk are answered', () => a.read().includes('p1') && a.read().includes('p2'))
  const breaks = a.read().replaceAll(/SIP\/2\.0 200[\s\S]*?\r\n\r\n/g, '')
  t.equal(breaks, '\r\n\r\n', 'the keep-alive between them is answered')
})

t.test('whole requests are answered before a connection closes for what came behind them', async t => {
  const w = await world(t)
  const two = [options({ call_id: 'first' }), options({ call_id: 'second' })].join('')
  for (const behind of ['a=rtp', 'garbage\r\n\r\n', '', '\r\n']) {
    const stream = await open(t, w)
    stream.socket.end(two + behind)
    await stream.closed
    for (const call_id of ['first', 'second'])
      t.match(
        stream.read(),
        new RegExp(`SIP/2.0 200[^]*Call-ID: ${call_id}\r`),
        `${call_id}, before ${behind || 'the end'}`,
      )
  }
  await until('no connection stays', () => w.edge.stats().sip_connections === 0)
})

for (const host of ['127.0.0.1', 'localhost'])
  t.test(`a request in a dialog goes to a new connection to ${host} once its peer has ended the old one`, async t => {
    const w = await world(t)
    const { robot } = w
    robot.answer = method => (method === 'INFO' ? 0 : 200)
    let again = ''
    const server = createServer(socket =>
      socket.on('data', data => {
        again += data.toString('latin1')
      }),
    ).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close())
    const { port } = server.address() as AddressInfo
    const call = { call_id: 'ended', via: 'SIP/2.0/TCP' }
    const overTcp = (text: string): string => text.replace(`127.0.0.1:${port}>`, `${host}:${port};transport=tcp>`)
    const stream = await open(t, w)
    stream.socket.write(overTcp(request('INVITE', port, { ...call, body: SDP })))
    await answered(stream)
    const to_tag = tagOf(stream.read().slice(stream.read().indexOf('SIP/2.0 200')))
    stream.socket.write(request('ACK', port, { ...call, to_tag }))
    stream.socket.write(request('INFO', port, { ...call, to_tag, cseq: 2 }))
    // Nothing can be framed behind this. The connection stays for the answer to the INFO alone.
    stream.socket.write(options().replace(/Content-Length: 0\r\n/, ''))
    await until('the rest is refused', () => stream.read().includes('SIP/2.0 400'))
    robot.command('b1|sip||ended;from-tag=a\r\nBYE sip:placeholder SIP/2.0\r\n\r\n')
    await until('the BYE is at the peer', () => again.startsWith('BYE '))
    t.notMatch(stream.read(), /^BYE /m)
  })

t.test('a request whose connection is lost before its answer leaves nothing open in its dialog', async t => {
  const w = await world(t)
  const { robot, edge } = w
  const peer = await Peer.open(t)
  robot.answer = (_method, text) => (/CSeq: [23] /.test(text) ? 0 : 200)
  const call = { call_id: 'lost', via: 'SIP/2.0/TCP' }
  const first = await open(t, w)
  first.socket.write(request('INVITE', peer.port, { ...call, body: SDP }))
  await answered(first)
  const to_tag = tagOf(first.read().slice(first.read().indexOf('SIP/2.0 200')))
  first.socket.write(request('ACK', peer.port, { ...call, to_tag }))
  for (const [cseq, method] of [
    [2, 'INVITE'],
    [3, 'BYE'],
  ] as const) {
    const stream = await open(t, w)
    stream.socket.write(request(method, peer.port, { ...call, to_tag, cseq, ...(cseq === 2 ? { body: SDP } : {}) }))
    const seen = await until('the application has it', () => robot.seen.find(s => s.text.includes(`CSeq: ${cseq} `)))
    stream.socket.resetAndDestroy()
    await until('the connection is gone', () => edge.stats().sip_connections === 1)
    const answer = `SIP/2.0 ${cseq === 2 ? 488 : 200} Robot\r\ncseq: ${cseq} ${method}\r\n\r\n`
    robot.command(`r${cseq}|sip|${seen.fields[8]}|\r\n${answer}`)
    const unsent = `|r${cseq}|NOK|transport for response`
    await until('the edge says that it cannot send', () => robot.replies.some(said => said.includes(unsent)))
    if (cseq === 3) break
    // The dialog has no open INVITE, so another may begin.
    robot.command(`c1|sip||lost;from-tag=a\r\nINVITE sip:placeholder SIP/2.0\r\n\r\n${SDP}`)
    await until(
      'our re-INVITE is at the peer',
      () => /^INVITE /m.test(first.read()) || peer.arrived.some(starts('INVITE')),
    )
  }
  t.equal(edge.stats().dialogs, 0, 'the BYE has ended it')
})

t.test('a message that is too large or cannot be framed is refused, and its connection closes', async t => {
  const w = await world(t)
  const begin = 'OPTIONS sip:x SIP/2.0\r\nVia: SIP/2.0/TCP 127.0.0.1;branch=z9hG4bKh\r\n'
  const cases: readonly (readonly [string, number, string])[] = [
    ['headers beyond 64 KiB', 513, `${begin}X-Big: ${'y'.repeat(70_000)}`],
    ['a body beyond 64 KiB', 413, options().replace('Content-Length: 0', 'Content-Length: 70000')],
    ['a body of a terabyte', 413, options().replace('Content-Length: 0', 'Content-Length: 1099511627776')],
    ['no Content-Length', 400, options().replace(/Content-Length: 0\r\n/, '')],
    ['a negative Content-Length', 400, options().replace('Content-Length: 0', 'Content-Length: -5')],
    ['two different Content-Lengths', 400, options({ headers: ['Content-Length: 7'] })],
  ]
  for (const [what, expected, text] of cases) {
    const stream = await open(t, w)
    stream.socket.write(text)
    await stream.closed
    t.equal(Number(stream.read().slice(8, 11)), expected, `${what}: ${expected}`)
  }
  const many = await open(t, w)
  many.socket.write(options({ headers: Array.from({ length: 300 }, (_, i) => `X-${i}: y`) }))
  await until('513', () => many.read().startsWith('SIP/2.0 513 '))
  many.socket.write(options())
  await answered(many)
  t.pass('300 header lines get 513, but their connection stays open')
  t.equal(w.robot.seen.length, 1)
})

t.test('a connection whose message drips or stalls is closed after 30 s; a busy connection is not', async t => {
  const w = await world(t, { clock: testClock(20) })
  const stalled = await open(t, w)
  stalled.socket.write('OPTIONS sip:x SIP/2.0\r\nVia: SIP')
  const dripping = await open(t, w)
  const drips = setInterval(() => dripping.socket.write('x'), 20)
  t.teardown(() => clearInterval(drips))
  // Each of its chunks ends in the middle of a message.
  const busy = await open(t, w)
  const text = options()
  busy.socket.write(text.slice(0, 100))
  const parts = setInterval(() => busy.socket.write(text.slice(100) + text.slice(0, 100)), 20)
  t.teardown(() => clearInterval(parts))
  let open_still = true
  void busy.closed.then(() => {
    open_still = false
  })
  await stalled.closed
  await dripping.closed
  t.equal(open_still, true, 'a connection whose chunks all end in the middle of a message stays open')
  t.match(busy.read(), /SIP\/2\.0 200/)
})

t.test('above the limit the connections idle for longest are closed, and in the end every idle one', async t => {
  const w = await world(t, { clock: testClock(20), limits: { connections: 50, idle_ms: 60_000 } })
  const first = await open(t, w)
  const idle = await Promise.all(Array.from({ length: 49 }, () => open(t, w)))
  await until('the edge has accepted them', () => w.edge.stats().sip_connections === 50)
  first.socket.write(options())
  await answered(first)
  const more = await Promise.all(Array.from({ length: 49 }, () => open(t, w)))
  await until('the edge has closed as many', () => w.edge.stats().counters.refused_connections === 49)
  await Promise.all(idle.map(one => one.closed))
  t.equal(w.edge.stats().sip_connections, 50, 'the most recently active one stays open')
  first.socket.write(options({ call_id: 'again' }))
  await until('it is served', () => first.read().includes('again'))
  await Promise.all([first, ...more].map(one => one.closed))
  t.equal(w.edge.stats().sip_connections, 0, 'idle connections are closed in the end')
})

t.test('a connection over which a contact was registered stays as long as the contact', async t => {
  const clock = testClock(40)
  const listeners = (['tcp', 'ws'] as const).map(protocol => ({ protocol, host: '127.0.0.1', port: 0 }))
  const w = await world(t, { clock, listeners, limits: { idle_ms: 60_000 } })
  w.robot.answer = (_method, text) => (text.includes('Call-ID: stranger') ? 403 : 200)
  w.robot.headers = method => (method === 'REGISTER' ? 'Contact: <sip:alice@127.0.0.1:9>;expires=300\r\n' : '')
  const asks = async (method: string, call_id: string): Promise<Stream> => {
    const stream = await open(t, w)
    stream.socket.write(request(method, 9, { via: 'SIP/2.0/TCP', call_id, headers: ['Expires: 3600'] }))
    await until('it is answered', () => stream.read().includes(`Call-ID: ${call_id}`))
    return stream
  }
  const subscribed = await asks('SUBSCRIBE', 'subscriber')
  const registered = await asks('REGISTER', 'phone')
  const refused = await asks('REGISTER', 'stranger')
  const port = w.edge.listeners.find(l => l.protocol === 'ws')?.port ?? 0
  const web = new WebSocket(`ws://127.0.0.1:${port}`, 'sip')
  t.teardown(() => web.terminate())
  await once(web, 'open')
  const pings = setInterval(() => web.ping(), 20)
  t.teardown(() => clearInterval(pings))
  await Promise.all([subscribed.closed, refused.closed])
  await clock.pass(90_000)
  t.equal(w.edge.stats().sip_connections, 2, 'the registered connection and the one with pings stay open')
  w.robot.command(`c1|sip||\r\nINVITE sip:alice@127.0.0.1:9 SIP/2.0\r\nCall-ID: late\r\n\r\n${SDP}`)
  await until('the INVITE is at the telephone', () => /^INVITE [\s\S]*Call-ID: late\r/m.test(registered.read()))
  await registered.closed
  t.pass('when the contact has expired, its connection is idle')
})

t.test('one source gets only its share of the connections, handshakes included', async t => {
  const w = await world(t, {
    listeners: [
      { protocol: 'tcp', host: '127.0.0.1', port: 0 },
      { protocol: 'tls', host: '127.0.0.1', port: 0 },
      { protocol: 'ws', host: '127.0.0.1', port: 0 },
    ],
    tls,
    limits: { connections_per_source: 6 },
  })
  const taken = await Promise.all(['tcp', 'tcp', 'tls', 'tls', 'ws', 'ws'].map(protocol => open(t, w, protocol)))
  for (const protocol of ['tcp', 'tls', 'ws']) await (await open(t, w, protocol)).closed
  t.pass('the seventh of a source is closed at once')
  const other = await open(t, w, 'tcp', '127.0.0.2')
  other.socket.write(options())
  await answered(other)
  t.pass('another source is served')
  for (const one of taken) one.socket.destroy()
  await until('they are gone', () => w.edge.stats().sip_connections === 1)
  // A client that completes its handshake and closes frees its place.
  const port = w.edge.listeners.find(l => l.protocol === 'tls')?.port ?? 0
  for (let i = 0; i < 20; i++) {
    const secure = connectTls({ host: '127.0.0.1', port, ca: tls.cert })
    await once(secure, 'secureConnect')
    await until('it is known', () => w.edge.stats().sip_connections === 2)
    secure.end()
    await until('it is gone', () => w.edge.stats().sip_connections === 1)
  }
})

t.test('1,000 silent TLS connections block no other handshake, close no connection, and time out', async t => {
  // The clock is stopped until the edge has served the other clients, however long that takes.
  const clock = testClock(0)
  const w = await world(t, {
    clock,
    listeners: [{ protocol: 'tls', host: '127.0.0.1', port: 0 }],
    tls,
    limits: { handshake_ms: 3_000, connections: 500 },
  })
  const port = w.edge.listeners[0]?.port ?? 0
  const secure = async (call_id: string) => {
    const socket = connectTls({ host: '127.0.0.1', port, ca: tls.cert })
    t.teardown(() => socket.destroy())
    await once(socket, 'secureConnect')
    const heard = once(socket, 'data')
    socket.write(request('OPTIONS', 9, { via: 'SIP/2.0/TLS', call_id }))
    t.match(String((await heard)[0]), new RegExp(`^SIP/2\\.0 200 [\\s\\S]*${call_id}`))
    return socket
  }
  const before = await secure('before')
  const half = await Promise.all(Array.from({ length: 1_000 }, () => open(t, w, 'tls')))
  await secure('during')
  const heard = once(before, 'data')
  before.write(request('OPTIONS', 9, { via: 'SIP/2.0/TLS', call_id: 'still' }))
  t.match(String((await heard)[0]), /still/, 'the existing connection stays open')
  clock.speed = 10
  await Promise.all(half.map(one => one.closed))
  t.equal(w.edge.stats().sip_connections, 2)
})

t.test('a WebSocket handshake, plain or over TLS, that does not finish in time is closed', async t => {
  const clock = testClock(0)
  const w = await world(t, {
    clock,
    listeners: [
      { protocol: 'ws', host: '127.0.0.1', port: 0 },
      { protocol: 'wss', host: '127.0.0.1', port: 0, same_port: true },
    ],
    tls,
    limits: { handshake_ms: 4_000 },
  })
  const port = w.edge.listeners[0]?.port ?? 0
  const web = new WebSocket(`wss://127.0.0.1:${port}`, 'sip', { ca: tls.cert })
  t.teardown(() => web.terminate())
  await once(web, 'open')
  const silent = await open(t, w, 'ws')
  const begun = await open(t, w, 'ws')
  begun.socket.write(Buffer.from([22, 3, 1]))
  const dripping = await open(t, w, 'ws')
  dripping.socket.write('GET / HTTP/1.1\r\n')
  const drips = setInterval(() => dripping.socket.write('X-A: b\r\n'), 50)
  t.teardown(() => clearInterval(drips))
  const idle = connectTls({ host: '127.0.0.1', port, ca: tls.cert })
  t.teardown(() => idle.destroy())
  idle.on('error', () => undefined)
  const shut = new Promise(resolve => idle.once('close', resolve))
  clock.speed = 4
  await Promise.all([silent.closed, begun.closed, dripping.closed, shut])
  t.equal(w.edge.stats().sip_connections, 1, 'the connection with a finished handshake stays open')
  web.send(request('OPTIONS', 9, { via: 'SIP/2.0/WSS' }))
  const [heard] = (await once(web, 'message')) as [Buffer]
  t.match(heard.toString(), /^SIP\/2\.0 200 /)
})

t.test('a peer that never reads is disconnected', async t => {
  const w = await world(t, {
    listeners: [
      { protocol: 'tcp', host: '127.0.0.1', port: 0 },
      { protocol: 'ws', host: '127.0.0.1', port: 0 },
    ],
    isConfiguredSource: () => true,
    limits: { unsent_bytes: 64 * 1024 },
  })
  // The edge itself refuses this request and repeats its large From, so that many bytes wait for the peer.
  const asks = (via: string): string =>
    request('OPTIONS', 9, { via, headers: ['Require: x'] }).replace('From: ', `From: "${'f'.repeat(30_000)}" `)

  const deaf = await open(t, w)
  deaf.socket.pause()
  // A paused socket does not report that it was closed, so ask the edge.
  await until('TCP: the edge disconnects it', () => {
    for (let i = 0; i < 20 && deaf.socket.writableLength < 1_000_000; i++) deaf.socket.write(asks('SIP/2.0/TCP'))
    return w.edge.stats().sip_connections === 0
  })

  const port = w.edge.listeners.find(l => l.protocol === 'ws')?.port ?? 0
  const web = new WebSocket(`ws://127.0.0.1:${port}`, 'sip')
  web.on('error', () => undefined)
  await once(web, 'open')
  t.teardown(() => web.terminate())
  web.pause()
  await until('WebSocket: the edge disconnects it', () => {
    for (let i = 0; i < 20 && web.bufferedAmount < 1_000_000; i++) web.send(asks('SIP/2.0/WS'))
    return w.edge.stats().sip_connections === 0
  })
  const other = await open(t, w)
  other.socket.write(options())
  await answered(other)
  t.pass('and another is served')
})

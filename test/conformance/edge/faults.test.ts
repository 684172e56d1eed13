import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import t from 'tap'
import { fastClock } from './fast-clock.ts'
import { final, Peer, pause, reply, request, SDP, starts, status, tagOf, world } from './peer.ts'
import { testTls } from './test-tls.ts'

// Peers that flood, stall, guess or vanish, and an application that is lost: what must not stop others, and what must
// not stay.

const tls = await testTls()

t.test('when the application is lost, new calls get 503 at once and old ones are ended on both sides', async t => {
  const { port, robot, edge } = await world(t, { clock: fastClock(20) })
  const peer = await Peer.open(t)
  peer.send(request('INVITE', peer.port, { call_id: 'orphan', body: SDP }), port)
  const to_tag = tagOf(await peer.next(status(200)))
  peer.send(request('ACK', peer.port, { call_id: 'orphan', to_tag }), port)
  robot.answer = () => 0
  peer.send(request('INVITE', peer.port, { call_id: 'ringing', body: SDP, from_tag: 'r' }), port)
  await peer.next(text => text.startsWith('SIP/2.0 100') && text.includes('ringing'))
  const outgoing = `o1|sip||\r\nINVITE sip:bob@127.0.0.1:${peer.port} SIP/2.0\r\nCall-ID: outgoing\r\n\r\n${SDP}`
  robot.command(outgoing)
  const ours = await peer.next(starts('INVITE'))
  peer.send(reply(ours, 180, 'late', '', peer.port), port)
  while (!robot.seen.some(s => s.text.startsWith('SIP/2.0 180'))) await pause(5)
  robot.close()
  while (edge.stats().applications > 0) await pause(5)
  peer.send(request('INVITE', peer.port, { call_id: 'next', body: SDP, from_tag: 'n' }), port)
  t.match(await peer.next(text => final(text) && text.includes('next')), /^SIP\/2\.0 503 /)
  t.match(await peer.next(starts('BYE')), /Call-ID: orphan/, 'the answered call gets BYE')
  t.ok(await peer.next(text => status(503)(text) && text.includes('ringing')), 'the ringing one gets a final answer')
  t.match(await peer.next(starts('CANCEL')), /Call-ID: outgoing/, 'the outgoing one is cancelled')
  peer.send(reply(ours, 487, 'late', '', peer.port), port)
  while (edge.stats().dialogs > 0) await pause(5)
})

t.test('a stranger that fails again and again is dropped in silence, a configured source never', async t => {
  const configured = new Set<string>()
  const { port, robot, edge } = await world(t, { isConfiguredSource: host => configured.has(host) })
  robot.answer = () => 403
  const peer = await Peer.open(t)
  for (let i = 0; i < 5; i++) {
    peer.send(request('OPTIONS', peer.port), port)
    await peer.next(status(403))
  }
  peer.send(request('OPTIONS', peer.port), port)
  while (edge.stats().counters.dropped === 0) await pause(5)
  t.match(edge.blockedSources(), [{ host: '127.0.0.1', reason: 'failures' }])
  t.equal(robot.seen.length, 5)
  t.equal(peer.arrived.length, 0, 'no answer')
  // Its trunk is made: from then on it is heard, block or not.
  configured.add('127.0.0.1')
  for (let i = 0; i < 8; i++) {
    peer.send(request('OPTIONS', peer.port), port)
    await peer.next(status(403))
  }
  t.equal(edge.stats().blocked_sources, 0)
})

t.test('a flood of garbage from one source does not stop others', async t => {
  const { port, edge, robot } = await world(t, { isConfiguredSource: host => host === '127.0.0.2' })
  const good = await Peer.open(t, '127.0.0.2')
  const bad = await Peer.open(t)
  for (let i = 0; i < 4_000; i++)
    bad.send(`INVITE sip:x SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1;branch=z9hG4bK${i}\r\n\r\n`, port)
  good.send(request('OPTIONS', good.port), port)
  t.ok(await good.next(status(200)), 'the other source is served')
  while (edge.stats().counters.dropped === 0) await pause(5)
  t.match(edge.blockedSources(), [{ host: '127.0.0.1', reason: 'malformed' }])
  t.equal(robot.seen.length, 1)
  t.equal(edge.stats().server_transactions, 1, 'garbage leaves no transaction')
})

t.test('streams: keep-alive, splits, limits and peers that stall are bounded', async t => {
  const { edge, robot } = await world(t, {
    clock: fastClock(20),
    limits: { connections: 50, idle_ms: 60_000, incomplete_ms: 30_000 },
  })
  const port = edge.listeners.find(l => l.protocol === 'tcp')?.port ?? 0
  const open = async (): Promise<{ socket: Socket; read: () => string; closed: Promise<unknown> }> => {
    const socket = connect(port, '127.0.0.1')
    let text = ''
    socket.on('data', data => {
      text += data.toString('latin1')
    })
    socket.on('error', () => undefined)
    const closed = once(socket, 'close')
    await once(socket, 'connect')
    t.teardown(() => socket.destroy())
    return { socket, read: () => text, closed }
  }
  const until = async (condition: () => boolean): Promise<void> => {
    while (!condition()) await pause(5)
  }

  const a = await open()
  a.socket.write('\r\n\r\n')
  await until(() => a.read() === '\r\n')
  const text = request('OPTIONS', 9, { via: 'SIP/2.0/TCP' })
  for (const c of text) a.socket.write(c)
  await until(() => a.read().includes('SIP/2.0 200'))
  t.pass('a message that comes byte by byte is read')

  const huge = await open()
  huge.socket.write(
    `OPTIONS sip:x SIP/2.0\r\nVia: SIP/2.0/TCP 127.0.0.1;branch=z9hG4bKh\r\nX-Big: ${'y'.repeat(70_000)}`,
  )
  await huge.closed
  t.match(huge.read(), /^SIP\/2\.0 513 /, 'headers beyond 64 KiB get 513, and the connection closes')

  const no_length = await open()
  no_length.socket.write(request('OPTIONS', 9, { via: 'SIP/2.0/TCP' }).replace(/Content-Length: 0\r\n/, ''))
  await no_length.closed
  t.match(no_length.read(), /^SIP\/2\.0 400 /, 'a message without Content-Length gets 400, and the connection closes')

  const stalled = await open()
  stalled.socket.write('OPTIONS sip:x SIP/2.0\r\nVia: SIP')
  await stalled.closed
  t.pass('a message that stays incomplete ends its connection')

  const many = await Promise.all(Array.from({ length: 60 }, open))
  await until(() => edge.stats().counters.refused_connections >= 10)
  t.equal(edge.stats().sip_connections <= 50, true, 'the limit holds: the longest idle are closed')
  const last = many.at(-1)
  last?.socket.write(request('OPTIONS', 9, { via: 'SIP/2.0/TCP' }))
  await until(() => last?.read().includes('SIP/2.0 200') ?? false)
  await Promise.all(many.map(one => one.closed))
  t.pass('idle connections are closed in the end')
  t.equal(edge.stats().sip_connections, 0)
  t.ok(robot.seen.length >= 2)
})

t.test('a TLS handshake that never begins is given up', async t => {
  const { edge } = await world(t, {
    listeners: [{ protocol: 'tls', host: '127.0.0.1', port: 0 }],
    tls,
    limits: { handshake_ms: 200 },
  })
  const half = connect(edge.listeners[0]?.port ?? 0, '127.0.0.1')
  half.on('error', () => undefined)
  await once(half, 'connect')
  half.resume()
  await once(half, 'close')
  t.equal(edge.stats().sip_connections, 0)
})

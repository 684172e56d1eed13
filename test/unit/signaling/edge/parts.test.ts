import { EventEmitter, once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import t from 'tap'
import { type AnsweredRequest, type From, SourceGuard } from '../../../../signaling/edge/agent/guard.ts'
import { FrameReader, frame } from '../../../../signaling/edge/control/framing.ts'
import { timeOfDay } from '../../../../signaling/edge/control/wire.ts'
import { TimerWheel } from '../../../../signaling/edge/timers.ts'
import { StreamConnection } from '../../../../signaling/edge/transport/connection.ts'
import { serverName } from '../../../../signaling/edge/transport/tls.ts'
import type { Protocol } from '../../../../signaling/edge/transport/types.ts'
import { ManualClock } from '../../../fuzz/edge/manual-clock.ts'

t.test('the timer wheel fires in order, cancels for nothing and sleeps when it is empty', async t => {
  const clock = new ManualClock()
  const errors: unknown[] = []
  const wheel = new TimerWheel(clock, error => errors.push(error))
  const fired: string[] = []
  wheel.after(32_000, () => fired.push('late'))
  wheel.after(500, () => fired.push('early'))
  wheel.after(500, () => {
    fired.push('throws')
    throw new Error('x')
  })
  const never = wheel.after(600, () => fired.push('never'))
  t.equal(wheel.count, 4)
  clock.advance(490)
  t.same(fired, [], 'not before its time')
  clock.advance(20)
  t.same(fired, ['early', 'throws'])
  t.equal(errors.length, 1, 'an exception is reported and stops nothing')
  never.cancel()
  never.cancel()
  clock.advance(31_000)
  t.same(fired, ['early', 'throws'])
  clock.advance(1_000)
  t.same(fired, ['early', 'throws', 'late'])
  t.equal(wheel.count, 0)
  t.equal(clock.pending, 0, 'no timer of the machine runs')
})

function guarded(configured: string) {
  const clock = new ManualClock()
  const told: string[] = []
  const guard = new SourceGuard({
    clock,
    isConfiguredSource: host => host === configured,
    failures: 5,
    window_ms: 60_000,
    block_ms: 900_000,
    malformed_per_second: 10,
    requests_per_second: 20,
    blocked: ({ host, protocol }) => void told.push(`${protocol} ${host}`),
  })
  const from = (host: string, protocol: Protocol = 'udp', port = 5060): From => ({ protocol, source: { host, port } })
  const answer = (status: number, over: Partial<AnsweredRequest> = {}): AnsweredRequest => ({
    ...{ method: 'INVITE', status, credentials: true, ours: () => true, stale: () => false },
    ...over,
  })
  const fail = (peer: From, times: number, over: Partial<AnsweredRequest> = {}): void => {
    for (let i = 0; i < times; i++) guard.answered(peer, answer(i % 2 === 0 ? 401 : 403, over))
  }
  const said = (peer: From, what: 'malformed' | 'admits', times: number): number =>
    Array.from({ length: times }, () => guard[what](peer)).filter(yes => yes).length
  return { clock, told, guard, from, answer, fail, said }
}

t.test('a source is blocked by failures in a window, for a while, and a good password clears it', async t => {
  const { clock, told, guard, from, answer, fail } = guarded('192.0.2.9')
  const one = from('192.0.2.1')
  fail(one, 4)
  clock.advance(61_000)
  fail(one, 4)
  t.equal(guard.admits(one), true, 'four in each of two windows are no five in one')
  fail(one, 1)
  t.equal(guard.admits(one), false)
  t.match(guard.list(), [{ host: '192.0.2.1', protocol: 'udp', reason: 'failures', dropped: 1 }])
  clock.advance(899_000)
  t.equal(guard.admits(one), false)
  clock.advance(2_000)
  t.equal(guard.admits(one), true, 'after 15 minutes it may try again')
  const two = from('192.0.2.2')
  fail(two, 4)
  guard.answered(two, answer(200))
  fail(two, 4)
  t.equal(guard.admits(two), true, 'who proves a password begins anew')
  fail(from('192.0.2.9'), 50)
  t.equal(guard.admits(from('192.0.2.9')), true, 'a configured source is never blocked')
  t.same(told, ['udp 192.0.2.1'], 'a block is told once')
  const seven = from('192.0.2.7')
  fail(seven, 4)
  guard.answered(seven, answer(200, { method: 'OPTIONS' }))
  fail(seven, 1)
  t.equal(guard.admits(seven), false, 'an OPTIONS that is answered clears nothing, whatever it carries')
  guard.block('192.0.2.4', 1_000)
  t.equal(guard.silences('192.0.2.4'), true, 'an operator silences a host altogether')
  t.equal(guard.unblock('192.0.2.4'), true)
  t.equal(guard.silences('192.0.2.4'), false)
})

t.test('an IPv6 stranger has one count for its /64, whatever addresses of it it uses', async t => {
  const { guard, from, answer, fail } = guarded('2001:db8:1:1::9')
  let admitted = 0
  for (let at = 1; at <= 100; at++) if (guard.admits(from(`2001:db8:1:1::${at.toString(16)}:1`))) admitted++
  t.equal(admitted, 20, 'its requests of a second')
  t.equal(guard.admits(from('2001:db8:1:2::1')), true, 'another network has its own')
  const neighbour = from('2001:db8:1:1::8', 'tcp')
  guard.answered(neighbour, answer(200))
  for (let at = 1; at <= 5; at++) fail(from(`2001:db8:1:1::a:${at}`, 'tcp'), 1)
  t.equal(guard.refuses('2001:db8:1:1::b', 'tcp'), true, 'its guesses block all of its addresses')
  t.equal(guard.admits(neighbour), true, 'but none that has proved a password')
  t.equal(guard.admits(from('2001:db8:1:1::9', 'tcp')), true, 'and no configured source')
  t.equal(guard.unblock('2001:db8:1:1::c'), true, 'an operator names any address of the network')
  t.equal(guard.refuses('2001:db8:1:1::b', 'tcp'), false)
})

t.test('what anybody can send under the address of a peer counts against nobody', async t => {
  const { guard, from, answer, fail, said } = guarded('192.0.2.9')
  const udp = from('192.0.2.5')
  fail(udp, 50, { ours: () => false })
  fail(udp, 50, { ours: () => false, credentials: false })
  for (let i = 0; i < 50; i++) guard.answered(udp, answer(401, { stale: () => true }))
  t.equal(said(udp, 'malformed', 100), 9, 'garbage is answered so often in a second')
  t.equal(guard.admits(udp), true, 'but blocks nobody, where it may come from elsewhere')
  const tcp = from('192.0.2.5', 'tcp', 40_000)
  guard.proved(tcp)
  fail(udp, 5)
  t.equal(guard.admits(udp), false, 'real guesses over UDP block UDP')
  t.equal(guard.admits(tcp), true, 'and not TCP')
  t.equal(guard.refuses('192.0.2.5', 'tcp'), false, 'nor its connections')
  fail(tcp, 9)
  t.equal(guard.admits(from('192.0.2.5', 'tcp', 40_001)), false, 'a neighbour that guesses blocks new flows')
  t.equal(guard.admits(tcp), true, 'but never the one that has proved a password')
  t.equal(guard.refuses('192.0.2.6', 'tcp'), false)
  t.equal(said(from('192.0.2.6', 'tcp'), 'malformed', 100), 9)
  t.equal(guard.refuses('192.0.2.6', 'tcp'), true, 'garbage on a connection blocks: its sender is there')
})

t.test('a stranger has so many requests in a second, a source with a password as many as it likes', async t => {
  const { clock, guard, from, answer, said } = guarded('192.0.2.9')
  const eight = from('192.0.2.8')
  t.equal(said(eight, 'admits', 100), 20)
  t.equal(guard.blocked_count, 0, 'who sends more is not blocked for it')
  clock.advance(1_001)
  t.equal(said(eight, 'admits', 100), 20, 'and has as many in the next')
  t.equal(said(from('192.0.2.9'), 'admits', 100), 100, 'a configured source has as many as it likes')
  guard.answered(eight, answer(200, { method: 'REGISTER' }))
  for (let i = 0; i < 50; i++) guard.answered(eight, answer(403))
  t.equal(said(eight, 'admits', 100), 100, 'its calls may be refused as often as they want')
  clock.advance(7_201_000)
  t.equal(said(eight, 'admits', 100), 20, 'after two hours it is a stranger again')
  for (let i = 0; i < 50_000; i++)
    for (let j = 0; j < 10; j++) guard.malformed(from(`10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`, 'tcp'))
  t.ok(guard.blocked_count <= 20_000, 'the list of sources is bounded')
})

t.test('frames of the control link are read however they are cut, and nonsense ends the stream', async t => {
  const whole = `${frame('a|ping')}${frame('b|x#\r\n')}${frame('')}${frame('c')}`
  for (const size of [1, 2, 3, 7, 100]) {
    const reader = new FrameReader(1_000)
    const out: (string | undefined)[] = []
    for (let at = 0; at < whole.length; at += size) out.push(...reader.push(whole.slice(at, at + size)))
    t.same(out, ['a|ping', 'b|x#\r\n', '', 'c'])
  }
  for (const bad of ['abc#x', '-5#x', '\r\n', '#', '1234567890#', '2000#']) {
    t.same(new FrameReader(1_000).push(bad).at(-1), undefined, JSON.stringify(bad))
    t.equal(new FrameReader(1_000).push(bad).length, 1)
  }
  t.match(timeOfDay(1_700_000_000_123.456), /^22:13:20\.123\d{3}$/)
})

t.test('a peer that does not read is cut off instead of filling memory', async t => {
  const socket = Object.assign(new EventEmitter(), {
    writableLength: 0,
    written: 0,
    destroyed: false,
    setNoDelay: () => undefined,
    destroy() {
      this.destroyed = true
    },
    write(text: string) {
      this.written++
      this.writableLength += text.length
    },
  })
  const events: string[] = []
  const connection = new StreamConnection({
    protocol: 'tcp',
    listener: { protocol: 'tcp', host: '127.0.0.1', port: 1, advertised_host: '127.0.0.1', ipv6: false },
    remote: { host: '127.0.0.1', port: 2 },
    inbound: true,
    limits: { message_bytes: 1_000, unsent_bytes: 5_000 },
    now: () => 0,
    events: {
      message: () => events.push('message'),
      broken: () => events.push('broken'),
      closed: () => events.push('closed'),
    },
  })
  connection.attachSocket(socket as unknown as Socket, false)
  for (let i = 0; i < 20; i++) connection.send('x'.repeat(1_000), () => events.push('failed'))
  t.equal(socket.written, 6)
  t.equal(socket.destroyed, true)
  t.equal(connection.open, false)
  t.equal(events[0], 'closed')
})

t.test('the server name of a ClientHello is found however it is cut, and nonsense has none', async t => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const hello = async (servername: string): Promise<Buffer> => {
    const accepted = once(server, 'connection')
    const client = connectTls({ host: '127.0.0.1', port: (server.address() as AddressInfo).port, servername })
    client.on('error', () => undefined)
    const [socket] = (await accepted) as [Socket]
    const [bytes] = (await once(socket, 'data')) as [Buffer]
    client.destroy()
    socket.destroy()
    return bytes
  }
  const named = await hello('PBX.Example.test')
  t.equal(serverName(named), 'pbx.example.test')
  t.equal(serverName(await hello('')), '', 'a peer that asks for none')
  for (let cut = 0; cut < named.length; cut++) {
    if (serverName(named.subarray(0, cut)) !== undefined) t.fail(`a guess after ${cut} bytes`)
  }
  t.equal(serverName(Buffer.from('GET / HTTP/1.1\r\n\r\n')), '', 'no TLS at all')
  t.equal(serverName(Buffer.from([22, 3, 1, 255, 255, 1])), '', 'a record that is too long is not waited for')
  // Every byte of it wrong, one after the other: any name or none, but an end.
  for (let at = 0; at < named.length; at++) {
    for (const value of [0, 1, 127, 255]) {
      const broken = Buffer.from(named)
      broken[at] = value
      const name = serverName(broken)
      if (name !== undefined && name.length > named.length) t.fail(`byte ${at} as ${value}`)
    }
  }
})

import { EventEmitter, once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { type AnsweredRequest, type From, isGuardWord, SourceGuard } from '../../../../signaling/edge/agent/guard.ts'
import { FrameReader, frame } from '../../../../signaling/edge/control/framing.ts'
import { timeOfDay } from '../../../../signaling/edge/control/wire.ts'
import { TimerWheel } from '../../../../signaling/edge/timers.ts'
import { StreamConnection } from '../../../../signaling/edge/transport/connection.ts'
import { serverName } from '../../../../signaling/edge/transport/tls.ts'
import type { Protocol } from '../../../../signaling/edge/transport/types.ts'
import { ManualClock } from '../../../fuzz/edge/manual-clock.ts'
import t from '../../../support/harness/index.ts'

t.test('the timer wheel fires in order, cancels timers and stops its clock when it is empty', async t => {
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
  t.equal(errors.length, 1, 'an exception is reported, and other timers still fire')
  never.cancel()
  never.cancel()
  clock.advance(31_000)
  t.same(fired, ['early', 'throws'])
  clock.advance(1_000)
  t.same(fired, ['early', 'throws', 'late'])
  t.equal(wheel.count, 0)
  t.equal(clock.pending, 0, 'no system timer runs')
})

t.test('a delay that ends at no time is refused, and the other timers of the wheel fire', async t => {
  const clock = new ManualClock()
  const wheel = new TimerWheel(clock, () => undefined)
  const fired: number[] = []
  for (const delay_ms of [Number.NaN, Number.POSITIVE_INFINITY])
    t.throws(() => wheel.after(delay_ms, () => fired.push(0)))
  for (const delay_ms of [10, 20]) wheel.after(delay_ms, () => fired.push(delay_ms))
  clock.advance(40)
  t.same(fired, [10, 20])
})

t.test('the timer wheel wakes its process for timers alone, and no timer fires early', async t => {
  let woken = 0
  class CountedClock extends ManualClock {
    override after(delay_ms: number, run: () => void) {
      return super.after(delay_ms, () => {
        woken++
        run()
      })
    }
  }
  const clock = new CountedClock()
  const wheel = new TimerWheel(clock, () => undefined)
  const fired: string[] = []
  clock.advance(7)
  wheel.after(32_000, () => fired.push('last'))
  wheel.after(5_000, () => {
    fired.push('first')
    wheel.after(100, () => fired.push('second'))
  })
  clock.advance(4_999)
  t.same(fired, [])
  clock.advance(11 + 5_000 / 32)
  t.equal(fired[0], 'first')
  clock.advance(111)
  t.same(fired, ['first', 'second'])
  wheel.after(20, () => fired.push('an earlier one than the sleeper waits for'))
  clock.advance(31)
  t.equal(fired.length, 3)
  clock.advance(27_000 + 32_000 / 32)
  t.equal(fired.at(-1), 'last')
  t.ok(woken < 10, `${woken} times in 33 s`)

  woken = 0
  const late: number[] = []
  for (let i = 0; i < 1_000; i++) {
    const due_ms = clock.monotonic_ms() + 32_000
    wheel.after(32_000, () => late.push(clock.monotonic_ms() - due_ms))
    clock.advance(1)
  }
  clock.advance(34_000)
  t.equal(late.length, 1_000)
  t.ok(Math.min(...late) >= 0 && Math.max(...late) <= 1_001, 'by at most a 32nd of the delay, and never early')
  t.ok(woken < 10, `${woken} times for the long timers of a second full of calls`)
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
    tell: word => {
      t.ok(isGuardWord(word))
      to?.hear(word)
    },
  })
  let to: SourceGuard | null = null
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
  const tells = (guard: SourceGuard): void => {
    to = guard
  }
  return { clock, told, guard, from, answer, fail, said, tells }
}

t.test('five failures in a minute block a source for 15 minutes; a valid password resets the count', async t => {
  const { clock, told, guard, from, answer, fail } = guarded('192.0.2.9')
  const one = from('192.0.2.1')
  fail(one, 4)
  clock.advance(61_000)
  fail(one, 4)
  t.equal(guard.admits(one), true, 'failures of two windows are not added')
  fail(one, 1)
  t.equal(guard.admits(one), false)
  t.match(guard.list(), [{ host: '192.0.2.1', protocol: 'udp', reason: 'failures', dropped: 1 }])
  clock.advance(899_000)
  t.equal(guard.admits(one), false)
  clock.advance(2_000)
  t.equal(guard.admits(one), true, 'the block ends after 15 minutes')
  const two = from('192.0.2.2')
  fail(two, 4)
  guard.answered(two, answer(200))
  fail(two, 4)
  t.equal(guard.admits(two), true, 'a valid password resets the count')
  fail(from('192.0.2.9'), 50)
  t.equal(guard.admits(from('192.0.2.9')), true, 'a configured source is never blocked')
  t.same(told, ['udp 192.0.2.1'], 'a block is reported once')
  const seven = from('192.0.2.7')
  fail(seven, 4)
  guard.answered(seven, answer(200, { method: 'OPTIONS' }))
  fail(seven, 1)
  t.equal(guard.admits(seven), false, 'an answered OPTIONS does not reset the count')
  guard.block('192.0.2.4', 1_000)
  t.equal(guard.silences('192.0.2.4'), true, 'a block by an operator silences the host completely')
  t.equal(guard.unblock('192.0.2.4'), true)
  t.equal(guard.silences('192.0.2.4'), false)
})

t.test('the guards of two edges shut out whom one of them blocks, and spare the flows that either knows', async t => {
  const [one, other] = [guarded('192.0.2.9'), guarded('192.0.2.9')]
  one.tells(other.guard)
  other.tells(one.guard)
  const [known, unknown] = [one.from('192.0.2.1', 'tcp', 1001), one.from('192.0.2.1', 'tcp', 1002)]
  const elsewhere = one.from('192.0.2.1', 'tcp', 1003)
  one.guard.proved(known)
  other.guard.proved(elsewhere)
  one.fail(one.from('192.0.2.1', 'tcp', 1004), 9)
  for (const { guard } of [one, other])
    t.same(
      [known, elsewhere, unknown, one.from('192.0.2.2', 'tcp')].map(from => guard.admits(from)),
      [true, true, false, true],
      'two customers behind the same address, a stranger, and another address',
    )
  t.same(other.told, ['tcp 192.0.2.1'])
  one.fail(one.from('192.0.2.3'), 5)
  one.clock.advance(900_001)
  other.clock.advance(899_000)
  t.equal(other.guard.admits(one.from('192.0.2.3')), false)
  other.clock.advance(1_001)
  t.equal(other.guard.admits(one.from('192.0.2.3')), true, 'it ends there as here')
  other.guard.shut({ protocol: 'udp', host: '192.0.2.4' }, 1_000)
  t.equal(one.guard.admits(one.from('192.0.2.4')), false, 'what all machines have counted together shuts out, too')
  other.guard.shut({ protocol: 'udp', host: '192.0.2.9' }, 1_000)
  t.equal(other.guard.admits(one.from('192.0.2.9')), true, 'a configured source is never blocked')
  const words = [
    null,
    { kind: 'blocked', proofs: [] },
    { kind: 'proved', proofs: [[1, 2]] },
    { kind: 'new', proofs: [] },
  ]
  t.same(words.filter(isGuardWord), [], 'what a newer edge says is left alone')
})

t.test('all addresses of an IPv6 /64 share one count', async t => {
  const { guard, from, answer, fail } = guarded('2001:db8:1:1::9')
  let admitted = 0
  for (let at = 1; at <= 100; at++) if (guard.admits(from(`2001:db8:1:1::${at.toString(16)}:1`))) admitted++
  t.equal(admitted, 20, 'the /64 has 20 requests a second')
  t.equal(guard.admits(from('2001:db8:1:2::1')), true, 'another /64 has its own count')
  const neighbour = from('2001:db8:1:1::8', 'tcp')
  guard.answered(neighbour, answer(200))
  for (let at = 1; at <= 5; at++) fail(from(`2001:db8:1:1::a:${at}`, 'tcp'), 1)
  t.equal(guard.refuses('2001:db8:1:1::b', 'tcp'), true, 'guesses block all addresses of the /64')
  t.equal(guard.admits(neighbour), true, 'except one that has proved a password')
  t.equal(guard.admits(from('2001:db8:1:1::9', 'tcp')), true, 'and a configured source')
  t.equal(guard.unblock('2001:db8:1:1::c'), true, 'an operator may name any address of the /64')
  t.equal(guard.refuses('2001:db8:1:1::b', 'tcp'), false)
})

t.test('packets with a forged source address do not count against that address', async t => {
  const { guard, from, answer, fail, said } = guarded('192.0.2.9')
  const udp = from('192.0.2.5')
  fail(udp, 50, { ours: () => false })
  fail(udp, 50, { ours: () => false, credentials: false })
  for (let i = 0; i < 50; i++) guard.answered(udp, answer(401, { stale: () => true }))
  t.equal(said(udp, 'malformed', 100), 9, 'malformed messages are answered up to a rate')
  t.equal(guard.admits(udp), true, 'malformed UDP does not block: its source may be forged')
  const tcp = from('192.0.2.5', 'tcp', 40_000)
  guard.proved(tcp)
  fail(udp, 5)
  t.equal(guard.admits(udp), false, 'real guesses over UDP block UDP')
  t.equal(guard.admits(tcp), true, 'and do not block TCP')
  t.equal(guard.refuses('192.0.2.5', 'tcp'), false, 'nor new connections')
  fail(tcp, 9)
  t.equal(guard.admits(from('192.0.2.5', 'tcp', 40_001)), false, 'guesses over TCP block new flows of the address')
  t.equal(guard.admits(tcp), true, 'but not the flow that has proved a password')
  t.equal(guard.refuses('192.0.2.6', 'tcp'), false)
  t.equal(said(from('192.0.2.6', 'tcp'), 'malformed', 100), 9)
  t.equal(guard.refuses('192.0.2.6', 'tcp'), true, 'malformed messages on a connection block: its source is not forged')
})

t.test('an unknown source may send 20 requests a second; a proved password lifts the limit for 2 h', async t => {
  const { clock, guard, from, answer, said } = guarded('192.0.2.9')
  const eight = from('192.0.2.8')
  t.equal(said(eight, 'admits', 100), 20)
  t.equal(guard.blocked_count, 0, 'exceeding the rate does not block the source')
  clock.advance(1_001)
  t.equal(said(eight, 'admits', 100), 20, 'the next second allows 20 again')
  t.equal(said(from('192.0.2.9'), 'admits', 100), 100, 'a configured source has no limit')
  guard.answered(eight, answer(200, { method: 'REGISTER' }))
  for (let i = 0; i < 50; i++) guard.answered(eight, answer(403))
  t.equal(said(eight, 'admits', 100), 100, 'refused calls do not count against it')
  clock.advance(7_201_000)
  t.equal(said(eight, 'admits', 100), 20, 'after two hours the limit applies again')
  for (let i = 0; i < 50_000; i++)
    for (let j = 0; j < 10; j++) guard.malformed(from(`10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`, 'tcp'))
  t.ok(guard.blocked_count <= 20_000, 'the list of sources is bounded')
})

t.test('control link frames are read across any chunk boundaries, and an invalid frame ends the stream', async t => {
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

t.test('the connection of a peer that does not read is closed at 5,000 unsent bytes', async t => {
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
      ended: () => events.push('ended'),
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

t.test('the server name of a complete ClientHello is read, and an invalid one yields no name', async t => {
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
  t.equal(serverName(await hello('')), '', 'a ClientHello without a server name')
  for (let cut = 0; cut < named.length; cut++) {
    if (serverName(named.subarray(0, cut)) !== undefined) t.fail(`a premature result after ${cut} bytes`)
  }
  t.equal(serverName(Buffer.from('GET / HTTP/1.1\r\n\r\n')), '', 'not TLS')
  t.equal(serverName(Buffer.from([22, 3, 1, 255, 255, 1])), '', 'a record that is too long is not waited for')
  // Corrupt one byte at a time. The result may be any name or none, but parsing must terminate within bounds.
  for (let at = 0; at < named.length; at++) {
    for (const value of [0, 1, 127, 255]) {
      const broken = Buffer.from(named)
      broken[at] = value
      const name = serverName(broken)
      if (name !== undefined && name.length > named.length) t.fail(`byte ${at} as ${value}`)
    }
  }
})

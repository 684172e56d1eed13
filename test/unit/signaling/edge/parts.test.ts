import { EventEmitter, once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import t from 'tap'
import { selectByWeight } from '../../../../core/runtime/sip/locate.ts'
import { SourceGuard } from '../../../../signaling/edge/agent/guard.ts'
import { FrameReader, frame } from '../../../../signaling/edge/control/framing.ts'
import { timeOfDay } from '../../../../signaling/edge/control/wire.ts'
import { TimerWheel } from '../../../../signaling/edge/timers.ts'
import { StreamConnection } from '../../../../signaling/edge/transport/connection.ts'
import { serverName } from '../../../../signaling/edge/transport/tls.ts'
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

t.test('a source is blocked by failures in a window, for a while, and success clears it', async t => {
  const clock = new ManualClock()
  const told: string[] = []
  const guard = new SourceGuard({
    clock,
    isConfiguredSource: host => host === '192.0.2.9',
    failures: 5,
    window_ms: 60_000,
    block_ms: 900_000,
    malformed_per_second: 10,
    requests_per_second: 20,
    blocked: ({ host }) => void told.push(host),
  })
  const answer = (status: number, call_id: string, credentials: boolean, stale = false, method = 'INVITE') => ({
    method,
    status,
    call_id,
    credentials,
    stale,
  })
  const fail = (host: string, times: number): void => {
    for (let i = 0; i < times; i++) guard.answered(host, i % 2 === 0 ? answer(401, 'x', true) : answer(403, 'x', false))
  }
  fail('192.0.2.1', 4)
  clock.advance(61_000)
  fail('192.0.2.1', 4)
  t.equal(guard.drops('192.0.2.1'), false, 'four in each of two windows are no five in one')
  fail('192.0.2.1', 1)
  t.equal(guard.drops('192.0.2.1'), true)
  clock.advance(899_000)
  t.equal(guard.drops('192.0.2.1'), true)
  clock.advance(2_000)
  t.equal(guard.drops('192.0.2.1'), false, 'after 15 minutes it may try again')
  fail('192.0.2.2', 4)
  guard.answered('192.0.2.2', answer(486, 'x', true))
  fail('192.0.2.2', 4)
  t.equal(guard.drops('192.0.2.2'), false, 'whoever gets a call through, however it ends, begins anew')
  fail('192.0.2.9', 50)
  t.equal(guard.drops('192.0.2.9'), false, 'a configured source never')
  t.same(told, ['192.0.2.1'], 'a block is told once')
  fail('192.0.2.7', 4)
  guard.answered('192.0.2.7', answer(200, 'x', true, false, 'OPTIONS'))
  fail('192.0.2.7', 1)
  t.equal(guard.drops('192.0.2.7'), true, 'an OPTIONS that is answered clears nothing, whatever it carries')

  for (let i = 0; i < 50; i++) {
    guard.answered('192.0.2.5', answer(401, `busy-${i}`, false))
    guard.identified('192.0.2.5', `busy-${i}`)
    guard.answered('192.0.2.5', answer(401, `busy-${i}`, true, true))
    guard.identified('192.0.2.5', `busy-${i}`)
    clock.advance(1_000)
  }
  t.equal(guard.drops('192.0.2.5'), false, 'a busy digest trunk is challenged for every call, and answers')
  for (let i = 0; i < 6; i++) {
    guard.answered('192.0.2.6', answer(401, `scan-${i}`, false))
    t.equal(guard.drops('192.0.2.6'), false)
    clock.advance(3_000)
  }
  guard.answered('192.0.2.6', answer(401, 'scan-7', false))
  t.equal(guard.drops('192.0.2.6'), true, 'a scanner never answers its challenges')
  const said = (host: string, what: 'malformed' | 'admits', times: number): number =>
    Array.from({ length: times }, () => guard[what](host)).filter(yes => yes).length
  t.equal(said('192.0.2.8', 'admits', 100), 20, 'a stranger has so many requests in a second')
  t.equal(guard.drops('192.0.2.8'), false, 'and is not blocked for more')
  clock.advance(1_001)
  t.equal(said('192.0.2.8', 'admits', 100), 20, 'and as many in the next')
  t.equal(said('192.0.2.9', 'admits', 100), 100, 'a configured source has as many as it likes')
  guard.answered('192.0.2.8', answer(200, 'x', true, false, 'REGISTER'))
  guard.answered('192.0.2.10', answer(200, 'x', true))
  for (let i = 0; i < 50; i++) guard.answered('192.0.2.10', answer(403, `denied-${i}`, true))
  t.equal(guard.drops('192.0.2.10'), false, 'a source with a password may be refused as often as its calls want')
  fail('192.0.2.10', 9)
  t.equal(guard.drops('192.0.2.10'), true, 'but may not try the passwords of others')
  guard.unblock('192.0.2.10')
  t.equal(said('192.0.2.8', 'admits', 100), 100, 'and so has one that proved a password')
  t.equal(said('192.0.2.8', 'malformed', 100), 9, 'whose garbage is answered so often in a second')
  for (let i = 0; i < 200; i++) guard.answered('192.0.2.8', answer(401, `phone-${i}`, false))
  t.equal(guard.drops('192.0.2.8'), false, 'and who is not blocked by what others may send under its address')
  t.equal(said('192.0.2.9', 'malformed', 100), 9, 'as a configured source')
  fail('192.0.2.8', 5)
  t.equal(guard.drops('192.0.2.8'), true, 'but wrong passwords count')
  clock.advance(3_601_000)
  t.equal(said('192.0.2.8', 'admits', 100), 20, 'after an hour it is a stranger again')
  for (let i = 0; i < 10; i++) guard.malformed('192.0.2.3')
  t.equal(guard.drops('192.0.2.3'), true)
  guard.block('192.0.2.4', 1_000)
  t.match(
    guard
      .list()
      .map(b => [b.host, b.reason])
      .sort(),
    [
      ['192.0.2.3', 'malformed'],
      ['192.0.2.4', 'operator'],
    ],
  )
  t.equal(guard.unblock('192.0.2.4'), true)
  for (let i = 0; i < 50_000; i++) guard.malformed(`10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`)
  t.equal(guard.blockedCount <= 1, true, 'the list of sources is bounded')
})

t.test('SRV records are taken by priority, and at random by weight within one', async t => {
  const record = (name: string, priority: number, weight: number) => ({ name, priority, weight, port: 5060 })
  const records = [record('c', 2, 0), record('a', 1, 90), record('b', 1, 10)]
  let seed = 0
  const random = (): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
    return seed / 2 ** 31
  }
  let first = 0
  let last = 0
  for (let i = 0; i < 1_000; i++) {
    const order = selectByWeight(records, random).map(r => r.name)
    if (order[2] === 'c') last++
    if (order[0] === 'a') first++
  }
  t.equal(last, 1_000, 'the higher priority value is always last')
  t.ok(first > 840 && first < 960, `the heavier one is first in about nine of ten: ${first} of 1000`)
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

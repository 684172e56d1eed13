import t from 'tap'
import { UserAgent } from '../../../signaling/edge/useragent/user-agent.ts'
import { fastClock } from './fast-clock.ts'
import { Peer, pause, portOf, reply, SDP, starts, world } from './peer.ts'

// Where a request goes: names, dead addresses, silence.

t.test(
  'a name is resolved by NAPTR, SRV and A; a dead address is passed over, a stale answer serves when DNS fails',
  async t => {
    const alive = await UserAgent.open({
      listeners: [{ protocol: 'udp', host: '127.0.0.1', port: 0 }],
      request: incoming => incoming.answer(200),
    })
    t.teardown(() => alive.close())
    const refusing = await Peer.open(t)
    const dead_port = refusing.port
    let broken = false
    const clock = fastClock(10)
    const asked: string[] = []
    const fail = (code: string) => Promise.reject(Object.assign(new Error(code), { code }))
    const { robot } = await world(t, {
      clock,
      dns: {
        naptr: name => {
          asked.push(`naptr ${name}`)
          if (broken) return fail('ESERVFAIL')
          return Promise.resolve([
            { order: 10, preference: 1, flags: 's', service: 'SIP+D2U', replacement: '_sip._udp.carrier.example' },
          ])
        },
        srv: name => {
          asked.push(`srv ${name}`)
          if (broken) return fail('ESERVFAIL')
          return Promise.resolve([
            { priority: 1, weight: 0, port: dead_port, name: 'one.carrier.example' },
            { priority: 2, weight: 0, port: alive.port('udp'), name: 'two.carrier.example' },
          ])
        },
        addresses: () => (broken ? fail('ESERVFAIL') : Promise.resolve({ hosts: ['127.0.0.1'], ttl_seconds: 1 })),
      },
    })
    // The first address is silent: after a short patience the second is tried, with the same transaction for the
    // application.
    robot.command('d1|sip||\r\nOPTIONS sip:carrier.example SIP/2.0\r\n\r\n')
    while (!robot.seen.some(s => s.text.startsWith('SIP/2.0 200'))) await pause(5)
    const first = refusing.arrived.length
    t.ok(first > 0, 'the preferred address was tried first')
    t.same(asked, ['naptr carrier.example', 'srv _sip._udp.carrier.example'])
    robot.seen.length = 0
    broken = true
    // More than a TTL later DNS is gone.
    await pause(150)
    robot.command('d2|sip||\r\nOPTIONS sip:carrier.example SIP/2.0\r\n\r\n')
    while (!robot.seen.some(s => s.text.startsWith('SIP/2.0 '))) await pause(5)
    t.match(robot.seen[0]?.text, /^SIP\/2\.0 200 /, 'the stale answer serves, and the dead address is tried last')
    t.equal(refusing.arrived.length, first, 'the dead address was not asked again')
    robot.seen.length = 0
    robot.command('d3|sip||\r\nOPTIONS sip:unknown.example SIP/2.0\r\n\r\n')
    while (robot.seen.length === 0) await pause(5)
    t.match(robot.seen[0]?.text, /^SIP\/2\.0 503 DNS Error/)
  },
)

t.test('a target that says nothing is given up after 5 s, and the application sees that nobody said so', async t => {
  const { robot } = await world(t, { clock: fastClock(10), no_response_ms: 5_000 })
  const silent = await Peer.open(t)
  robot.command(`t1|sip||\r\nINVITE sip:bob@127.0.0.1:${silent.port} SIP/2.0\r\nCall-ID: silent\r\n\r\n${SDP}`)
  while (robot.seen.length === 0) await pause(5)
  const { fields, text } = robot.seen[0] ?? { fields: [], text: '' }
  t.match(text, /^SIP\/2\.0 408 /)
  t.same([fields[5], fields[6]], ['', '0'], 'no address and port 0: made up here')
  // RFC 3261 §17.1.1.2: at 0, 0.5, 1.5 and 3.5 s; the next would be at 7.5 s.
  t.ok(silent.arrived.filter(starts('INVITE')).length <= 4, 'it was not asked for longer')

  // One that says "100 Trying" may take its time.
  robot.seen.length = 0
  robot.command(`t2|sip||\r\nINVITE sip:bob@127.0.0.1:${silent.port} SIP/2.0\r\nCall-ID: slow\r\n\r\n${SDP}`)
  const invite = await silent.next(text => starts('INVITE')(text) && text.includes('Call-ID: slow'))
  silent.send(reply(invite, 100, 'x', '', silent.port), portOf(invite))
  await pause(800)
  t.equal(robot.seen.length, 0, 'eight seconds later it is still waited for')
  silent.send(reply(invite, 486, 'x', '', silent.port), portOf(invite))
  while (robot.seen.length === 0) await pause(5)
  t.match(robot.seen[0]?.text, /^SIP\/2\.0 486 /)
})

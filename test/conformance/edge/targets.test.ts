import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { connect, createServer } from 'node:tls'
import Srf from 'drachtio-srf'
import { systemDns } from '../../../core/runtime/sip/locate.ts'
import { UserAgent } from '../../../signaling/edge/useragent/user-agent.ts'
import t from '../../support/harness/index.ts'
import { freePort } from '../../support/ports.ts'
import { until } from '../../support/wait.ts'
import { dnsServer } from './dns-server.ts'
import { Peer, pause, portOf, reply, request, SDP, starts, tagOf, type World, world } from './peer.ts'
import { testClock } from './test-clock.ts'
import { testTls } from './test-tls.ts'

// Tests where requests go: names, dead addresses, silent targets.

const pem = (name: string) => readFileSync(new URL(`../../../../fixtures/tls/${name}`, import.meta.url), 'utf8')

t.test(
  'a name is resolved by NAPTR, SRV and A; a dead address is skipped, and a stale answer is used when DNS fails',
  async t => {
    const alive = await UserAgent.open({
      listeners: [{ protocol: 'udp', host: '127.0.0.1', port: 0 }],
      request: incoming => incoming.answer(200),
    })
    t.teardown(() => alive.close())
    const refusing = await Peer.open(t)
    const dead_port = refusing.port
    let broken = false
    const clock = testClock(10)
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
    // The first address is silent. After a short timeout the edge tries the second, within the application's
    // transaction.
    robot.command('d1|sip||\r\nOPTIONS sip:carrier.example SIP/2.0\r\n\r\n')
    while (!robot.seen.some(s => s.text.startsWith('SIP/2.0 200'))) await pause(5)
    const first = refusing.arrived.length
    t.ok(first > 0, 'the preferred address was tried first')
    t.same(asked, ['naptr carrier.example', 'srv _sip._udp.carrier.example'])
    robot.seen.length = 0
    broken = true
    // More than one TTL later DNS fails.
    await clock.pass(1_500)
    robot.command('d2|sip||\r\nOPTIONS sip:carrier.example SIP/2.0\r\n\r\n')
    while (!robot.seen.some(s => s.text.startsWith('SIP/2.0 '))) await pause(5)
    t.match(robot.seen[0]?.text, /^SIP\/2\.0 200 /, 'the stale answer is used, and the dead address is tried last')
    t.equal(refusing.arrived.length, first, 'the dead address was not tried again')
    robot.seen.length = 0
    robot.command('d3|sip||\r\nOPTIONS sip:unknown.example SIP/2.0\r\n\r\n')
    while (robot.seen.length === 0) await pause(5)
    t.match(robot.seen[0]?.text, /^SIP\/2\.0 503 DNS Error/)
  },
)

t.test('requests survive a dead first record, a refusal and a TTL of 0, and get 503 for an unknown name', async t => {
  const dns = await dnsServer(t)
  const port = await freePort()
  const target = async (host: string): Promise<UserAgent> => {
    const agent = await UserAgent.open({
      listeners: [{ protocol: 'udp', host, port }],
      request: incoming => incoming.answer(200, { headers: { 'X-Host': host } }),
      // Each agent has its own nonce and accepts no other.
      incoming: call => {
        const credentials = call.invite?.get('authorization')
        if (credentials?.includes(`nonce="${host}"`)) call.answer({ body: SDP })
        else
          call.reject(credentials ? 403 : 401, { headers: { 'WWW-Authenticate': `Digest realm="x", nonce="${host}"` } })
      },
    })
    t.teardown(() => agent.close())
    return agent
  }
  await target('127.0.0.1')
  const silent = await Peer.open(t, '127.0.0.4')
  const clock = testClock(10)
  const { robot, edge } = await world(t, { clock, dns: systemDns([dns.at]) })
  let serial = 0
  const ask = async (uri: string): Promise<string> => {
    const before = robot.seen.length
    robot.command(`n${++serial}|sip||\r\nOPTIONS ${uri} SIP/2.0\r\n\r\n`)
    await until('an answer', () => robot.seen.length > before)
    return (robot.seen.at(-1)?.text ?? '').split('\r\n')[0]?.slice(8) ?? ''
  }
  const a = (address: string, ttl = 60) => ({ type: 'A', ttl, address }) as const
  const srv = (priority: number, port: number, to: string) =>
    ({ type: 'SRV', ttl: 60, priority, weight: 0, port, target: to }) as const

  dns.say('NAPTR', 'full.test', [{ type: 'NAPTR', ttl: 60, service: 'SIP+D2U', replacement: '_sip._udp.full.test' }])
  dns.say('SRV', '_sip._udp.full.test', [srv(1, silent.port, 'dead.test'), srv(2, port, 'alive.test')])
  dns.say('A', 'dead.test', [a('127.0.0.4')])
  dns.say('A', 'alive.test', [a('127.0.0.1')])
  t.equal(await ask('sip:full.test'), '200 OK', 'the second record is used when the first is dead')
  const asked_first = silent.arrived.length
  t.ok(asked_first > 0)
  t.equal(await ask('sip:full.test'), '200 OK')
  t.equal(silent.arrived.length, asked_first, 'the dead address is then tried last')

  dns.say('A', 'plain.test', [a('127.0.0.1')])
  t.equal(await ask(`sip:plain.test:${port}`), '200 OK', 'with a port in the URI only addresses are queried')
  t.same(dns.asked.filter(q => q.includes('plain.test')).sort(), ['A plain.test', 'AAAA plain.test'])

  dns.say('NAPTR', 'half.test', 'REFUSED')
  dns.say('SRV', '_sip._udp.half.test', [srv(1, port, 'alive.test')])
  t.equal(await ask('sip:half.test'), '200 OK', 'when NAPTR is refused, SRV is used')
  t.equal(await ask('sip:nowhere.test'), '503 DNS Error', 'no such name')
  const questions = dns.asked.length
  t.equal(await ask('sip:nowhere.test'), '503 DNS Error')
  t.equal(dns.asked.length, questions, 'the failure is cached')

  // Each query returns another address with a TTL of 0. Credentials must go to the address that challenged.
  const two = await UserAgent.open({
    listeners: [{ protocol: 'udp', host: '127.0.0.3', port }],
    incoming: call => call.reject(486),
    request: incoming => incoming.answer(200, { headers: { 'X-Host': '127.0.0.3' } }),
  })
  t.teardown(() => two.close())
  dns.say('A', 'moving.test', [a('127.0.0.1', 0)])
  const srf = new Srf()
  srf.on('error', () => undefined)
  void srf.connect({ host: '127.0.0.1', port: edge.control.port, secret: 'cymru' })
  await once(srf as unknown as NodeJS.EventEmitter, 'connect')
  t.teardown(() => srf.disconnect())
  const dialog = await srf.createUAC(
    `sip:b@moving.test:${port}`,
    { localSdp: SDP, auth: { username: 'u', password: 'p' } },
    { cbRequest: () => dns.say('A', 'moving.test', [a('127.0.0.3', 0)]) },
  )
  t.match(dialog.remote.uri, /127\.0\.0\.1/, 'the address that challenged answers')
  await ask(`sip:moving.test:${port}`)
  t.match(robot.seen.at(-1)?.text, /X-Host: 127\.0\.0\.3/, 'a new request queries DNS again')
  await dialog.destroy()

  dns.all = 'REFUSED'
  await clock.pass(61_000)
  t.equal(await ask(`sip:plain.test:${port}`), '200 OK', 'when DNS refuses a minute later, the old answer is used')
  const refused = dns.asked.length
  t.equal(await ask(`sip:plain.test:${port}`), '200 OK')
  t.equal(dns.asked.length, refused, 'DNS is not queried again for a while')
})

t.test('a name with addresses of both families is called at our first family, then at the other', async t => {
  const port = await freePort()
  const answering = async (host: string): Promise<UserAgent> => {
    const agent = await UserAgent.open({
      listeners: [{ protocol: 'udp', host, port }],
      request: incoming => incoming.answer(200, { headers: { 'X-At': host } }),
    })
    t.teardown(() => agent.close())
    return agent
  }
  const four = await answering('127.0.0.1')
  await answering('::1')
  const edgeOn = (...hosts: string[]) =>
    world(t, {
      clock: testClock(10),
      listeners: hosts.map(host => ({ protocol: 'udp' as const, host, port: 0 })),
      dns: {
        naptr: () => Promise.resolve([]),
        srv: () => Promise.resolve([]),
        addresses: () => Promise.resolve({ hosts: ['127.0.0.1', '::1'], ttl_seconds: 60 }),
      },
    })
  const asked = async ({ robot }: World): Promise<string | undefined> => {
    robot.seen.length = 0
    robot.command(`f1|sip||\r\nOPTIONS sip:both.example:${port} SIP/2.0\r\n\r\n`)
    const answer = await until('an answer', () => robot.seen.find(s => s.text.startsWith('SIP/2.0 200')))
    return /X-At: (\S+)/.exec(answer.text)?.[1]
  }
  const both = await edgeOn('127.0.0.1', '::1')
  t.equal(await asked(both), '127.0.0.1')
  t.equal(await asked(await edgeOn('::1', '127.0.0.1')), '::1')
  t.equal(await asked(await edgeOn('::1')), '::1', 'never at a family without a listener')
  four.close()
  t.equal(await asked(both), '::1', 'a dead address is skipped')
})

t.test('a silent target fails after 5 s, with a 408 that names no address', async t => {
  const clock = testClock(10)
  const { robot } = await world(t, { clock, no_response_ms: 5_000 })
  const silent = await Peer.open(t)
  robot.command(`t1|sip||\r\nINVITE sip:bob@127.0.0.1:${silent.port} SIP/2.0\r\nCall-ID: silent\r\n\r\n${SDP}`)
  while (robot.seen.length === 0) await pause(5)
  const { fields, text } = robot.seen[0] ?? { fields: [], text: '' }
  t.match(text, /^SIP\/2\.0 408 /)
  t.same([fields[5], fields[6]], ['', '0'], 'no address and port 0: the edge made the 408')
  // RFC 3261 §17.1.1.2: at 0, 0.5, 1.5 and 3.5 s; the next would be at 7.5 s.
  t.ok(silent.arrived.filter(starts('INVITE')).length <= 4, 'the INVITE was not retransmitted for longer')

  // A target that sends 100 Trying may take longer.
  robot.seen.length = 0
  robot.command(`t2|sip||\r\nINVITE sip:bob@127.0.0.1:${silent.port} SIP/2.0\r\nCall-ID: slow\r\n\r\n${SDP}`)
  const invite = await silent.next(text => starts('INVITE')(text) && text.includes('Call-ID: slow'))
  silent.send(reply(invite, 100, 'x', '', silent.port), portOf(invite))
  await clock.pass(8_000)
  t.equal(robot.seen.length, 0, 'the edge still waits after eight seconds')
  silent.send(reply(invite, 486, 'x', '', silent.port), portOf(invite))
  while (robot.seen.length === 0) await pause(5)
  t.match(robot.seen[0]?.text, /^SIP\/2\.0 486 /)
})

for (const [what, rewritten] of [
  ['Contact', (answer: string, to: string) => answer.replace(/Contact: .*/, `Contact: <sip:bob@${to}>`)],
  [
    'Record-Route',
    (answer: string, to: string) => answer.replace('Contact:', `Record-Route: <sip:${to};lr>\r\nContact:`),
  ],
  ['maddr', (answer: string, to: string) => answer.replace(/(Contact: <[^>]*)>/, `$1;maddr=${to.split(':')[0]}>`)],
] as const)
  t.test(
    `a callee that names a forbidden address by ${what} gets requests at the address it answered from`,
    async t => {
      const peer = await Peer.open(t)
      const victim = await Peer.open(t, '127.0.0.9')
      const asked: string[] = []
      const { robot } = await world(t, {
        mayReach: (named, from) => {
          asked.push(`${named.host} ${from.host}:${from.port}`)
          return named.host !== '127.0.0.9'
        },
      })
      robot.command(
        `i|sip||\r\nINVITE sip:bob@127.0.0.1:${peer.port} SIP/2.0\r\nContent-Type: application/sdp\r\n\r\n${SDP}`,
      )
      const invite = await peer.next(starts('INVITE'))
      peer.send(rewritten(reply(invite, 200, 'b', SDP, peer.port), `127.0.0.9:${victim.port}`), portOf(invite))
      const seen = () => robot.seen.find(({ text }) => text.startsWith('SIP/2.0 200'))
      await until('the answer', () => seen())
      const dialog = seen()?.fields[9] ?? ''
      robot.command(`a|sip||${dialog}\r\nACK sip:bob@127.0.0.1 SIP/2.0\r\n\r\n`)
      robot.command(`b|sip||${dialog}\r\nBYE sip:bob@127.0.0.1 SIP/2.0\r\n\r\n`)
      await peer.next(starts('ACK'))
      const bye = await peer.next(starts('BYE'))
      peer.send(reply(bye, 200, 'b', '', peer.port), portOf(bye))
      t.same(victim.arrived, [], 'nothing reached the forbidden address')
      // The edge takes a Contact with another host for the effect of NAT and does not check it.
      if (what === 'Record-Route') t.ok(asked.includes(`127.0.0.9 127.0.0.1:${peer.port}`))
    },
  )

t.test('a caller over TLS whose connection has closed gets requests at the name in its Contact', async t => {
  const [key, cert] = [pem('leaf.key'), pem('other-name.pem')]
  let arrived = ''
  const server = createServer({ key, cert }, socket =>
    socket.on('data', data => {
      arrived += data.toString('latin1')
    }),
  ).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const none = () => Promise.reject(Object.assign(new Error('no record'), { code: 'ENODATA' }))
  const { edge, robot } = await world(t, {
    listeners: [{ protocol: 'tls', host: '127.0.0.1', port: 0 }],
    tls: { key, cert: pem('good.pem'), verify_peers: true, peers_ca: pem('root.pem') },
    dns: { naptr: none, srv: none, addresses: () => Promise.resolve({ hosts: ['127.0.0.1'], ttl_seconds: 60 }) },
  })
  const caller = connect({ host: '127.0.0.1', port: edge.listeners[0]?.port ?? 0, rejectUnauthorized: false })
  let heard = ''
  caller.on('data', data => {
    heard += data.toString('latin1')
  })
  const call = { call_id: 'named', via: 'SIP/2.0/TLS' }
  const contact = `Contact: <sip:pbx@elsewhere.example.test:${port};transport=tls>`
  caller.write(request('INVITE', port, { ...call, body: SDP }).replace(/Contact: .*/, contact))
  await until('the answer', () => heard.includes('SIP/2.0 200'))
  const to_tag = tagOf(heard.slice(heard.indexOf('SIP/2.0 200')))
  caller.write(request('ACK', port, { ...call, to_tag }))
  await until('the ACK', () => robot.seen.some(({ method }) => method === 'ACK'))
  caller.destroy()
  await until('the edge has noticed', () => edge.stats().sip_connections === 0)
  robot.command('n1|sip||named;from-tag=a\r\nBYE sip:placeholder SIP/2.0\r\n\r\n')
  await until(
    'the BYE, or what became of it',
    () => arrived !== '' || robot.seen.some(s => s.text.startsWith('SIP/2.0')),
  )
  t.match(arrived, /^BYE sip:pbx@elsewhere\.example\.test/, 'and its certificate proves that name')
})

t.test('a next hop and its transport override the request-URI', async t => {
  const arrived: string[] = []
  const callee = await UserAgent.open({
    listeners: [
      { protocol: 'udp', host: '127.0.0.1', port: 0 },
      { protocol: 'tcp', host: '127.0.0.1', port: 0, same_port: true },
    ],
    request: incoming => {
      arrived.push(incoming.message.get('via')?.split(' ')[0] ?? '')
      incoming.answer(200)
    },
  })
  t.teardown(() => callee.close())
  const { robot } = await world(t)
  const hop = `sip:127.0.0.1:${callee.port('udp')}`
  for (const [id, next] of [
    ['u', hop],
    ['t', `${hop};transport=tcp`],
    ['b', `<${hop};transport=tcp>`],
  ] as const) {
    robot.seen.length = 0
    robot.command(`${id}|sip|||${next}\r\nOPTIONS sip:bob@elsewhere.invalid;transport=udp SIP/2.0\r\n\r\n`)
    await until('the answer', () => robot.seen.some(({ text }) => text.startsWith('SIP/2.0 200')))
  }
  t.same(arrived, ['SIP/2.0/UDP', 'SIP/2.0/TCP', 'SIP/2.0/TCP'])
})

t.test('a TLS peer is verified as its next hop says, by default by chain and name', async t => {
  const key = pem('leaf.key')
  const own = await testTls()
  const fingerprint = (cert: string | Buffer) =>
    new X509Certificate(cert).fingerprint256.replaceAll(':', '').toLowerCase()
  const certificates = {
    good: { key, cert: pem('good.pem') },
    other: { key, cert: pem('other-name.pem') },
    expired: { key, cert: pem('expired.pem') },
    own,
  }
  let arrived = 0
  const ports: Record<string, number> = {}
  for (const [name, tls] of Object.entries(certificates)) {
    const peer = await UserAgent.open({
      listeners: [{ protocol: 'tls', host: '127.0.0.1', port: 0 }],
      tls,
      request: incoming => {
        arrived++
        incoming.answer(200)
      },
    })
    t.teardown(() => peer.close())
    ports[name] = peer.port('tls')
  }
  const { robot } = await world(t, {
    listeners: [
      { protocol: 'udp', host: '127.0.0.1', port: 0 },
      { protocol: 'tls', host: '127.0.0.1', port: 0 },
    ],
    tls: { ...certificates.good, verify_peers: true, peers_ca: pem('root.pem') },
  })
  const cases: readonly [peer: keyof typeof certificates, asked: string, code: 200 | 503, host?: string][] = [
    ['good', '', 200],
    ['good', 'required', 200],
    ['good', '', 200, 'app.example.test'],
    ['other', '', 503],
    ['other', '', 200, 'elsewhere.example.test'],
    ['other', '', 503, 'app.example.test'],
    ['expired', '', 503],
    ['own', '', 503],
    ['own', `pinned-${fingerprint(certificates.good.cert)}`, 503],
    ['own', 'pinned-', 503],
    ['own', 'flow', 503],
    ['own', 'off', 200],
    ['own', '', 503],
    ['own', 'nonsense', 503],
    ['own', `pinned-${fingerprint(own.cert)}`, 200],
    ['expired', `pinned-${fingerprint(certificates.expired.cert)}`, 200],
  ]
  for (const [at, [peer, asked, code, host = '127.0.0.1']] of cases.entries()) {
    robot.seen.length = 0
    const before = arrived
    const hop = `sip:127.0.0.1:${ports[peer]};transport=tls${asked === '' ? '' : `;x-tls-verification=${asked}`}`
    robot.command(`v${at}|sip|||${hop}\r\nOPTIONS sip:bob@${host} SIP/2.0\r\n\r\n`)
    await until('an answer', () => robot.seen.some(({ text }) => /^SIP\/2\.0 [2-6]/.test(text)))
    t.match(robot.seen[0]?.text, new RegExp(`^SIP/2.0 ${code} `), `${peer} ${asked} as ${host}`)
    t.equal(arrived - before, code === 200 ? 1 : 0, 'only a verified peer gets the request')
  }
})

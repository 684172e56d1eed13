import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { WebSocket } from 'ws'
import { tlsOptions } from '../../../signaling/edge/certificates.ts'
import { createEdge, ListenError } from '../../../signaling/edge/index.ts'
import { UserAgent } from '../../../signaling/edge/useragent/user-agent.ts'
import t, { type Test } from '../../support/harness/index.ts'
import { until } from '../../support/wait.ts'
import { Peer, pause, reply, request, SDP, starts, status, tagOf, world } from './peer.ts'
import type { Robot } from './robot.ts'
import { testTls } from './test-tls.ts'

// Tests sockets of every kind (TCP, TLS, WebSocket, IPv6) and which of them a message takes.

const tls = await testTls()

t.test('calls over TLS and WebSocket are answered and hung up, and OPTIONS pass over IPv6', async t => {
  const { robot, edge } = await world(t, {
    listeners: [
      { protocol: 'udp', host: '127.0.0.1', port: 0 },
      { protocol: 'tls', host: '127.0.0.1', port: 0 },
      { protocol: 'ws', host: '127.0.0.1', port: 0 },
      { protocol: 'wss', host: '127.0.0.1', port: 0, same_port: true },
      { protocol: 'udp', host: '::1', port: 0 },
    ],
    tls,
  })
  const portOf = (protocol: string, ipv6 = false): number =>
    edge.listeners.find(l => l.protocol === protocol && l.ipv6 === ipv6)?.port ?? 0

  const secure = connectTls({ host: '127.0.0.1', port: portOf('tls'), ca: tls.cert })
  await once(secure, 'secureConnect')
  t.teardown(() => secure.destroy())
  t.equal(secure.authorized, true, 'the certificate that we made verifies')
  await callOver(t, 'TLS', robot, text => void secure.write(text), secure)
  const asSips = (text: string): string => text.replace(/^INVITE sip:/, 'INVITE sips:')
  await callOver(t, 'TLS', robot, text => void secure.write(asSips(text)), secure, 'sips')

  for (const protocol of ['ws', 'wss'] as const) {
    const web = new WebSocket(`${protocol}://127.0.0.1:${portOf(protocol)}`, 'sip', { rejectUnauthorized: false })
    await once(web, 'open')
    t.teardown(() => web.terminate())
    await callOver(t, protocol.toUpperCase(), robot, text => web.send(text), web)
    web.send('\r\n\r\n')
    const [pong] = (await once(web, 'message')) as [Buffer]
    t.equal(pong.toString(), '\r\n', 'keep-alive is answered')
  }
  t.equal(portOf('wss'), portOf('ws'), 'one port serves both')
  const plain = new WebSocket(`ws://127.0.0.1:${portOf('ws')}`)
  const [refusal] = (await once(plain, 'error')) as [Error]
  t.match(refusal.message, /401|400/, 'a client that does not speak the sip sub-protocol is refused')

  const six = await Peer.open(t, '::1')
  six.send(request('OPTIONS', six.port).replace('UDP 127.0.0.1', 'UDP [::1]'), portOf('udp', true), '::1')
  t.ok(await six.next(status(200)))
  robot.command(`v6|sip||\r\nOPTIONS sip:x@[::1]:${six.port} SIP/2.0\r\n\r\n`)
  const sent = await six.next(starts('OPTIONS'))
  t.match(sent, /Via: SIP\/2\.0\/UDP \[::1\]:\d+;rport/)
})

// INVITE, 200, ACK, then a BYE from the application on the same connection.
async function callOver(
  t: Test,
  name: string,
  robot: Robot,
  send: (text: string) => void,
  from: {
    on(event: string, run: (data: Buffer) => void): unknown
    off(event: string, run: (data: Buffer) => void): unknown
  },
  scheme: 'sip' | 'sips' = 'sip',
): Promise<void> {
  let text = ''
  let wake = (): void => undefined
  const take = (data: Buffer): void => {
    text += data.toString('latin1')
    wake()
  }
  from.on('data', take)
  from.on('message', take)
  const until = async (fits: RegExp): Promise<string> => {
    while (!fits.test(text)) {
      await new Promise<void>(resolve => {
        wake = resolve
      })
    }
    const whole = text
    text = ''
    return whole
  }
  const call_id = `${scheme}-over-${name}`
  send(request('INVITE', 9, { call_id, via: `SIP/2.0/${name}`, body: SDP }))
  const answer = await until(/SIP\/2\.0 200 [\s\S]*\r\n\r\n/)
  // RFC 3261 §12.1.1: SIPS only for a request of SIPS; a peer without it could not send its ACK and BYE.
  const transport = scheme === 'sips' ? '' : `;transport=${name.toLowerCase()}`
  t.match(answer, new RegExp(`Contact: <${scheme}:[^;>]*${transport}>`), `${name}: our Contact`)
  send(
    request('ACK', 9, { call_id, via: `SIP/2.0/${name}`, to_tag: tagOf(answer.slice(answer.indexOf('SIP/2.0 200'))) }),
  )
  while (!robot.seen.some(s => s.method === 'ACK' && s.text.includes(call_id))) await pause(5)
  robot.command(`bye-${scheme}-${name}|sip||${call_id};from-tag=a\r\nBYE sip:placeholder SIP/2.0\r\n\r\n`)
  // The 200 may have been retransmitted before the ACK.
  const heard = await until(/^BYE [\s\S]*\r\n\r\n/m)
  const bye = heard.slice(heard.search(/^BYE /m))
  t.match(bye, new RegExp(`Via: SIP/2.0/${name} `), `${name}: the BYE comes over the same connection`)
  send(reply(bye, 200, '', '', 9))
  while (!robot.seen.some(s => s.fields[9]?.startsWith(call_id) && s.text.startsWith('SIP/2.0 200'))) await pause(5)
  t.equal(robot.seen.find(s => s.text.includes(call_id))?.fields[4], name.toLowerCase(), 'the protocol is reported')
  from.off('data', take)
  from.off('message', take)
}

t.test('a large request goes over TCP, and over UDP when the peer has no TCP', async t => {
  const { robot } = await world(t)
  const big = 'x'.repeat(1_500)
  const both = await UserAgent.open({
    listeners: [
      { protocol: 'udp', host: '127.0.0.1', port: 0 },
      { protocol: 'tcp', host: '127.0.0.1', port: 0, same_port: true },
    ],
    request: incoming => incoming.answer(200, { headers: { 'X-Over': incoming.received.protocol } }),
  })
  t.teardown(() => both.close())
  const udp_only = await Peer.open(t)
  const message = (id: string, port: number): string =>
    `${id}|sip||\r\nMESSAGE sip:x@127.0.0.1:${port} SIP/2.0\r\nContent-Type: text/plain\r\n\r\n${big}`
  robot.command(message('b1', both.port('udp')))
  while (!robot.seen.some(s => s.text.includes('X-Over: tcp'))) await pause(5)
  robot.command(message('b2', udp_only.port))
  t.match(await udp_only.next(starts('MESSAGE')), /Via: SIP\/2\.0\/UDP/, 'without TCP it goes over UDP')
})

/** Starts a server that keeps each connection and the text that arrives on it. */
async function dialled(t: Test, host: string) {
  const arrived: { text: string; socket: Socket }[] = []
  const server = createServer(socket => {
    const one = { text: '', socket }
    arrived.push(one)
    socket.on('error', () => undefined)
    socket.on('data', data => {
      one.text += data.toString('latin1')
    })
  }).listen(0, host)
  await once(server, 'listening')
  t.teardown(() => {
    for (const { socket } of arrived) socket.destroy()
    server.close()
  })
  const requests = () => arrived.map(({ text }) => text).join('')
  return { port: (server.address() as AddressInfo).port, requests, arrived }
}

/** Offers a connection for reuse (RFC 5923). The returned function gives the text received on it. */
async function offers(t: Test, socket: Socket, via: string): Promise<() => string> {
  t.teardown(() => socket.destroy())
  let text = ''
  socket.on('data', data => {
    text += data.toString('latin1')
  })
  socket.write(request('OPTIONS', 9).replace(/Via: \S+ [^;]*/, `Via: ${via};alias`))
  await until('it is answered', () => text.includes('SIP/2.0 200'))
  return () => text
}

t.test('a peer that owns its address gets requests over the connection that it offers (RFC 5923)', async t => {
  const { robot, port, edge } = await world(t, { ownsAddress: ({ host }) => host === '127.0.0.2' })
  const own = await dialled(t, '127.0.0.2')
  const ask = (id: string): void =>
    robot.command(`${id}|sip||\r\nOPTIONS sip:x@127.0.0.2:${own.port};transport=tcp SIP/2.0\r\nCall-ID: ${id}\r\n\r\n`)
  ask('before')
  await until('the edge connects to the peer', () => own.requests().includes('Call-ID: before\r'))
  for (const { socket } of own.arrived) socket.end()
  await until('the edge knows that it is closed', () => edge.stats().sip_connections === 0)
  const heard = await offers(
    t,
    connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' }),
    `SIP/2.0/TCP 127.0.0.2:${own.port}`,
  )
  ask('after')
  await until('it comes by the connection', () => /^OPTIONS [\s\S]*Call-ID: after\r/m.test(heard()))
  t.equal(own.arrived.length, 1, 'and no other is opened')
})

t.test("a stranger that offers its connection for a carrier's address gets none of the carrier's requests", async t => {
  const { robot, port } = await world(t, { ownsAddress: ({ host }) => host === '127.0.0.2' })
  const carriers = { own: await dialled(t, '127.0.0.1'), other: await dialled(t, '127.0.0.2') }
  const from = (localAddress: string): Socket => connect({ port, host: '127.0.0.1', localAddress })
  const offered = [
    // At the carrier's own address, without proof that it owns the address.
    await offers(t, from('127.0.0.1'), `SIP/2.0/TCP 127.0.0.1:${carriers.own.port}`),
    await offers(t, from('127.0.0.3'), `SIP/2.0/TCP 127.0.0.2:${carriers.other.port}`),
    // It owns its address, but offers another address, or a name that it has not proved.
    await offers(t, from('127.0.0.2'), `SIP/2.0/TCP 127.0.0.1:${carriers.own.port}`),
    await offers(t, from('127.0.0.2'), `SIP/2.0/TCP carrier.example:${carriers.other.port}`),
  ]
  for (const [host, carrier] of [
    ['127.0.0.1', carriers.own],
    ['127.0.0.2', carriers.other],
  ] as const) {
    robot.command(`${host}|sip||\r\nINVITE sip:x@${host}:${carrier.port};transport=tcp SIP/2.0\r\n\r\n${SDP}`)
    await until('the carrier has its request', () => carrier.requests().startsWith('INVITE '))
  }
  for (const heard of offered) t.notMatch(heard(), /^INVITE /m)
})

t.test('a certificate lets its connection serve requests for its names, and for no others', async t => {
  const pem = (name: string): string => readFileSync(join('fixtures/tls', name), 'utf8')
  const good = { cert: pem('good.pem'), key: pem('leaf.key') }
  const { robot, edge } = await world(t, {
    listeners: [
      { protocol: 'udp', host: '127.0.0.1', port: 0 },
      { protocol: 'tls', host: '127.0.0.1', port: 0 },
    ],
    tls: { ...good, ca: pem('root.pem'), require_client_certificate: true, verify_peers: true },
  })
  const own = await dialled(t, '127.0.0.1')
  const port = edge.listeners.find(({ protocol }) => protocol === 'tls')?.port ?? 0
  const socket = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false, ...good })
  const heard = await offers(t, socket, `SIP/2.0/TLS app.example.test:${own.port}`)
  const ask = (id: string, name: string, proof = ''): void =>
    robot.command(
      `${id}|sip|||sip:127.0.0.1:${own.port};transport=tls${proof}\r\nOPTIONS sip:x@${name} SIP/2.0\r\nCall-ID: ${id}\r\n\r\n`,
    )
  for (const [at, [name, proof]] of [
    ['elsewhere.example.test', ''],
    ['app.example.test', ';x-tls-verification=off'],
    ['app.example.test', `;x-tls-verification=pinned-${'0'.repeat(64)}`],
  ].entries()) {
    ask(`no-${at}`, name ?? '', proof)
    await until('a connection is opened', () => own.arrived.length === at + 1)
    own.arrived[at]?.socket.destroy()
  }
  const pin = new X509Certificate(good.cert).fingerprint256.replaceAll(':', '').toLowerCase()
  ask('name', 'App.example.test')
  ask('pin', 'elsewhere.example.test', `;x-tls-verification=pinned-${pin}`)
  for (const id of ['name', 'pin'])
    await until('it comes by the connection', () =>
      new RegExp(`^OPTIONS [\\s\\S]*Call-ID: ${id}\\r`, 'm').test(heard()),
    )
  t.notMatch(heard(), /Call-ID: no-/)
})

t.test('the edge shows the certificate for the requested name, renews it, and can require one from peers', async t => {
  const data_dir = mkdtempSync(join(tmpdir(), 'strowger-edge-names-'))
  t.teardown(() => rmSync(data_dir, { recursive: true, force: true }))
  const pem = (name: string): string => readFileSync(join('fixtures/tls', name), 'utf8')
  const place = { tls: null, data_dir, domain: 'localhost', host: '127.0.0.1' }
  mkdirSync(join(data_dir, 'tls', 'names'), { recursive: true })
  writeFileSync(join(data_dir, 'tls', 'names', 'app.example.test.pem'), [pem('good.pem'), pem('leaf.key')].join('\n'))
  const listeners = [
    { protocol: 'tls', host: '127.0.0.1', port: 0 },
    { protocol: 'ws', host: '127.0.0.1', port: 0 },
    { protocol: 'wss', host: '127.0.0.1', port: 0, same_port: true },
  ] as const
  const shown = await world(t, { listeners, tls: await tlsOptions(place) })
  const secure = (port: number, options: object): TLSSocket => {
    const socket = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false, ...options })
    t.teardown(() => socket.destroy())
    return socket
  }
  for (const [servername, organization] of [
    ['app.example.test', 'good'],
    ['else.example.test', 'own'],
  ]) {
    for (const { protocol, port } of shown.edge.listeners.filter(l => l.protocol !== 'ws')) {
      const socket = secure(port, { servername, ca: pem('root.pem') })
      await once(socket, 'secureConnect')
      t.equal(socket.authorized ? 'good' : 'own', organization, `${servername} over ${protocol}: ${organization}`)
    }
  }

  const before = secure(shown.port, {})
  await once(before, 'secureConnect')
  rmSync(join(data_dir, 'tls', 'names'), { recursive: true })
  copyFileSync('fixtures/tls/good.pem', join(data_dir, 'tls', 'cert.pem'))
  copyFileSync('fixtures/tls/leaf.key', join(data_dir, 'tls', 'key.pem'))
  shown.edge.renewTls(await tlsOptions(place))
  for (const { protocol, port } of shown.edge.listeners.filter(l => l.protocol !== 'ws')) {
    const socket = secure(port, { servername: 'localhost', ca: pem('root.pem') })
    await once(socket, 'secureConnect')
    t.equal(socket.authorized, true, `the renewed certificate over ${protocol}`)
  }
  before.write(request('OPTIONS', 8, { via: 'SIP/2.0/TLS' }))
  const [still] = (await once(before, 'data')) as [Buffer]
  t.match(still.toString(), /^SIP\/2\.0 200 /, 'a connection from before the renewal is still served')

  copyFileSync('fixtures/tls/root.pem', join(data_dir, 'tls', 'clients.pem'))
  const asked = await world(t, { listeners, tls: await tlsOptions(place) })
  const trusted = secure(asked.port, { cert: pem('good.pem'), key: pem('leaf.key') })
  trusted.write(request('OPTIONS', 9, { via: 'SIP/2.0/TLS' }))
  const [answer] = (await once(trusted, 'data')) as [Buffer]
  t.match(answer.toString(), /^SIP\/2\.0 200 /, 'a peer with a certificate of that root is served')
  const strangers = [{}, { cert: tls.cert, key: tls.key }, { cert: pem('expired.pem'), key: pem('leaf.key') }]
  for (const identity of strangers) {
    const socket = secure(asked.port, identity)
    socket.on('error', () => undefined)
    socket.write(request('OPTIONS', 9, { via: 'SIP/2.0/TLS' }))
    await new Promise(resolve => socket.once('close', resolve))
  }
  t.equal(
    asked.robot.seen.length,
    1,
    'without a certificate, with a self-signed or an expired one, the connection is closed unread',
  )

  const url = `wss://127.0.0.1:${asked.edge.listeners.find(l => l.protocol === 'wss')?.port}`
  const web = (identity: object): WebSocket => {
    const socket = new WebSocket(url, 'sip', { rejectUnauthorized: false, ...identity })
    t.teardown(() => socket.terminate())
    return socket
  }
  const browser = web({ cert: pem('good.pem'), key: pem('leaf.key') })
  await once(browser, 'open')
  browser.send(request('OPTIONS', 9, { via: 'SIP/2.0/WSS' }))
  const [heard] = (await once(browser, 'message')) as [Buffer]
  t.match(heard.toString(), /^SIP\/2\.0 200 /, 'the same over WSS')
  for (const identity of strangers) await once(web(identity), 'error')
})

t.test('a taken port is reported with its number and transport', async t => {
  const { edge, port } = await world(t)
  const again = (protocol: 'udp' | 'tcp') =>
    createEdge({
      listeners: [{ protocol, host: '127.0.0.1', port }],
      control: { host: '127.0.0.1', port: 0, secret: 'x' },
    })
  for (const protocol of ['udp', 'tcp'] as const) {
    const error = await again(protocol).catch(caught => caught)
    t.ok(error instanceof ListenError)
    t.match(error, { code: 'EADDRINUSE', protocol, port })
  }
  const control = { host: '127.0.0.1', port: edge.control.port, secret: 'x' }
  const error = await createEdge({ listeners: [{ protocol: 'udp', host: '127.0.0.1', port: 0 }], control }).catch(
    e => e,
  )
  t.match(error, { code: 'EADDRINUSE', protocol: 'control', port: edge.control.port })
})

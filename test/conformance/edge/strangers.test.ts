import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { WebSocket } from 'ws'
import { compileRealms, makeNonce } from '../../../core/domain/identity/index.ts'
import { machineNonces, type Nonces, sharedNonceKey, sharedNonces } from '../../../core/runtime/secrets.ts'
import { createEdge, type TracedMessage } from '../../../signaling/edge/index.ts'
import t, { type Test } from '../../support/harness/index.ts'
import { digestAnswer } from '../../support/phone.ts'
import { until } from '../../support/wait.ts'
import { final, finalTo, Peer, request, SDP, starts, status, tagOf, type World, world } from './peer.ts'
import { startRobot } from './robot.ts'
import { testClock } from './test-clock.ts'
import { testTls } from './test-tls.ts'
import { tortureMessages } from './torture.ts'

// Tests strangers, which are sources that are not configured: what they cost, how they authenticate, and that forged
// source addresses do not harm others (decision 0111).

const CONFIGURED = '127.0.0.2'
const REALM = 'sip.example'

/** Opens an edge that challenges strangers. Its application refuses the credentials of `bad`. */
async function guarded(t: Test, over: Parameters<typeof world>[1] = {}): Promise<World & { kept: TracedMessage[] }> {
  const kept: TracedMessage[] = []
  const w = await world(t, {
    isConfiguredSource: host => host === CONFIGURED,
    strangers: {
      nonces: () => machineNonces('cymru'),
      domain: REALM,
      realms: () => compileRealms([{ realm: REALM, host: null }]),
      heard_per_second: 0,
    },
    onMessage: message => kept.push(message),
    ...over,
  })
  w.robot.answer = (_, text) => (/\r\nAuthorization: .*username="bad"/.test(text) ? 401 : 200)
  return { ...w, kept }
}

const nonceOf = (challenge: string): string => /nonce="([^"]+)"/.exec(challenge)?.[1] ?? ''
const asking = (username: string, challenge: string, nonce = nonceOf(challenge)): string =>
  `Authorization: ${digestAnswer({
    ...{ algorithm: 'MD5', username, password: 'x', realm: REALM, nonce, nc: '00000001', uri: 'sip:app@127.0.0.1' },
  })}`

/** Waits for the answer to an OPTIONS, so that the edge has read everything sent before. */
async function read(peer: Peer, port: number): Promise<void> {
  const last = request('OPTIONS', peer.port)
  peer.send(last, port)
  await peer.next(text => final(text) && text.includes(/Call-ID: \S+/.exec(last)?.[0] ?? ''))
}

t.test('until the edge knows its peers it answers 503 and lets no application in', async t => {
  let known = false
  let open = (): void => undefined
  const ready = new Promise<void>(resolve => {
    open = resolve
  })
  const kept: TracedMessage[] = []
  const edge = await createEdge({
    listeners: [{ protocol: 'udp', host: '127.0.0.1', port: 0 }],
    control: { host: '127.0.0.1', port: 0, secret: 'cymru', ready },
    isConfiguredSource: () => known,
    strangers: {
      ...{ nonces: () => machineNonces('cymru'), domain: REALM },
      realms: () => compileRealms([]),
      known: () => known,
    },
    onMessage: message => kept.push(message),
  })
  t.teardown(() => edge.close())
  const port = edge.listeners[0]?.port ?? 0
  const joining = startRobot(edge.control.port, ['invite'])
  const peer = await Peer.open(t)
  const ask = async (): Promise<string> => {
    peer.send(request('INVITE', peer.port, { body: SDP, headers: ['User-Agent: telephone/1.0'] }), port)
    return await peer.next(final)
  }
  t.match(await ask(), /^SIP\/2\.0 503 [\s\S]*\r\nRetry-After: \d+\r\n/)
  t.equal(edge.stats().applications, 0)
  t.equal(edge.stats().server_transactions, 0, 'the call leaves no transaction')
  t.same(kept, [])
  known = true
  open()
  const robot = await joining
  t.teardown(() => robot.close())
  t.match(await ask(), /^SIP\/2\.0 200 /)
})

t.test(
  'a stranger over a connection learns which address it has here; over UDP, where it may be forged, nothing',
  async t => {
    const { edge, port } = await world(t, {
      isConfiguredSource: () => false,
      strangers: {
        ...{
          nonces: () => machineNonces('cymru'),
          domain: REALM,
          realms: () => compileRealms([]),
          heard_per_second: 0,
        },
      },
    })
    const peer = await Peer.open(t)
    peer.send(request('INVITE', peer.port, { body: SDP }), port)
    const bare = await peer.next(final)
    t.match(bare, /^SIP\/2\.0 403 /)
    t.notMatch(bare, /Warning/)
    const socket = connect({
      port: edge.listeners.find(({ protocol }) => protocol === 'tcp')?.port ?? 0,
      host: '127.0.0.1',
    })
    t.teardown(() => socket.destroy())
    let text = ''
    socket.on('data', data => {
      text += data.toString('latin1')
    })
    socket.write(request('INVITE', 5070, { via: 'SIP/2.0/TCP', body: SDP }))
    await until('the answer', () => text.includes('\r\n\r\n'))
    t.match(text, /^SIP\/2\.0 403 /)
    t.match(text, /Warning: 399 strowger "127\.0\.0\.1 is in no enabled source of a trunk/)
  },
)

t.test('a stranger gets one small answer or none, and leaves no state', async t => {
  const clock = testClock(20)
  const { port, edge, robot, kept } = await guarded(t, { clock })
  const peer = await Peer.open(t)
  await read(peer, port)
  const tiny = (method: string) =>
    `${method} sip:1@h SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z9hG4bK${method}\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:c@d>\r\nCall-ID: ${method}\r\nCSeq: 1 ${method}\r\n\r\n`
  const sent = [
    request('INVITE', peer.port, { body: SDP, call_id: 'invite' }),
    request('REGISTER', peer.port, { headers: ['User-Agent: telephone/1.0', 'Expires: 3600'], call_id: 'register' }),
    request('INVITE', peer.port, { body: SDP, call_id: 'junk', headers: [asking('good', '', 'made-up')] }),
    request('OPTIONS', peer.port, { call_id: 'options' }),
    request('MESSAGE', peer.port, { call_id: 'message' }),
    request('BYE', peer.port, { call_id: 'bye', to_tag: 'x' }),
    request('CANCEL', peer.port, { call_id: 'cancel' }),
    request('ACK', peer.port, { call_id: 'ack' }),
    request('INVITE', peer.port, { call_id: 'broken' }).replace(/CSeq: .*\r\n/, 'CSeq: many INVITE\r\n'),
    ...['INVITE', 'REGISTER', 'OPTIONS', 'BYE', 'SUBSCRIBE', 'ODD'].map(tiny),
    'SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP h;branch=z9hG4bKs\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:c@d>;tag=2\r\nCall-ID: s\r\nCSeq: 1 INVITE\r\n\r\n',
  ]
  const heard = robot.seen.length
  for (const text of sent) peer.send(text, port)
  // Longer than any retransmission (Timer H).
  await clock.pass(33_000)
  await read(peer, port)
  const size = new Map(sent.map(text => [/Call-ID: (\S+)/.exec(text)?.[1] ?? '', text.length]))
  const answers = peer.arrived.map(text => ({ text, call_id: /Call-ID: (\S+)/.exec(text)?.[1] ?? '' }))
  t.equal(new Set(answers.map(({ call_id }) => call_id)).size, answers.length, 'no 100, and nothing is sent twice')
  for (const { text, call_id } of answers) {
    const asked = size.get(call_id) ?? 0
    t.ok(text.length <= 1.5 * asked, `${text.slice(8, 11)} to ${call_id}: ${text.length} for ${asked} bytes`)
  }
  const of = (call_id: string) => answers.find(answer => answer.call_id === call_id)?.text.slice(8, 11)
  t.match(['invite', 'register', 'junk', 'options', 'message', 'bye', 'cancel', 'broken'].map(of), [
    '401',
    '401',
    '401',
    '200',
    '405',
    '481',
    '481',
    '400',
  ])
  t.same([of('ack'), of('INVITE'), of('REGISTER'), of('s')], [undefined, undefined, undefined, undefined])
  t.ok(answers.find(answer => answer.call_id === 'register')?.text.includes('algorithm=MD5'))
  t.equal(edge.stats().server_transactions, 0)
  t.same(kept, [], 'no message from or to a stranger is recorded')
  t.ok(
    robot.seen.slice(heard).every(({ method }) => method === 'OPTIONS'),
    'only OPTIONS reach the application',
  )
})

t.test('on a stream both requests of RFC 4475 dblreq get a full answer, however small they are', async t => {
  const { port } = await guarded(t)
  const tcp = await line(t, port)
  let text = ''
  tcp.socket.on('data', data => {
    text += data.toString('latin1')
  })
  const dblreq =
    tortureMessages('rfc4475.txt')
      .find(({ name }) => name === 'dblreq')
      ?.bytes.toString('latin1') ?? ''
  // The second request in the RFC has a truncated body.
  const second = request('INVITE', 9, { via: 'SIP/2.0/TCP', call_id: 'second', body: SDP })
  tcp.socket.write(`${dblreq.slice(0, dblreq.indexOf('INVITE '))}${second}`)
  await until('the second is answered', () => /\r\nCall-ID: second\r\n/.test(text))
  const answers = text.split(/(?=SIP\/2\.0 )/).map(answer => ({
    status: answer.slice(8, 11),
    call_id: /Call-ID: (\S+)/.exec(answer)?.[1],
    algorithms: [...answer.matchAll(/algorithm=([^,]+)/g)].map(found => found[1]),
  }))
  const whole = { status: '401', algorithms: ['SHA-256', 'MD5'] }
  t.match(answers, [
    { ...whole, call_id: 'dblreq.0ha0isndaksdj99sdfafnl3lk233412' },
    { ...whole, call_id: 'second' },
  ])
})

t.test('a stranger that answers the challenge correctly is served as a peer', async t => {
  const { port, edge, kept, robot } = await guarded(t)
  const peer = await Peer.open(t)
  const invite = (call_id: string, headers: readonly string[] = []) =>
    request('INVITE', peer.port, { body: SDP, call_id, from_tag: call_id, headers, cseq: headers.length + 1 })
  peer.send(invite('good'), port)
  const challenge = await peer.next(status(401))
  peer.send(invite('bad', [asking('bad', challenge)]), port)
  const refusal = await peer.next(status(401))
  t.match(refusal, /Call-ID: bad\r\n/)
  t.equal(edge.stats().server_transactions, 0, 'a wrong password leaves no transaction')
  t.same(kept, [], 'and no recorded message')
  robot.answer = () => 180
  peer.send(invite('good', [asking('good', challenge)]), port)
  await peer.next(status(180))
  peer.send(request('CANCEL', peer.port, { call_id: 'other' }), port)
  t.equal(edge.stats().server_transactions, 1)
  t.match(
    kept.map(({ direction, text }) => [direction, text.split(' ')[0], /Call-ID: (\S+)/.exec(text)?.[1]]),
    [
      ['in', 'INVITE', 'good'],
      ['out', 'SIP/2.0', 'good'],
    ],
    'the INVITE and its response are recorded in order',
  )
  t.match(kept[0]?.text, /Authorization: /, 'the recorded INVITE is the authorized one')
})

t.test('an answer to the challenge of the application reaches it while the edge knows no account yet', async t => {
  const nonces = machineNonces('cymru')
  // With the clock stopped, all requests are in one second.
  const clock = testClock(0)
  const { port, robot } = await guarded(t, {
    strangers: { nonces: () => nonces, domain: REALM, realms: () => compileRealms([]), heard_per_second: 1 },
    clock,
  })
  const peer = await Peer.open(t)
  const answers = (text: string): boolean => text.includes('\r\nAuthorization: ')
  robot.answer = (_, text) => (answers(text) ? 200 : 401)
  robot.headers = (_, text) => {
    if (answers(text)) return ''
    const holder = { transport: 'udp', address: '127.0.0.1' } as const
    const nonce = makeNonce(nonces.crypto, nonces.now_ms(clock), '0123abcd', holder)
    return `www-authenticate: Digest realm="${REALM}", nonce="${nonce}", algorithm=MD5, qop="auth"\r\n`
  }
  const register = (headers: readonly string[] = []) => request('REGISTER', peer.port, { headers })
  peer.send(register(), port)
  const challenge = await peer.next(status(401))
  peer.send(register(), port)
  t.match(await peer.next(final), /^SIP\/2\.0 403 /, 'the edge itself knows no account')
  peer.send(register([asking('good', challenge)]), port)
  t.match(await peer.next(final), /^SIP\/2\.0 200 /)
  t.equal(robot.seen.length, 2)
})

t.test('a nonce that was sent to another address is refused before the application', async t => {
  const { port, robot } = await guarded(t)
  const [one, other] = [await Peer.open(t), await Peer.open(t, '127.0.0.3')]
  one.send(request('REGISTER', one.port, { headers: ['Expires: 3600'] }), port)
  const challenge = await one.next(status(401))
  other.send(request('REGISTER', other.port, { headers: [asking('good', challenge)] }), port)
  t.not(nonceOf(await other.next(status(401))), nonceOf(challenge))
  t.equal(robot.seen.length, 0)
})

t.test(
  'a nonce of another machine of the installation reaches the application, and that of a foreign one not',
  async t => {
    const key = sharedNonceKey(Buffer.alloc(32, 1))
    const foreign = sharedNonceKey(Buffer.alloc(32, 2))
    const edge = (nonces: Nonces) =>
      guarded(t, {
        strangers: {
          ...{ nonces: () => nonces, domain: REALM, heard_per_second: 0 },
          realms: () => compileRealms([{ realm: REALM, host: null }]),
        },
      })
    const [near, far, other] = [
      await edge(sharedNonces(key)),
      await edge(sharedNonces(key)),
      await edge(sharedNonces(foreign)),
    ]
    const peer = await Peer.open(t)
    const challenged = async ({ port }: World): Promise<string> => {
      peer.send(request('REGISTER', peer.port, { headers: ['Expires: 3600'] }), port)
      return await peer.next(status(401))
    }
    const challenge = await challenged(near)
    const answer = request('REGISTER', peer.port, { headers: ['Expires: 3600', asking('good', challenge)] })
    peer.send(answer, other.port)
    t.not(nonceOf(await peer.next(finalTo(answer))), nonceOf(challenge), 'it challenges again, with a nonce of its own')
    t.equal(other.robot.seen.length, 0)
    const again = request('REGISTER', peer.port, { headers: ['Expires: 3600', asking('good', challenge)] })
    peer.send(again, far.port)
    t.match(await peer.next(finalTo(again)), /^SIP\/2\.0 200 /)
    t.equal(far.robot.seen.length, 1)
  },
)

t.test('the application may accept a source that the edge does not know, within a limit per second', async t => {
  const { port, robot, kept } = await guarded(t, {
    strangers: { nonces: () => machineNonces('cymru'), domain: REALM, realms: () => compileRealms([]) },
    // With the clock stopped, all requests are in one second.
    clock: testClock(0),
  })
  const peer = await Peer.open(t)
  robot.answer = () => 180
  peer.send(request('INVITE', peer.port, { body: SDP, call_id: 'new' }), port)
  await peer.next(status(180))
  t.equal(kept.length, 2, 'an accepted source is a peer')
  robot.answer = () => 403
  for (let i = 0; i < 40; i++) {
    peer.send(request('INVITE', peer.port, { body: SDP, call_id: `${i}`, from_tag: `${i}` }), port)
    await peer.next(status(403))
  }
  t.equal(robot.seen.length, 20, 'a flood reaches the application only up to the limit')
  t.equal(kept.length, 2)
})

interface Line {
  readonly socket: Socket
  ask(text: string): Promise<string>
}

async function line(t: Test, port: number, from = '127.0.0.1'): Promise<Line> {
  const socket = connect({ port, host: '127.0.0.1', localAddress: from })
  let text = ''
  socket.on('data', data => {
    text += data.toString('latin1')
  })
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  t.teardown(() => socket.destroy())
  return {
    socket,
    ask: async asked => {
      text = ''
      socket.write(asked)
      return await until('it is answered', () => /^SIP\/2\.0 [2-6][\s\S]*\r\n\r\n/m.exec(text)?.[0])
    },
  }
}

t.test('six junk REGISTERs over UDP silence no TCP registration, no call and no connection', async t => {
  const { port, edge } = await guarded(t)
  const tcp = await line(t, port)
  const over_tcp = { via: 'SIP/2.0/TCP', headers: [] as string[] }
  const asked = (method: string, parts: Parameters<typeof request>[2] = {}) =>
    request(method, 9, { ...over_tcp, ...parts })
  const challenge = await tcp.ask(asked('REGISTER'))
  const password = { headers: [asking('good', challenge)] }
  t.match(await tcp.ask(asked('REGISTER', password)), /^SIP\/2\.0 200 /)
  const answered = await tcp.ask(asked('INVITE', { ...password, call_id: 'tcp', body: SDP }))
  tcp.socket.write(asked('ACK', { call_id: 'tcp', to_tag: tagOf(answered) }))

  // The same host also has a call over UDP, the transport of the junk.
  const peer = await Peer.open(t)
  const proof = async (from: Peer): Promise<string> => {
    from.send(request('REGISTER', from.port, { headers: ['Expires: 3600'] }), port)
    return await from.next(status(401))
  }
  const with_udp = [asking('good', await proof(peer))]
  peer.send(request('INVITE', peer.port, { call_id: 'udp', body: SDP, headers: with_udp }), port)
  const up = await peer.next(status(200))
  peer.send(request('ACK', peer.port, { call_id: 'udp', to_tag: tagOf(up) }), port)

  const junk = await Peer.open(t)
  for (let i = 0; i < 6; i++) {
    junk.send(request('REGISTER', junk.port, { headers: [asking('bad', '', `junk${i}`)] }), port)
    junk.send(request('REGISTER', junk.port, { headers: [asking('bad', challenge)] }), port)
    await junk.next(status(401))
    await junk.next(status(401))
  }
  t.same(edge.blockedSources(), [], 'junk does not count against its source address')

  const guessed = await proof(junk)
  for (let i = 0; i < 5; i++) {
    junk.send(request('REGISTER', junk.port, { headers: [asking('bad', guessed)] }), port)
    await junk.next(status(401))
  }
  t.match(
    edge.blockedSources(),
    [{ host: '127.0.0.1', protocol: 'udp', reason: 'failures' }],
    'wrong passwords with a valid nonce do',
  )
  const { dropped } = edge.stats().counters
  junk.send(request('REGISTER', junk.port, { headers: ['Expires: 3600'] }), port)
  await until('it is dropped', () => edge.stats().counters.dropped > dropped)

  t.match(await tcp.ask(asked('REGISTER', password)), /^SIP\/2\.0 200 /, 'the registration over TCP continues')
  t.match(await tcp.ask(asked('BYE', { call_id: 'tcp', to_tag: tagOf(answered), cseq: 2 })), /^SIP\/2\.0 200 /)
  t.match(await (await line(t, port)).ask(asked('REGISTER')), /^SIP\/2\.0 401 /, 'a new connection is accepted')
  peer.send(request('REGISTER', peer.port, { headers: with_udp }), port)
  await peer.next(text => status(200)(text) && text.includes('REGISTER'))
  peer.send(request('BYE', peer.port, { call_id: 'udp', to_tag: tagOf(up), cseq: 2 }), port)
  t.ok(await peer.next(text => status(200)(text) && text.includes('BYE')), 'a call over UDP can be hung up')
})

t.test('strangers cannot use up the transactions of peers', async t => {
  const { port, edge, robot } = await guarded(t, { limits: { transactions: 10 } })
  const stranger = await Peer.open(t)
  stranger.send(request('REGISTER', stranger.port, { headers: ['Expires: 3600'] }), port)
  const proof = asking('good', await stranger.next(status(401)))
  robot.answer = () => 0
  for (let i = 0; i < 20; i++)
    stranger.send(request('INVITE', stranger.port, { headers: [proof], from_tag: `${i}` }), port)
  await until('all are read', () => edge.stats().counters.received === 21)
  t.equal(edge.stats().server_transactions, 9)
  robot.answer = () => 180
  const peer = await Peer.open(t, CONFIGURED)
  peer.send(request('INVITE', peer.port, { body: SDP }), port)
  t.ok(await peer.next(status(180)))
})

t.test('a stranger cannot use up what the other strangers need to prove their passwords', async t => {
  const { port, edge, robot } = await guarded(t, { limits: { requests_per_second: 1_000_000 } })
  robot.answer = () => 0
  const greedy = await Peer.open(t)
  greedy.send(request('REGISTER', greedy.port, { headers: ['Expires: 3600'] }), port)
  const proof = asking('bad', await greedy.next(status(401)))
  for (let i = 0; i < 600; i++) {
    greedy.send(request('INVITE', greedy.port, { headers: [proof], from_tag: `${i}` }), port)
    if (i % 50 === 49) await until('they are read', () => edge.stats().counters.received === i + 2)
  }
  t.equal(edge.stats().server_transactions, 250)
  robot.answer = () => 180
  const telephone = await Peer.open(t, '127.0.0.4')
  telephone.send(request('REGISTER', telephone.port, { headers: ['Expires: 3600'] }), port)
  const good = asking('good', await telephone.next(status(401)))
  telephone.send(request('INVITE', telephone.port, { headers: [good], body: SDP }), port)
  t.ok(await telephone.next(status(180)))
})

t.test('strangers cannot use up the connections of peers, and unauthenticated ones are closed first', async t => {
  const { port, edge } = await guarded(t, {
    listeners: (['udp', 'tcp', 'tls', 'ws'] as const).map(protocol => ({ protocol, host: '127.0.0.1', port: 0 })),
    tls: await testTls(),
    limits: { connections: 10 },
  })
  const at = (protocol: string): number => edge.listeners.find(one => one.protocol === protocol)?.port ?? port
  const asked = (method: string, headers: readonly string[] = []) =>
    request(method, 9, { via: 'SIP/2.0/TCP', headers, from_tag: 'x' })
  const idle = await line(t, at('tcp'), CONFIGURED)
  const telephone = await line(t, at('tcp'))
  const challenge = await telephone.ask(asked('REGISTER'))
  await telephone.ask(asked('REGISTER', [asking('good', challenge)]))
  const strangers: Line[] = []
  for (let i = 0; i < 30; i++) strangers.push(await line(t, at('tcp')))
  await until('all but eight are closed', () => edge.stats().counters.refused_connections === 22)
  t.match(await idle.ask(asked('OPTIONS')), /^SIP\/2\.0 200 /, "a peer's connection stays, however long it was idle")
  t.match(await telephone.ask(asked('OPTIONS')), /^SIP\/2\.0 200 /, 'so does that of a registered telephone')

  const from = { host: '127.0.0.1', localAddress: CONFIGURED }
  const secure = connectTls({ port: at('tls'), ...from, rejectUnauthorized: false })
  t.teardown(() => secure.destroy())
  await once(secure, 'secureConnect')
  const web = new WebSocket(`ws://127.0.0.1:${at('ws')}`, 'sip', { localAddress: CONFIGURED })
  t.teardown(() => web.terminate())
  await once(web, 'open')
  for (let i = 0; i < 7; i++) {
    const peer = await line(t, at('tcp'), CONFIGURED)
    t.match(await peer.ask(asked('OPTIONS')), /^SIP\/2\.0 200 /, 'a peer takes the place of a stranger')
  }
  t.equal(edge.stats().sip_connections, 10)
  await until('the connection of the telephone is closed last', () => telephone.socket.destroyed)
  const refused = await line(t, at('tcp'))
  await until('it is closed', () => refused.socket.destroyed)
  t.match(await idle.ask(asked('OPTIONS')), /^SIP\/2\.0 200 /, "a stranger never takes a peer's place")
})

t.test('calls to many addresses close no connection of a configured peer', async t => {
  const { port, edge, robot } = await guarded(t, { limits: { connections: 10 } })
  const idle = await line(t, edge.listeners.find(({ protocol }) => protocol === 'tcp')?.port ?? port, CONFIGURED)
  let dialled = 0
  for (let i = 0; i < 12; i++) {
    const server = createServer(socket => {
      dialled++
      t.teardown(() => socket.destroy())
    }).listen(0, '127.0.0.3')
    await once(server, 'listening')
    t.teardown(() => server.close())
    const at = (server.address() as AddressInfo).port
    robot.command(`${i}|sip||\r\nOPTIONS sip:x@127.0.0.3:${at};transport=tcp SIP/2.0\r\n\r\n`)
    await until('it is called', () => dialled > i)
  }
  t.equal(edge.stats().counters.refused_connections, 3)
  t.match(await idle.ask(request('OPTIONS', 9, { via: 'SIP/2.0/TCP' })), /^SIP\/2\.0 200 /)
})

t.test('a flood of strangers from many addresses leaves no state behind', async t => {
  const { port, edge, kept, robot } = await guarded(t)
  const peers: Peer[] = []
  for (let i = 0; i < 50; i++) peers.push(await Peer.open(t, `127.1.0.${i + 1}`))
  let bytes = 0
  for (let round = 0; round < 20; round++) {
    for (const [i, peer] of peers.entries()) {
      const text = request(round % 2 ? 'INVITE' : 'REGISTER', peer.port, { call_id: `flood-${round}-${i}`, body: SDP })
      bytes += text.length
      peer.send(text, port)
    }
    await until('it is read', () => edge.stats().counters.received >= (round + 1) * peers.length)
  }
  const answers = peers.flatMap(peer => peer.arrived)
  t.ok(answers.every(text => starts('SIP/2.0 401')(text)))
  t.ok(answers.reduce((sum, text) => sum + text.length, 0) <= 1.5 * bytes)
  const { server_transactions, timers } = edge.stats()
  t.same([server_transactions, timers, kept.length, robot.seen.length], [0, 0, 0, 0])
})

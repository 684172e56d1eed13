import { createSocket, type Socket as DatagramSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import {
  createEdge,
  type Edge,
  type EdgeOptions,
  ListenError,
  type TracedMessage,
} from '../../../signaling/edge/index.ts'
import { UserAgent } from '../../../signaling/edge/useragent/user-agent.ts'
import { fastClock } from './fast-clock.ts'
import { ALL_VERBS, type Robot, startRobot } from './robot.ts'
import { testTls } from './test-tls.ts'

// What the transcripts do not show: RFC rules that the reference lacks, other transports, faults and limits. Real
// sockets throughout; an application on the raw control link answers.

const SDP = 'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n'
const tls = await testTls()

interface World {
  readonly edge: Edge
  readonly robot: Robot
  readonly faults: unknown[]
  readonly port: number
}

async function world(t: Test, options: Partial<EdgeOptions> = {}): Promise<World> {
  const faults: unknown[] = []
  const edge = await createEdge({
    listeners: [
      { protocol: 'udp', host: '127.0.0.1', port: 0 },
      { protocol: 'tcp', host: '127.0.0.1', port: 0, same_port: true },
    ],
    control: { host: '127.0.0.1', port: 0, secret: 'cymru' },
    log: { debug: () => 0, info: () => 0, warn: () => 0, error: facts => faults.push(facts) },
    ...options,
  })
  const robot = await startRobot(edge.control.port, ALL_VERBS)
  t.teardown(() => {
    robot.close()
    edge.close()
    if (faults.length > 0) throw new Error(`the edge logged errors: ${JSON.stringify(faults)}`)
  })
  return { edge, robot, faults, port: edge.listeners[0]?.port ?? 0 }
}

/** A UDP peer that sends what it is told and keeps what arrives. */
class Peer {
  readonly arrived: string[] = []
  readonly #socket: DatagramSocket

  constructor(socket: DatagramSocket) {
    this.#socket = socket
    socket.on('message', data => {
      const text = data.toString('latin1')
      if (text.trim() === '') return
      this.arrived.push(text)
      socket.emit('arrived')
    })
  }

  static async open(t: Test, host = '127.0.0.1'): Promise<Peer> {
    const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
    socket.bind(0, host)
    await once(socket, 'listening')
    t.teardown(() => socket.close())
    return new Peer(socket)
  }

  get port(): number {
    return this.#socket.address().port
  }

  send(text: string, port: number, host = '127.0.0.1'): void {
    this.#socket.send(Buffer.from(text, 'latin1'), port, host)
  }

  /** The first message that arrived, or arrives, and fits. */
  async next(fits: (text: string) => boolean): Promise<string> {
    for (;;) {
      const found = this.arrived.find(fits)
      if (found !== undefined) {
        this.arrived.splice(this.arrived.indexOf(found), 1)
        return found
      }
      await once(this.#socket, 'arrived')
    }
  }
}

let serial = 0

function request(
  method: string,
  port: number,
  parts: {
    headers?: readonly string[]
    body?: string
    branch?: string
    to_tag?: string
    call_id?: string
    cseq?: number
    uri?: string
    via?: string
    from_tag?: string
  } = {},
): string {
  const { body = '', headers = [], call_id = `call-${++serial}`, cseq = 1, branch = `z9hG4bK${++serial}` } = parts
  return [
    `${method} ${parts.uri ?? 'sip:app@127.0.0.1'} SIP/2.0`,
    `Via: ${parts.via ?? 'SIP/2.0/UDP'} 127.0.0.1:${port};branch=${branch};rport`,
    `From: <sip:alice@127.0.0.1>;tag=${parts.from_tag ?? 'a'}`,
    `To: <sip:app@127.0.0.1>${parts.to_tag === undefined ? '' : `;tag=${parts.to_tag}`}`,
    `Call-ID: ${call_id}`,
    `CSeq: ${cseq} ${method}`,
    `Contact: <sip:alice@127.0.0.1:${port}>`,
    ...headers,
    ...(body === '' ? [] : ['Content-Type: application/sdp']),
    `Content-Length: ${body.length}`,
    '',
    body,
  ].join('\r\n')
}

const status = (code: number, method?: string) => (text: string) =>
  text.startsWith(`SIP/2.0 ${code} `) && (method === undefined || text.includes(` ${method}\r\n`))
const final = (text: string): boolean => /^SIP\/2\.0 [2-6]/.test(text)
const starts = (method: string) => (text: string) => text.startsWith(`${method} `)
const tagOf = (text: string): string => /\r\nTo: [^\r]*;tag=([^;\r]+)/.exec(text)?.[1] ?? ''

t.test('requests that RFC 3261 refuses get their own status', async t => {
  const { port } = await world(t)
  const peer = await Peer.open(t)
  const cases: readonly (readonly [string, number, string])[] = [
    ['Max-Forwards 0 on a call', 483, request('INVITE', peer.port, { headers: ['Max-Forwards: 0'], body: SDP })],
    ['an unknown extension', 420, request('OPTIONS', peer.port, { headers: ['Require: teleport'] })],
    ['an unknown method', 501, request('TELEPORT', peer.port)],
    ['REFER outside a dialog that nobody serves', 405, request('REFER', peer.port)],
    ['BYE outside a dialog', 481, request('BYE', peer.port)],
    ['UPDATE outside a dialog', 481, request('UPDATE', peer.port)],
    ['PRACK outside a dialog', 481, request('PRACK', peer.port)],
    ['CANCEL of nothing', 481, request('CANCEL', peer.port)],
    ['INVITE in an unknown dialog', 481, request('INVITE', peer.port, { to_tag: 'x', body: SDP })],
    ['an unknown scheme', 416, request('OPTIONS', peer.port, { uri: 'gopher:x' })],
  ]
  for (const [what, expected, text] of cases) {
    peer.send(text, port)
    const answer = await peer.next(final)
    t.equal(Number(answer.slice(8, 11)), expected, `${what}: ${expected}`)
    if (expected === 420) t.match(answer, /\r\nUnsupported: teleport\r\n/, '420 names the extension')
    if (expected === 405) t.match(answer, /\r\nAllow: INVITE/, '405 names what is allowed')
  }
})

t.test('the same request by two paths makes one call, and the second gets 482', async t => {
  const { port, robot } = await world(t)
  const peer = await Peer.open(t)
  robot.answer = () => 0
  const parts = { call_id: 'merged', body: SDP }
  peer.send(request('INVITE', peer.port, { ...parts, branch: 'z9hG4bKone' }), port)
  await peer.next(status(100))
  peer.send(request('INVITE', peer.port, { ...parts, branch: 'z9hG4bKtwo' }), port)
  t.match(await peer.next(final), /^SIP\/2\.0 482 /)
  t.equal(robot.seen.length, 1, 'the application saw one')
})

t.test('glare: a re-INVITE that crosses another gets 491 or 500, in both directions', async t => {
  const { port, robot, edge } = await world(t)
  const peer = await Peer.open(t)
  peer.send(request('INVITE', peer.port, { call_id: 'glare', body: SDP }), port)
  const answer = await peer.next(status(200))
  const to_tag = tagOf(answer)
  peer.send(request('ACK', peer.port, { call_id: 'glare', to_tag }), port)
  while (!robot.seen.some(s => s.method === 'ACK')) await pause(5)

  // Ours is open, theirs crosses: 491.
  robot.command(`c1|sip||glare;from-tag=a\r\nINVITE sip:placeholder SIP/2.0\r\n\r\n${SDP}`)
  const ours = await peer.next(starts('INVITE'))
  peer.send(request('INVITE', peer.port, { call_id: 'glare', to_tag, cseq: 2, body: SDP }), port)
  t.match(await peer.next(status(491)), /CSeq: 2 INVITE/)
  peer.send(reply(ours, 200, 'x', SDP, peer.port), port)
  while (!robot.seen.some(s => s.text.startsWith('SIP/2.0 200'))) await pause(5)
  robot.command('c2|sip||glare;from-tag=a\r\nACK sip:placeholder SIP/2.0\r\n\r\n')
  await peer.next(starts('ACK'))

  // Theirs is open and unanswered, another follows: 500; ours meanwhile is refused without reaching the wire.
  robot.answer = () => 0
  peer.send(request('INVITE', peer.port, { call_id: 'glare', to_tag, cseq: 3, body: SDP }), port)
  await peer.next(status(100, 'INVITE'))
  peer.send(request('INVITE', peer.port, { call_id: 'glare', to_tag, cseq: 4, body: SDP }), port)
  t.match(await peer.next(status(500)), /Retry-After/)
  robot.command(`c3|sip||glare;from-tag=a\r\nINVITE sip:placeholder SIP/2.0\r\n\r\n${SDP}`)
  while (!robot.seen.some(s => s.text.startsWith('SIP/2.0 491'))) await pause(5)
  t.notOk(peer.arrived.some(starts('INVITE')), 'nothing went out')
  t.equal(edge.stats().dialogs, 1)
})

t.test('in-dialog requests count only with the right tags and a growing CSeq', async t => {
  const { port, robot } = await world(t)
  const peer = await Peer.open(t)
  peer.send(request('INVITE', peer.port, { call_id: 'tags', cseq: 10, body: SDP }), port)
  const to_tag = tagOf(await peer.next(status(200)))
  peer.send(request('ACK', peer.port, { call_id: 'tags', to_tag, cseq: 10 }), port)
  const cases = [
    ['a BYE with a foreign From tag', 481, { from_tag: 'b', to_tag, cseq: 11 }],
    ['a BYE with a foreign To tag', 481, { to_tag: 'zzz', cseq: 11 }],
    ['an old CSeq', 500, { to_tag, cseq: 9 }],
  ] as const
  for (const [what, expected, parts] of cases) {
    peer.send(request('BYE', peer.port, { call_id: 'tags', ...parts }), port)
    t.equal(Number((await peer.next(status(expected, 'BYE'))).slice(8, 11)), expected, what)
  }
  t.notOk(
    robot.seen.some(s => s.method === 'BYE'),
    'none reached the application',
  )
  peer.send(request('BYE', peer.port, { call_id: 'tags', to_tag, cseq: 12 }), port)
  t.ok(await peer.next(status(200, 'BYE')), 'the right one ends the call')
})

t.test('a BYE before the answer ends the call as a CANCEL would', async t => {
  const { port, robot, edge } = await world(t)
  const peer = await Peer.open(t)
  robot.answer = method => (method === 'INVITE' ? 180 : 200)
  peer.send(request('INVITE', peer.port, { call_id: 'early', body: SDP }), port)
  const to_tag = tagOf(await peer.next(status(180)))
  peer.send(request('INFO', peer.port, { call_id: 'early', to_tag, cseq: 2 }), port)
  t.ok(await peer.next(status(200, 'INFO')), 'INFO in the early dialog is answered by the application')
  peer.send(request('BYE', peer.port, { call_id: 'early', to_tag, cseq: 3 }), port)
  t.ok(await peer.next(status(200, 'BYE')))
  t.ok(await peer.next(status(487, 'INVITE')))
  while (!robot.seen.some(s => s.method === 'CANCEL')) await pause(5)
  t.equal(edge.stats().dialogs, 0)
})

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

t.test('a call over TLS, WebSocket and IPv6 is taken and hung up', async t => {
  const { robot, edge } = await world(t, {
    listeners: [
      { protocol: 'udp', host: '127.0.0.1', port: 0 },
      { protocol: 'tls', host: '127.0.0.1', port: 0 },
      { protocol: 'ws', host: '127.0.0.1', port: 0 },
      { protocol: 'wss', host: '127.0.0.1', port: 0 },
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

  for (const protocol of ['ws', 'wss'] as const) {
    const web = new WebSocket(`${protocol}://127.0.0.1:${portOf(protocol)}`, 'sip', { rejectUnauthorized: false })
    await once(web, 'open')
    t.teardown(() => web.terminate())
    await callOver(t, protocol.toUpperCase(), robot, text => web.send(text), web)
    web.send('\r\n\r\n')
    const [pong] = (await once(web, 'message')) as [Buffer]
    t.equal(pong.toString(), '\r\n', 'keep-alive is answered')
  }
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
  const call_id = `over-${name}`
  send(request('INVITE', 9, { call_id, via: `SIP/2.0/${name}`, body: SDP }))
  const answer = await until(/SIP\/2\.0 200 [\s\S]*\r\n\r\n/)
  send(
    request('ACK', 9, { call_id, via: `SIP/2.0/${name}`, to_tag: tagOf(answer.slice(answer.indexOf('SIP/2.0 200'))) }),
  )
  while (!robot.seen.some(s => s.method === 'ACK' && s.text.includes(call_id))) await pause(5)
  robot.command(`bye-${name}|sip||${call_id};from-tag=a\r\nBYE sip:placeholder SIP/2.0\r\n\r\n`)
  const bye = await until(/^BYE [\s\S]*\r\n\r\n/)
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
  t.match(await udp_only.next(starts('MESSAGE')), /Via: SIP\/2\.0\/UDP/, 'UDP is the way that is left')
})

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

t.test('a second fork that answers is acknowledged with its own tag and hung up', async t => {
  const { robot, port } = await world(t)
  const peer = await Peer.open(t)
  robot.command(`f1|sip||\r\nINVITE sip:bob@127.0.0.1:${peer.port} SIP/2.0\r\nCall-ID: fork\r\n\r\n${SDP}`)
  const invite = await peer.next(starts('INVITE'))
  const id = /From: [^\r]*;tag=([^\r;]+)/.exec(invite)?.[1] ?? ''
  peer.send(reply(invite, 200, 'one', SDP, peer.port), port)
  while (!robot.seen.some(s => s.text.startsWith('SIP/2.0 200'))) await pause(5)
  robot.command(`f2|sip||fork;from-tag=${id}\r\nACK sip:placeholder SIP/2.0\r\n\r\n`)
  t.match(await peer.next(starts('ACK')), /;tag=one/)
  peer.send(reply(invite, 200, 'two', SDP, peer.port), port)
  t.match(await peer.next(starts('ACK')), /;tag=two/)
  const bye = await peer.next(starts('BYE'))
  t.match(bye, /;tag=two/)
  peer.send(reply(bye, 200, 'two', '', peer.port), port)
  t.equal(robot.seen.filter(s => s.text.startsWith('SIP/2.0 200')).length, 1, 'the application heard of one')
})

t.test('each of several early dialogs may send requests, until one of them answers', async t => {
  const { robot, port } = await world(t)
  const peer = await Peer.open(t)
  robot.command(`e1|sip||\r\nINVITE sip:bob@127.0.0.1:${peer.port} SIP/2.0\r\nCall-ID: forks\r\n\r\n${SDP}`)
  const invite = await peer.next(starts('INVITE'))
  const ours = /From: [^\r]*;tag=([^;\r]+)/.exec(invite)?.[1] ?? ''
  for (const tag of ['one', 'two']) peer.send(reply(invite, 183, tag, SDP, peer.port), port)
  while (robot.seen.length < 2) await pause(5)
  const info = (from_tag: string, cseq: number): void =>
    peer.send(request('INFO', peer.port, { call_id: 'forks', from_tag, to_tag: ours, cseq }), port)
  for (const tag of ['one', 'two']) {
    info(tag, tag === 'one' ? 50 : 7)
    t.ok(await peer.next(text => status(200, 'INFO')(text) && text.includes(`tag=${tag}`)), `${tag} is heard`)
  }
  peer.send(reply(invite, 200, 'one', SDP, peer.port), port)
  while (!robot.seen.some(s => s.text.startsWith('SIP/2.0 200'))) await pause(5)
  peer.send(request('BYE', peer.port, { call_id: 'forks', from_tag: 'two', to_tag: ours, cseq: 8 }), port)
  t.ok(await peer.next(status(481, 'BYE')), 'the one that lost is not')
  robot.command(`e2|sip||forks;from-tag=${ours}\r\nACK sip:placeholder SIP/2.0\r\n\r\n`)
  t.match(await peer.next(starts('ACK')), /;tag=one/, 'the ACK goes to the one that answered')
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

t.test('every message is shown to the ladder, and repetitions are marked', async t => {
  const traced: TracedMessage[] = []
  const { port, robot } = await world(t, { onMessage: message => void traced.push(message) })
  const peer = await Peer.open(t)
  const text = request('OPTIONS', peer.port)
  peer.send(text, port)
  await peer.next(status(200))
  peer.send(text, port)
  await peer.next(status(200))
  t.same(
    traced.map(m => [m.direction, m.protocol, m.retransmission, m.raw.toString('latin1').split(' ')[0]]),
    [
      ['in', 'udp', false, 'OPTIONS'],
      ['out', 'udp', false, 'SIP/2.0'],
      ['in', 'udp', true, 'OPTIONS'],
      ['out', 'udp', true, 'SIP/2.0'],
    ],
  )
  t.equal(robot.seen.length, 1, 'the application saw one')
  t.match(traced[0], { remote: { host: '127.0.0.1', port: peer.port }, local: { port } })
})

function reply(request: string, code: number, tag: string, body: string, port: number): string {
  const line = (name: string): string => new RegExp(`^${name}: .*$`, 'm').exec(request)?.[0].trimEnd() ?? ''
  const to = line('To')
  return [
    `SIP/2.0 ${code} X`,
    line('Via'),
    line('From'),
    to.includes(';tag=') ? to : `${to};tag=${tag}`,
    line('Call-ID'),
    line('CSeq'),
    `Contact: <sip:bob@127.0.0.1:${port}>`,
    ...(body === '' ? [] : ['Content-Type: application/sdp']),
    `Content-Length: ${body.length}`,
    '',
    body,
  ].join('\r\n')
}

/** Where a request came from, by its Via. */
const portOf = (request: string): number => Number(/^Via: SIP\/2\.0\/UDP [^:]+:(\d+)/m.exec(request)?.[1])

function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}

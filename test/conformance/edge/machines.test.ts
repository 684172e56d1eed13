import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { compileRealms } from '../../../core/domain/identity/index.ts'
import type { Beat } from '../../../core/runtime/edge-link.ts'
import { machineNonces } from '../../../core/runtime/secrets.ts'
import type { EdgeOptions } from '../../../signaling/edge/index.ts'
import { StreamFramer } from '../../../signaling/edge/sip/stream.ts'
import t, { type Test } from '../../support/harness/index.ts'
import { freePort } from '../../support/ports.ts'
import { until } from '../../support/wait.ts'
import { wire } from '../../support/wires.ts'
import { final, finalTo, Peer, portOf, reply, request, SDP, starts, status, tagOf, type World, world } from './peer.ts'
import { testClock } from './test-clock.ts'

// Two edges of one installation: a call lives on one, and its peer is reached by the other, or sends to the other.

const KEY = '11'.repeat(32)

/** Two edges that know each other. `b` runs the calls. */
async function pair(t: Test, over: Partial<EdgeOptions> = {}): Promise<{ a: World; b: World; link_port: number }> {
  const [a, b] = [await world(t, over), await world(t, over)]
  const [at_a, at_b] = await Promise.all(
    ['mac_a', 'mac_b'].map(async machine_id => ({ machine_id, host: '127.0.0.1', port: await freePort() })),
  )
  if (!at_a || !at_b) throw new Error('no ports')
  await Promise.all([
    a.edge.learnMachines({ own: at_a, key: KEY, others: [at_b], homes: [], fronts: [] }),
    b.edge.learnMachines({ own: at_b, key: KEY, others: [at_a], homes: [], fronts: [] }),
  ])
  return { a, b, link_port: at_a.port }
}

/** A phone with one TCP connection, which only the edge that accepted it can use. */
class Phone {
  readonly arrived: string[] = []
  readonly #framer = new StreamFramer(65_536)

  readonly socket: Socket

  constructor(socket: Socket) {
    this.socket = socket
    socket.on('data', data => {
      for (const item of this.#framer.push(data.toString('latin1'))) {
        if (item.kind === 'message') this.arrived.push(item.text)
      }
    })
  }

  static async open(t: Test, port: number): Promise<Phone> {
    const socket = connect({ port, host: '127.0.0.1' })
    t.teardown(() => socket.destroy())
    await once(socket, 'connect')
    return new Phone(socket)
  }

  get port(): number {
    return this.socket.localPort ?? 0
  }

  next(fits: (text: string) => boolean): Promise<string> {
    return until('the phone hears it', () => {
      const found = this.arrived.find(fits)
      if (found !== undefined) this.arrived.splice(this.arrived.indexOf(found), 1)
      return found
    })
  }
}

const tcpPort = ({ edge }: World): number => edge.listeners.find(({ protocol }) => protocol === 'tcp')?.port ?? 0

const heard = ({ robot }: World, fits: (text: string) => boolean) =>
  until('the application hears it', () => robot.seen.find(({ text }) => fits(text)))

t.test('a call to a phone whose connection another edge holds, in both directions until its end', async t => {
  const { a, b } = await pair(t)
  const phone = await Phone.open(t, tcpPort(a))
  const hop = `sip:127.0.0.1:${phone.port};transport=tcp;x-machine=mac_a`
  b.robot.command(
    `i1|sip|||${hop}\r\nINVITE sip:phone@127.0.0.1:9;transport=tcp SIP/2.0\r\nCall-ID: lent\r\n\r\n${SDP}`,
  )
  const invite = await phone.next(starts('INVITE'))
  const own = `127\\.0\\.0\\.1:${tcpPort(a)}`
  t.match(invite, new RegExp(`\r\nVia: SIP/2\\.0/TCP ${own};`), 'the phone sees the edge that it knows')
  t.match(invite, new RegExp(`\r\nContact: <sip:${own};transport=tcp>\r\n`))
  t.notMatch(invite, /x-machine|mac_/, 'and learns nothing of machines')
  phone.socket.write(reply(invite, 180, 'p', '', phone.port))
  await heard(b, status(180))
  phone.socket.write(reply(invite, 200, 'p', SDP, phone.port))
  const { fields } = await heard(b, status(200))
  b.robot.command(`i2|sip||${fields[9]}\r\nACK sip:placeholder SIP/2.0\r\n\r\n`)
  await phone.next(starts('ACK'))
  b.robot.command(`i3|sip||${fields[9]}\r\nINFO sip:placeholder SIP/2.0\r\n\r\n`)
  const info = await phone.next(starts('INFO'))
  phone.socket.write(reply(info, 200, 'p', '', phone.port))
  await heard(b, status(200, 'INFO'))
  const bye = request('BYE', phone.port, {
    ...{ via: 'SIP/2.0/TCP', call_id: 'lent', from_tag: 'p', cseq: 7 },
    to_tag: /\r\nFrom: [^\r]*;tag=([^;\r]+)/.exec(invite)?.[1] ?? '',
  })
  phone.socket.write(bye)
  t.match(await phone.next(finalTo(bye)), /^SIP\/2\.0 200 /)
  t.ok(b.robot.seen.some(({ text }) => starts('BYE')(text)))
  t.equal(b.edge.stats().dialogs, 0)
  t.same(a.robot.seen, [], 'the other edge has no application hear of it')
  t.equal(a.edge.stats().server_transactions + a.edge.stats().client_transactions + a.edge.stats().dialogs, 0)
})

t.test('a machine that has just started calls by an edge that has not learnt of it', async t => {
  const [a, b] = [await world(t), await world(t)]
  const at = async (machine_id: string) => ({ machine_id, host: '127.0.0.1', port: await freePort() })
  const [at_a, at_b] = [await at('mac_a'), await at('mac_b')]
  const alone = { key: KEY, homes: [], fronts: [] }
  await a.edge.learnMachines({ own: at_a, ...alone, others: [] })
  await b.edge.learnMachines({ own: at_b, ...alone, others: [at_a] })
  const phone = await Phone.open(t, tcpPort(a))
  const hop = `sip:127.0.0.1:${phone.port};transport=tcp;x-machine=mac_a`
  b.robot.command(`n1|sip|||${hop}\r\nINVITE sip:phone@127.0.0.1:9 SIP/2.0\r\nCall-ID: new\r\n\r\n${SDP}`)
  phone.socket.write(reply(await phone.next(starts('INVITE')), 180, 'p', '', phone.port))
  await heard(b, status(180))
  t.equal(a.edge.stats().counters.stray, 0, 'the response is none of nobody’s')
})

t.test('a phone that nobody can reach fails the request, and a datagram then leaves directly', async t => {
  const { a, b } = await pair(t)
  const phone = await Phone.open(t, tcpPort(a))
  const { port } = phone
  let serial = 0
  const ask = async (hop: string): Promise<string> => {
    const id = `o${++serial}`
    b.robot.command(`${id}|sip|||${hop}\r\nOPTIONS sip:phone@127.0.0.1:9 SIP/2.0\r\nCall-ID: ${id}\r\n\r\n`)
    const { text } = await heard(b, text => text.startsWith('SIP/2.0 ') && text.includes(`\r\nCall-ID: ${id}\r\n`))
    return text.slice(8, 11)
  }
  t.equal(await ask(`sip:127.0.0.1:${port};transport=tcp;x-machine=mac_gone`), '503', 'a machine that is unknown')
  phone.socket.destroy()
  await until('the connection is gone', () => a.edge.stats().sip_connections === 0)
  t.equal(await ask(`sip:127.0.0.1:${port};transport=tcp;x-machine=mac_a`), '503', 'a connection that is gone')
  const peer = await Peer.open(t)
  const lent = `sip:127.0.0.1:${peer.port};x-machine=mac_a`
  const asked = ask(lent)
  const options = await peer.next(starts('OPTIONS'))
  t.equal(portOf(options), a.port, 'by the port that the phone knows')
  peer.send(reply(options, 200, 'x', '', peer.port), a.port)
  t.equal(await asked, '200')
  a.edge.close()
  await until('a request leaves directly, once the link is known to be lost', async () => {
    b.robot.command(`d${++serial}|sip|||${lent}\r\nOPTIONS sip:phone@127.0.0.1:9 SIP/2.0\r\n\r\n`)
    return portOf(await peer.next(starts('OPTIONS'))) === b.port
  })
})

t.test('requests of a dialog at the wrong edge reach the right one, and the answer leaves where they came', async t => {
  const { a, b } = await pair(t)
  const peer = await Peer.open(t)
  const call = { call_id: 'wrong', from_tag: 'w' }
  peer.send(request('INVITE', peer.port, { ...call, body: SDP }), b.port)
  const to_tag = tagOf(await peer.next(status(200)))
  peer.send(request('ACK', peer.port, { ...call, to_tag }), a.port)
  await heard(b, starts('ACK'))
  const again = request('INVITE', peer.port, { ...call, to_tag, cseq: 2, body: SDP })
  peer.send(again, a.port)
  const moved = await peer.next(finalTo(again))
  t.match(moved, /^SIP\/2\.0 200 /)
  t.ok(moved.includes(`\r\nContact: <sip:127.0.0.1:${b.port}>\r\n`), 'the peer still knows where the call lives')
  peer.send(request('ACK', peer.port, { ...call, to_tag, cseq: 2 }), a.port)
  const bye = request('BYE', peer.port, { ...call, to_tag, cseq: 3 })
  peer.send(bye, a.port)
  t.match(await peer.next(finalTo(bye)), /^SIP\/2\.0 200 /)
  t.equal(b.edge.stats().dialogs, 0, 'the call has ended')
  t.same(a.robot.seen, [])
  for (const unknown of [`${to_tag.slice(0, 4)}nobody`, 'of-no-machine']) {
    const stray = request('BYE', peer.port, { call_id: 'stray', to_tag: unknown })
    peer.send(stray, a.port)
    t.match(await peer.next(finalTo(stray)), /^SIP\/2\.0 481 /, 'what is in no dialog')
  }
  b.edge.close()
  const late = request('BYE', peer.port, { ...call, to_tag, cseq: 4 })
  // What was sent before the link was known to be lost is repeated, as any request over UDP.
  const answer = await until('the request is answered', () => {
    peer.send(late, a.port)
    return peer.arrived.find(finalTo(late))
  })
  t.match(answer, /^SIP\/2\.0 481 /, 'its machine is away')
})

t.test('a lone edge leaves unanswered what it cannot place yet, and hands new requests to another machine', async t => {
  const [a, b] = [await world(t, { lone: true }), await world(t)]
  const [at_a, at_b] = [
    { machine_id: 'mac_a', host: '127.0.0.1', port: await freePort() },
    { machine_id: 'mac_b', host: '127.0.0.1', port: await freePort() },
  ]
  const peer = await Peer.open(t)
  const call = { call_id: 'home', from_tag: 'h' }
  const invite = request('INVITE', peer.port, { ...call, body: SDP })
  peer.send(request('BYE', peer.port, { call_id: 'up', to_tag: 'of-another-machine' }), a.port)
  peer.send(invite, a.port)
  await until('it has read both', () => a.edge.stats().counters.received === 2)
  await b.edge.learnMachines({ own: at_b, key: KEY, others: [at_a], homes: [], fronts: [] })
  await a.edge.learnMachines({ own: at_a, key: KEY, others: [at_b], homes: ['mac_b'], fronts: [] })
  peer.send(invite, a.port)
  const answer = await peer.next(final)
  t.match(answer, /^SIP\/2\.0 200 /, 'the first final answer')
  t.ok(answer.includes(`\r\nContact: <sip:127.0.0.1:${a.port}>\r\n`), 'the peer knows the lone edge alone')
  const to_tag = tagOf(answer)
  peer.send(request('ACK', peer.port, { ...call, to_tag }), a.port)
  const bye = request('BYE', peer.port, { ...call, to_tag, cseq: 2 })
  peer.send(bye, a.port)
  t.match(await peer.next(finalTo(bye)), /^SIP\/2\.0 200 /)
  t.equal(b.edge.stats().dialogs, 0)
  t.same(a.robot.seen, [])
  b.edge.close()
  await until('a new request is judged here, once no other machine can be reached', () => {
    peer.send(request('OPTIONS', peer.port), a.port)
    return a.robot.seen.some(({ text }) => starts('OPTIONS')(text))
  })
})

t.test('a lone edge hands new requests to a machine whose application is there', async t => {
  const [a, b, c] = [await world(t, { lone: true }), await world(t), await world(t)]
  const at = async (machine_id: string) => ({ machine_id, host: '127.0.0.1', port: await freePort() })
  const [at_a, at_b, at_c] = [await at('mac_a'), await at('mac_b'), await at('mac_c')]
  const alone = { key: KEY, others: [at_a], homes: [], fronts: [] }
  await b.edge.learnMachines({ own: at_b, ...alone })
  await c.edge.learnMachines({ own: at_c, ...alone })
  b.robot.close()
  await until('its application has left', () => b.edge.stats().applications === 0)
  await a.edge.learnMachines({ own: at_a, key: KEY, others: [at_b, at_c], homes: ['mac_b', 'mac_c'], fronts: [] })
  const peer = await Peer.open(t)
  await until('it has heard so', async () => {
    const sent = request('OPTIONS', peer.port, { call_id: `early-${Math.random()}` })
    peer.send(sent, a.port)
    return status(200)(await peer.next(finalTo(sent)))
  })
  // One in two would go to the other machine.
  for (let calls = 0; calls < 12; calls++) {
    const sent = request('OPTIONS', peer.port, { call_id: `placed-${calls}` })
    peer.send(sent, a.port)
    t.match(await peer.next(finalTo(sent)), /^SIP\/2\.0 200 /)
  }
})

t.test('a stranger cannot flood one edge by way of another, nor speak on the link between them', async t => {
  // All requests are in one second.
  const clock = testClock(0)
  const { a, b, link_port } = await pair(t, {
    ...{ limits: { requests_per_second: 5 }, clock },
    isConfiguredSource: host => host === '127.0.0.2',
    strangers: {
      ...{ nonces: () => machineNonces('cymru'), domain: 'sip.example', heard_per_second: 0 },
      realms: () => compileRealms([]),
    },
  })
  const [peer, stranger] = [await Peer.open(t, '127.0.0.2'), await Peer.open(t, '127.0.0.3')]
  const call = { call_id: 'flooded', from_tag: 'w' }
  peer.send(request('INVITE', peer.port, { ...call, body: SDP }), b.port)
  const to_tag = tagOf(await peer.next(status(200)))
  const before = b.edge.stats().counters.received
  for (let sent = 0; sent < 30; sent++)
    stranger.send(request('BYE', stranger.port, { call_id: `${sent}`, to_tag }), a.port)
  await until('the edge has read them', () => a.edge.stats().counters.received === 30)
  clock.speed = 1
  const bye = request('BYE', peer.port, { ...call, to_tag, cseq: 2 })
  peer.send(bye, a.port)
  t.match(await peer.next(finalTo(bye)), /^SIP\/2\.0 200 /)
  t.equal(b.edge.stats().counters.received - before, 6, 'five of the stranger, and the last one')

  const refused = async (key: Buffer): Promise<boolean> => {
    const socket = connectTls({
      ...{ host: '127.0.0.1', port: link_port, ciphers: 'ECDHE-PSK-CHACHA20-POLY1305' },
      ...{ minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' },
      pskCallback: () => ({ psk: key, identity: 'mac_b' }),
      checkServerIdentity: () => undefined,
    })
    t.teardown(() => socket.destroy())
    return await new Promise(resolve => {
      socket.once('secureConnect', () => resolve(false))
      socket.once('error', () => resolve(true))
    })
  }
  t.equal(await refused(Buffer.alloc(32)), true, 'who does not have the key')
  t.equal(await refused(Buffer.from(KEY, 'hex')), false, 'the key alone decides')
})

t.test('an edge passes on what its node says, and replaces a link whose other end falls silent', async t => {
  const heard: Beat[] = []
  const { link_port } = await pair(t, { onBeat: beat => void heard.push(beat) })
  const way = await wire(t, link_port)
  const b = await world(t, {})
  const at = (machine_id: string, port: number) => ({ machine_id, host: '127.0.0.1', port })
  await b.edge.learnMachines({
    own: at('mac_c', await freePort()),
    key: KEY,
    others: [at('mac_a', way.port)],
    homes: [],
    fronts: [],
  })
  const beat = (has_state: boolean): Beat => ({ node_id: 'node_1', has_state, hears: ['node_2'] })
  await until('the beat arrives', () => {
    b.edge.beat(beat(true))
    return heard.length > 0
  })
  t.same(heard[0], beat(true))
  way.halfOpen()
  await until('a beat arrives over another connection', () => {
    b.edge.beat(beat(false))
    return heard.some(({ has_state }) => !has_state)
  })
})

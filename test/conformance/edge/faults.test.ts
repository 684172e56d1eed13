import { connect } from 'node:net'
import type { Edge } from '../../../signaling/edge/index.ts'
import { UserAgent } from '../../../signaling/edge/useragent/user-agent.ts'
import t, { type Test } from '../../support/harness/index.ts'
import { until } from '../../support/wait.ts'
import { branchOf, final, finalTo, Peer, pause, reply, request, SDP, starts, status, tagOf, world } from './peer.ts'
import { testClock } from './test-clock.ts'

// Tests peers that flood or vanish and applications that disconnect. They must neither stop others nor leave state.

t.test('when the application disconnects, new calls get 503 at once and existing calls end on both sides', async t => {
  const { port, robot, edge } = await world(t, { clock: testClock(20) })
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
  const refused = await peer.next(text => final(text) && text.includes('next'))
  t.match(refused, /^SIP\/2\.0 503 [\s\S]*\r\nRetry-After: \d+\r\n/)
  t.match(await peer.next(starts('BYE')), /Call-ID: orphan/, 'the answered call gets BYE')
  const ended = await peer.next(text => status(503)(text) && text.includes('ringing'))
  t.match(ended, /\r\nRetry-After: \d+\r\n/, 'the ringing call gets a final response')
  t.match(await peer.next(starts('CANCEL')), /Call-ID: outgoing/, 'the outgoing call is cancelled')
  peer.send(reply(ours, 487, 'late', '', peer.port), port)
  while (edge.stats().dialogs > 0) await pause(5)
})

const GARBAGE: readonly ((n: number) => string)[] = [
  n => `INVITE sip:x SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1;branch=z9hG4bK${n}\r\n\r\n`,
  n => request('INVITE', 9, { branch: `z9hG4bKg${n}` }).replace(/CSeq: .*\r\n/, 'CSeq: many INVITE\r\n'),
  n => request('OPTIONS', 9, { branch: `z9hG4bKg${n}` }).replace(/From: .*\r\n/, ''),
  n => `\x00\x01\x02 ${n} \xff not SIP at all`,
  n => `SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP 127.0.0.1;branch=z9hG4bK${n}\r\n\r\n`,
]

t.test('calls are admitted while two other sources send 2,000 malformed messages a second each', async t => {
  const clock = testClock()
  const { port, edge, robot } = await world(t, { clock, isConfiguredSource: host => host !== '127.0.0.1' })
  const began_ms = clock.monotonic_ms()
  const stranger = await Peer.open(t)
  const peer = await Peer.open(t, '127.0.0.3')
  let sent = 0
  const stop = flood(t, edge, () => {
    for (let i = 0; i < 20; i++, sent++) {
      for (const source of [stranger, peer]) source.send(GARBAGE[sent % GARBAGE.length]?.(sent) ?? '', port)
    }
  })
  const good = await caller(t, '127.0.0.2')
  const calls: string[] = []
  while (sent < 4_000 || calls.length < 30) calls.push(await good.call(port))
  stop()
  t.same([...new Set(calls)], ['ended'], `all of ${calls.length} calls were answered`)
  t.same(edge.blockedSources(), [], 'malformed datagrams block no source, because the address may be forged')
  t.equal(robot.seen.filter(s => s.method === 'INVITE').length, calls.length, 'no garbage reached the application')
  const windows = Math.floor((clock.monotonic_ms() - began_ms) / 1_000) + 2
  for (const source of [stranger, peer])
    t.ok(source.arrived.length <= windows * 100, 'the source gets no more answers than its budget')
  t.ok(edge.stats().server_transactions <= 2 * calls.length, 'garbage leaves no transaction')
})

t.test('a flood of valid requests from a stranger is limited before the application and stops no calls', async t => {
  const { port, edge, robot } = await world(t, { isConfiguredSource: host => host === '127.0.0.2' })
  const stranger = await Peer.open(t)
  const good = await caller(t, '127.0.0.2')
  const began = performance.now()
  let sent = 0
  const stop = flood(t, edge, () => {
    for (let i = 0; i < 20; i++, sent++) stranger.send(request('OPTIONS', stranger.port), port)
  })
  const calls: string[] = []
  while (sent < 4_000 || calls.length < 10) calls.push(await good.call(port))
  stop()
  t.same([...new Set(calls)], ['ended'], `all of ${calls.length} calls were answered`)
  const heard = () => robot.seen.filter(s => s.method === 'OPTIONS').length
  // A request is known to the edge before the application has it.
  await until(
    'dropped requests leave no transaction',
    () => edge.stats().server_transactions <= heard() + 2 * calls.length,
  )
  // The edge may read the last ones later than the calls end.
  const windows = Math.floor((performance.now() - began) / 1_000) + 2
  t.ok(heard() <= windows * 100, `${heard()} of ${sent} reached the application in ${windows} s`)
  t.equal(edge.stats().blocked_sources, 0)
})

/**
 * Sends batches of 20 messages or more, 10 ms apart, each once the edge has read most of the one before. Otherwise the
 * socket of an edge on a slow machine overflows, and the system drops calls before any edge sees them.
 */
function flood(t: Test, edge: Edge, send: () => void): () => void {
  const read = (): number => edge.stats().counters.received
  let before = Number.NEGATIVE_INFINITY
  const timer = setInterval(() => {
    if (read() < before + 15) return
    before = read()
    send()
  }, 10)
  const stop = (): void => clearInterval(timer)
  t.teardown(stop)
  return stop
}

/** Opens a user agent at its own address. It retransmits lost messages. */
async function caller(t: Test, host: string): Promise<{ call(port: number): Promise<string> }> {
  const agent = await UserAgent.open({ listeners: [{ protocol: 'udp', host, port: 0 }] })
  t.teardown(() => agent.close())
  return {
    call: port =>
      new Promise(resolve => {
        const call = agent.call(`sip:app@127.0.0.1:${port}`, {
          body: SDP,
          events: {
            answered: () => call.hangUp(),
            failed: response => resolve(`failed with ${response?.status}`),
            ended: why => resolve(why === 'us' ? 'ended' : why),
          },
        })
      }),
  }
}

t.test('calls that a killed process left behind are ended from its recorded messages', async t => {
  const { edge, port } = await world(t)
  const peer = await Peer.open(t)
  const at_peer = { protocol: 'udp', remote: `127.0.0.1:${peer.port}` } as const
  const kept = (direction: 'in' | 'out', text: string) => ({
    ...at_peer,
    direction,
    text,
    sip_call_id: /Call-ID: (\S+)/.exec(text)?.[1] ?? '',
  })
  const sent = (call_id: string) =>
    request('INVITE', port, { call_id, branch: `z9hG4bK${call_id}`, uri: `sip:bob@127.0.0.1:${peer.port}`, body: SDP })
  const asked = request('INVITE', peer.port, { call_id: 'asked', body: SDP })
  const left = [
    kept('in', asked),
    kept('out', reply(asked, 180, 'ours', '', port)),
    kept('out', sent('rang')),
    kept('in', reply(sent('rang'), 180, 'theirs', '', peer.port)),
    kept('out', sent('unheard')),
    // Its body was recorded only in part.
    kept('out', sent('crossed').slice(0, -20)),
    kept('out', sent('over')),
    kept('in', reply(sent('over'), 486, 'theirs', '', peer.port)),
  ]
  t.equal(edge.endLeftCalls(left), 4)
  const of = (call_id: string, fits: (text: string) => boolean) =>
    peer.next(text => fits(text) && text.includes(`Call-ID: ${call_id}\r\n`))

  const refused = await of('asked', final)
  t.match(refused, /^SIP\/2\.0 503 [\s\S]*\r\nRetry-After: \d+\r\n/)
  t.equal(tagOf(refused), 'ours', 'the refusal has the tag of the dialog that the caller knows')
  peer.send(request('ACK', peer.port, { call_id: 'asked', to_tag: 'ours', branch: branchOf(asked) }), port)

  const cancel = await of('rang', starts('CANCEL'))
  t.equal(branchOf(cancel), 'z9hG4bKrang', 'the CANCEL has the branch of the INVITE')
  peer.send(reply(cancel, 200, 'theirs', '', peer.port), port)
  peer.send(reply(sent('rang'), 487, 'theirs', '', peer.port), port)
  t.match(await of('rang', starts('ACK')), /To: [^\r]*;tag=theirs/)

  const again = await of('unheard', starts('INVITE'))
  t.match(again, /\r\nContent-Length: 0\r\n\r\n$/, 'an INVITE without a response is sent again, without its body')
  t.equal(branchOf(again), 'z9hG4bKunheard')
  peer.send(reply(again, 180, 'theirs', '', peer.port), port)
  peer.send(reply(await of('unheard', starts('CANCEL')), 200, 'theirs', '', peer.port), port)
  peer.send(reply(again, 487, 'theirs', '', peer.port), port)
  await of('unheard', starts('ACK'))

  const crossed = await of('crossed', starts('INVITE'))
  for (let repeats = 0; repeats < 2; repeats++) peer.send(reply(crossed, 200, 'theirs', SDP, peer.port), port)
  t.match(await of('crossed', starts('ACK')), /CSeq: 1 ACK/, 'a call that was answered meanwhile gets an ACK')
  await of('crossed', starts('ACK'))
  const bye = await of('crossed', starts('BYE'))
  t.match(bye, /Reason: SIP;cause=503/, 'and a BYE')
  peer.send(reply(bye, 200, 'theirs', '', peer.port), port)
  t.notOk(
    peer.arrived.some(text => text.includes('Call-ID: over')),
    'nothing is sent for a call that was refused',
  )
})

t.test('above capacity a request gets 503 with Retry-After', async t => {
  const { port, edge, robot } = await world(t, { limits: { transactions: 3 }, isConfiguredSource: () => true })
  robot.answer = () => 0
  const peer = await Peer.open(t)
  for (const call_id of ['one', 'two']) {
    peer.send(request('INVITE', peer.port, { call_id, body: SDP, from_tag: call_id }), port)
    await peer.next(status(100))
  }
  const third = request('INVITE', peer.port, { call_id: 'third', body: SDP, from_tag: 'third' })
  peer.send(third, port)
  t.match(await peer.next(finalTo(third)), /^SIP\/2\.0 503 [\s\S]*\r\nRetry-After: \d+\r\n/)
  t.equal(edge.stats().counters.refused_busy, 1)
  t.equal(edge.stats().server_transactions, 2, 'a refusal leaves no transaction')
})

t.test('a peer that sends more requests than the edge can keep gets 503, and other peers are answered', async t => {
  const { port, edge, robot } = await world(t, { limits: { transactions: 20 }, isConfiguredSource: () => true })
  robot.answer = () => 0
  const greedy = await Peer.open(t)
  for (let i = 0; i < 40; i++) greedy.send(request('INVITE', greedy.port, { from_tag: `${i}`, body: SDP }), port)
  await until('it is refused', () => edge.stats().counters.refused_busy === 30)
  robot.answer = () => 180
  for (const host of ['127.0.0.2', '127.0.0.3']) {
    const other = await Peer.open(t, host)
    other.send(request('INVITE', other.port, { body: SDP }), port)
    t.ok(await other.next(status(180)), host)
  }
})

t.test('an application that does not read is disconnected', async t => {
  const { port, edge, robot } = await world(t, {
    isConfiguredSource: () => true,
    limits: { application_bytes: 256 * 1024 },
  })
  robot.close()
  await until('the robot is gone', () => edge.stats().applications === 0)
  const deaf = connect(edge.control.port, '127.0.0.1')
  t.teardown(() => deaf.destroy())
  deaf.on('error', () => undefined)
  for (const payload of ['a|authenticate|cymru|', 'b|route|options']) deaf.write(`${payload.length}#${payload}`)
  await until('the application is connected', () => edge.stats().applications === 1)
  deaf.pause()
  const peer = await Peer.open(t)
  const large = [`X-Large: ${'y'.repeat(30_000)}`]
  await until('the edge disconnects it', () => {
    for (let i = 0; i < 20; i++) peer.send(request('OPTIONS', peer.port, { headers: large }), port)
    return edge.stats().applications === 0
  })
  // Retransmit as a peer does: the requests before it may have filled the socket's buffer.
  const after = request('OPTIONS', peer.port, { call_id: 'after' })
  const refused = await until('a later request is answered', () => {
    peer.send(after, port)
    return peer.arrived.find(finalTo(after))
  })
  t.match(refused, /^SIP\/2\.0 503 /)
})

import t from '../../support/harness/index.ts'
import { Peer, pause, reply, request, SDP, starts, status, tagOf, world } from './peer.ts'
import { testClock } from './test-clock.ts'

// Tests strangers that know the identifiers of a dialog: the application refuses them by their address, and the dialog
// stays as it was (docs/threats.md).

const FOREIGN = '127.0.0.2'
/** The highest CSeq number (RFC 3261 §8.1.1.5). Once it counts, every later request of the peer is refused. */
const LAST = 2 ** 31 - 1

/** An edge whose application refuses one source, a peer that calls it, and a stranger at that source. */
async function calledWorld(t: Parameters<typeof world>[0], options: Parameters<typeof world>[1] = {}) {
  const at = await world(t, options)
  at.robot.answer = (_method, text) => (text.includes(`received=${FOREIGN}`) ? 403 : 200)
  const [peer, stranger] = [await Peer.open(t), await Peer.open(t, FOREIGN)]
  return { ...at, peer, stranger }
}

async function call(
  { peer, port }: { peer: Peer; port: number },
  call_id: string,
  headers: readonly string[] = [],
): Promise<string> {
  peer.send(request('INVITE', peer.port, { call_id, body: SDP, headers }), port)
  const to_tag = tagOf(await peer.next(status(200, 'INVITE')))
  peer.send(request('ACK', peer.port, { call_id, to_tag }), port)
  return to_tag
}

t.test("no request of a stranger outruns the peer's CSeq numbers, answered or not", async t => {
  const at = await calledWorld(t)
  const { peer, stranger, port, robot } = at
  const call_id = 'outrun'
  const to_tag = await call(at, call_id)
  const ask = async (who: Peer, method: string, cseq: number, code: number, headers: readonly string[] = []) => {
    who.send(request(method, who.port, { call_id, to_tag, cseq, headers }), port)
    t.ok(await who.next(status(code, method)), `${method} ${cseq} ${headers}: ${code}`)
  }
  await ask(stranger, 'INFO', LAST, 403)
  await ask(stranger, 'INVITE', LAST, 420, ['Require: teleport'])
  await ask(stranger, 'UPDATE', LAST, 422, ['Session-Expires: 5'])
  await ask(stranger, 'PRACK', LAST, 481)
  await ask(stranger, 'BYE', LAST, 403)
  await ask(peer, 'INFO', 2, 200)
  robot.answer = (_method, text) => (text.includes(`received=${FOREIGN}`) ? 0 : 200)
  stranger.send(request('INFO', stranger.port, { call_id, to_tag, cseq: LAST }), port)
  while (!robot.seen.some(({ text }) => text.includes(`CSeq: ${LAST} INFO`) && text.includes(FOREIGN))) await pause(5)
  await ask(peer, 'INFO', 3, 200)
  robot.answer = () => 0
  peer.send(request('INFO', peer.port, { call_id, to_tag, cseq: 5 }), port)
  while (!robot.seen.some(({ text }) => text.includes('CSeq: 5 INFO'))) await pause(5)
  await ask(peer, 'INFO', 4, 500)
})

t.test("a stranger's ACK does not take the place of the peer's", async t => {
  const { peer, stranger, port, robot } = await calledWorld(t)
  const call_id = 'acknowledged'
  peer.send(request('INVITE', peer.port, { call_id, body: SDP }), port)
  const to_tag = tagOf(await peer.next(status(200, 'INVITE')))
  const acks = () => robot.seen.filter(({ method }) => method === 'ACK').map(({ text }) => text.includes(FOREIGN))
  for (let copies = 0; copies < 2; copies++) stranger.send(request('ACK', stranger.port, { call_id, to_tag }), port)
  while (acks().length < 1) await pause(5)
  peer.arrived.splice(0)
  t.ok(await peer.next(status(200, 'INVITE')), 'the 200 is sent again, since the caller may not have got it')
  for (let copies = 0; copies < 2; copies++) peer.send(request('ACK', peer.port, { call_id, to_tag }), port)
  while (acks().length < 2) await pause(5)
  // Whatever was sent before this request has been read when it is answered.
  peer.send(request('INFO', peer.port, { call_id, to_tag, cseq: 2 }), port)
  await peer.next(status(200, 'INFO'))
  t.same(acks(), [true, false], 'the application gets one of each, and judges them')
})

t.test("a stranger's BYE and CANCEL end neither a call nor its open re-INVITE", async t => {
  const at = await calledWorld(t)
  const { peer, stranger, port, robot, edge } = at
  const call_id = 'held'
  const to_tag = await call(at, call_id)
  robot.answer = (method, text) => (text.includes(`received=${FOREIGN}`) ? 403 : method === 'INVITE' ? 0 : 200)
  const reinvite = { call_id, to_tag, cseq: 2, body: SDP, branch: 'z9hG4bKreinvite' }
  peer.send(request('INVITE', peer.port, reinvite), port)
  await peer.next(status(100, 'INVITE'))
  stranger.send(request('BYE', stranger.port, { call_id, to_tag, cseq: 3 }), port)
  await stranger.next(status(403, 'BYE'))
  const { branch } = reinvite
  // The Via of the INVITE, as a stranger would write it that has seen it.
  stranger.send(request('CANCEL', peer.port, { call_id, to_tag, cseq: 2, branch }), port)
  await stranger.next(status(481, 'CANCEL'))
  peer.send(request('CANCEL', peer.port, { call_id, to_tag, cseq: 2, branch }), port)
  t.ok(await peer.next(status(200, 'CANCEL')), 'the re-INVITE was still open for its peer to cancel')
  t.ok(await peer.next(status(487, 'INVITE')))
  stranger.send(request('CANCEL', stranger.port, { call_id, to_tag, cseq: 1 }), port)
  await stranger.next(status(481, 'CANCEL'))
  t.equal(edge.stats().dialogs, 1)

  peer.send(request('INVITE', peer.port, { call_id, to_tag, cseq: 4, body: SDP }), port)
  await peer.next(status(100, 'INVITE'))
  peer.send(request('BYE', peer.port, { call_id, to_tag, cseq: 5 }), port)
  t.ok(await peer.next(status(200, 'BYE')), "the peer's own BYE ends the call")
  t.match(await peer.next(status(487, 'INVITE')), /CSeq: 4 INVITE/, 'and its open re-INVITE (RFC 3261 §15.1.2)')
  t.equal(edge.stats().dialogs, 0)
  t.notOk(peer.arrived.some(starts('BYE')), 'the edge has hung up on nobody')
})

t.test('a stranger neither acknowledges nor cancels a call that rings', async t => {
  const at = await calledWorld(t)
  const { peer, stranger, port, robot, edge } = at
  const call_id = 'rings'
  const { answer } = robot
  robot.answer = (method, text) => (method === 'INVITE' ? 183 : answer(method, text))
  robot.headers = method => (method === 'INVITE' ? 'Require: 100rel\r\n' : '')
  const invite = { call_id, body: SDP, headers: ['Supported: 100rel'], branch: 'z9hG4bKrings' }
  peer.send(request('INVITE', peer.port, invite), port)
  const rings = await peer.next(status(183))
  const to_tag = tagOf(rings)
  const rack = `RAck: ${/\r\nRSeq: (\d+)/.exec(rings)?.[1]} 1 INVITE`
  stranger.send(request('PRACK', stranger.port, { call_id, to_tag, cseq: 2, headers: [rack] }), port)
  await stranger.next(status(403, 'PRACK'))
  stranger.send(request('BYE', stranger.port, { call_id, to_tag, cseq: 3 }), port)
  await stranger.next(status(403, 'BYE'))
  stranger.send(request('CANCEL', peer.port, { call_id, branch: invite.branch }), port)
  await stranger.next(status(481, 'CANCEL'))
  t.equal(edge.stats().dialogs, 1)
  peer.send(request('PRACK', peer.port, { call_id, to_tag, cseq: 2, headers: [rack] }), port)
  t.ok(await peer.next(status(200, 'PRACK')), "the caller's PRACK is the first that counts")
  t.notOk(robot.seen.some(({ method }) => method === 'CANCEL'))

  // The application knows this address as the caller's too.
  robot.answer = () => 200
  robot.headers = () => ''
  stranger.send(request('BYE', stranger.port, { call_id, to_tag, cseq: 4 }), port)
  t.ok(await stranger.next(status(200, 'BYE')))
  t.ok(await peer.next(status(487, 'INVITE')), 'a BYE that the application accepts ends the call')
  while (!robot.seen.some(({ method }) => method === 'CANCEL')) await pause(5)
  t.equal(edge.stats().dialogs, 0)
})

t.test("a session ends on time although a stranger refreshes it, and the peer's own refresh extends it", async t => {
  const clock = testClock()
  const at = await calledWorld(t, { clock })
  const { peer, stranger, port } = at
  const headers = ['Supported: timer', 'Session-Expires: 90;refresher=uac']
  const tags = { foreign: await call(at, 'foreign', headers), own: await call(at, 'own', headers) }
  const pass = async (ms: number): Promise<void> => {
    clock.speed = 100
    await clock.pass(ms)
    clock.speed = 1
  }
  await pass(60_000)
  for (const method of ['UPDATE', 'INVITE']) {
    const parts = { call_id: 'foreign', to_tag: tags.foreign, cseq: 2, body: method === 'INVITE' ? SDP : '' }
    stranger.send(request(method, stranger.port, parts), port)
    await stranger.next(status(403, method))
  }
  peer.send(request('UPDATE', peer.port, { call_id: 'own', to_tag: tags.own, cseq: 2, headers }), port)
  await peer.next(status(200, 'UPDATE'))
  await pass(40_000)
  const bye = await peer.next(starts('BYE'))
  peer.send(reply(bye, 200, 'a', '', peer.port), port)
  t.match(bye, /Call-ID: foreign\r\n/)
  t.match(bye, /Session timer expired/)
  t.same(
    peer.arrived.filter(text => starts('BYE')(text) && !text.includes('Call-ID: foreign')),
    [],
    'the other call goes on',
  )
})

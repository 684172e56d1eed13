import type { TracedMessage } from '../../../signaling/edge/index.ts'
import t, { type Test } from '../../support/harness/index.ts'
import {
  branchOf,
  final,
  finalTo,
  Peer,
  pause,
  portOf,
  reply,
  request,
  SDP,
  starts,
  status,
  tagOf,
  world,
} from './peer.ts'
import { testClock } from './test-clock.ts'

// Tests RFC rules that the reference does not implement, so that no transcript shows them.

t.test('requests that RFC 3261 refuses get the status that it names', async t => {
  const { port } = await world(t)
  const peer = await Peer.open(t)
  const cases: readonly (readonly [string, number, string])[] = [
    ['Max-Forwards 0 on a call', 483, request('INVITE', peer.port, { headers: ['Max-Forwards: 0'], body: SDP })],
    ['an unknown extension', 420, request('OPTIONS', peer.port, { headers: ['Require: teleport'] })],
    ['an extension that we only know', 420, request('INVITE', peer.port, { headers: ['Require: teleport, join'] })],
    ['an extension of another method', 420, request('OPTIONS', peer.port, { headers: ['Require: teleport, 100rel'] })],
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
    const answer = await peer.next(finalTo(text))
    t.equal(Number(answer.slice(8, 11)), expected, `${what}: ${expected}`)
    if (expected === 420) t.match(answer, /\r\nUnsupported: teleport[^\r]*\r\n/, '420 names the extension')
    if (expected === 405) t.match(answer, /\r\nAllow: INVITE/, '405 names what is allowed')
  }
})

t.test('the same request by two paths makes one call, and the second gets 482', async t => {
  const { port, robot } = await world(t)
  const peer = await Peer.open(t)
  robot.answer = () => 0
  const parts = { call_id: 'merged', body: SDP, headers: ['Timestamp: 54.21'] }
  peer.send(request('INVITE', peer.port, { ...parts, branch: 'z9hG4bKone' }), port)
  t.match(await peer.next(status(100)), /\r\nTimestamp: 54\.21\r\n/, 'a 100 copies it (RFC 3261 §8.2.6.1)')
  const second = request('INVITE', peer.port, { ...parts, branch: 'z9hG4bKtwo' })
  peer.send(second, port)
  t.match(await peer.next(finalTo(second)), /^SIP\/2\.0 482 /)
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

  // Our re-INVITE is open. Theirs crosses it and gets 491.
  robot.command(`c1|sip||glare;from-tag=a\r\nINVITE sip:placeholder SIP/2.0\r\n\r\n${SDP}`)
  const ours = await peer.next(starts('INVITE'))
  peer.send(request('INVITE', peer.port, { call_id: 'glare', to_tag, cseq: 2, body: SDP }), port)
  t.match(await peer.next(status(491)), /CSeq: 2 INVITE/)
  peer.send(reply(ours, 200, 'x', SDP, peer.port), port)
  while (!robot.seen.some(s => s.text.startsWith('SIP/2.0 200'))) await pause(5)
  robot.command('c2|sip||glare;from-tag=a\r\nACK sip:placeholder SIP/2.0\r\n\r\n')
  await peer.next(starts('ACK'))

  // Their re-INVITE is unanswered. Another of theirs gets 500, and ours is refused without being sent.
  robot.answer = () => 0
  peer.send(request('INVITE', peer.port, { call_id: 'glare', to_tag, cseq: 3, body: SDP }), port)
  await peer.next(status(100, 'INVITE'))
  peer.send(request('INVITE', peer.port, { call_id: 'glare', to_tag, cseq: 4, body: SDP }), port)
  t.match(await peer.next(status(500)), /Retry-After/)
  robot.command(`c3|sip||glare;from-tag=a\r\nINVITE sip:placeholder SIP/2.0\r\n\r\n${SDP}`)
  while (!robot.seen.some(s => s.text.startsWith('SIP/2.0 491'))) await pause(5)
  // Our first re-INVITE may have been retransmitted, if it had no answer for half a second.
  const other = peer.arrived.filter(text => starts('INVITE')(text) && branchOf(text) !== branchOf(ours))
  t.same(other, [], 'nothing went out')
  t.equal(edge.stats().dialogs, 1)
})

t.test('a 200 to our re-INVITE that a BYE has overtaken gets its ACK', async t => {
  const { port, robot, edge } = await world(t)
  const peer = await Peer.open(t)
  peer.send(request('INVITE', peer.port, { call_id: 'over', body: SDP }), port)
  const to_tag = tagOf(await peer.next(status(200)))
  peer.send(request('ACK', peer.port, { call_id: 'over', to_tag }), port)
  while (!robot.seen.some(s => s.method === 'ACK')) await pause(5)
  robot.command(`c1|sip||over;from-tag=a\r\nINVITE sip:placeholder SIP/2.0\r\n\r\n${SDP}`)
  const ours = await peer.next(starts('INVITE'))
  peer.send(request('BYE', peer.port, { call_id: 'over', to_tag, cseq: 2 }), port)
  await peer.next(status(200, 'BYE'))
  t.equal(edge.stats().dialogs, 0)
  for (let times = 0; times < 2; times++) {
    peer.send(reply(ours, 200, 'a', SDP, peer.port), port)
    const ack = await peer.next(starts('ACK'))
    t.match(ack, `CSeq: ${/CSeq: (\d+)/.exec(ours)?.[1]} ACK`, times === 0 ? 'RFC 3261 §13.2.2.4' : 'again')
  }
  while (!robot.seen.some(s => s.text.startsWith('SIP/2.0 200'))) await pause(5)
  t.notOk(peer.arrived.some(starts('BYE')), 'the dialog has had its BYE')
})

t.test('the CANCEL of a re-INVITE that crosses its answer gets 200, and the call continues', async t => {
  const { port, edge } = await world(t)
  const peer = await Peer.open(t)
  peer.send(request('INVITE', peer.port, { call_id: 'cross', body: SDP }), port)
  const to_tag = tagOf(await peer.next(status(200)))
  peer.send(request('ACK', peer.port, { call_id: 'cross', to_tag }), port)
  const within = { call_id: 'cross', to_tag, cseq: 2, branch: 'z9hG4bKcross' }
  peer.send(request('INVITE', peer.port, { ...within, body: SDP }), port)
  await peer.next(status(200, 'INVITE'))
  peer.send(request('CANCEL', peer.port, within), port)
  t.match(await peer.next(text => final(text) && text.includes(' CANCEL\r\n')), /^SIP\/2\.0 200 /)
  t.equal(edge.stats().dialogs, 1)
  peer.send(request('BYE', peer.port, { call_id: 'cross', to_tag, cseq: 3 }), port)
  t.ok(await peer.next(status(200, 'BYE')), 'the call lasts until its BYE')
  t.notOk(peer.arrived.some(starts('BYE')))
})

t.test('a client that has learnt its public address since its INVITE can cancel it', async t => {
  const { port, robot, edge } = await world(t)
  const peer = await Peer.open(t)
  robot.answer = method => (method === 'INVITE' ? 180 : 200)
  const parts = { call_id: 'learnt', branch: 'z9hG4bKlearnt' }
  const learnt = (text: string): string => text.replace(/(Via: \S+) \S+;branch/, '$1 203.0.113.7:61234;branch')
  peer.send(request('INVITE', peer.port, { ...parts, body: SDP }), port)
  const to_tag = tagOf(await peer.next(status(180)))
  const other = await Peer.open(t, '127.0.0.9')
  other.send(learnt(request('CANCEL', peer.port, parts)), port)
  t.match(await other.next(final), /^SIP\/2\.0 481 /, 'nobody else can')
  peer.send(learnt(request('CANCEL', peer.port, parts)), port)
  t.match(await peer.next(text => final(text) && text.includes(' CANCEL\r\n')), /^SIP\/2\.0 200 /)
  t.ok(await peer.next(status(487, 'INVITE')))
  peer.send(learnt(request('ACK', peer.port, { ...parts, to_tag })), port)
  while (!robot.seen.some(s => s.method === 'CANCEL')) await pause(5)
  t.equal(edge.stats().dialogs, 0)
})

t.test('in-dialog requests are accepted only with the right tags and an increasing CSeq', async t => {
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
  t.ok(await peer.next(status(200, 'BYE')), 'a valid BYE ends the call')
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

t.test('a caller without a Contact gets our requests at the address of its INVITE', async t => {
  const { robot, port } = await world(t)
  const peer = await Peer.open(t)
  const without = (text: string): string => text.replace(/Contact: .*\r\n/, '')
  peer.send(without(request('INVITE', peer.port, { call_id: 'nowhere', body: SDP })), port)
  const to_tag = tagOf(await peer.next(status(200)))
  peer.send(without(request('ACK', peer.port, { call_id: 'nowhere', to_tag })), port)
  while (!robot.seen.some(s => s.method === 'ACK')) await pause(5)
  robot.command('n1|sip||nowhere;from-tag=a\r\nBYE sip:placeholder SIP/2.0\r\n\r\n')
  t.ok(await peer.next(text => text.startsWith(`BYE sip:127.0.0.1:${peer.port} SIP/2.0\r\n`)))
})

t.test('brackets that a core leaves out of Contact and Record-Route send our requests nowhere else', async t => {
  const { robot, port } = await world(t)
  const core = await Peer.open(t)
  const contact = 'Contact: sip:bob@192.0.2.7;+sip.instance="<urn:gsma:imei:35-209900>";audio'
  const route = `sip:127.0.0.1:${core.port};transport=udp;lr`
  const unbracketed = (text: string): string => text.replace(/Contact: .*/, `Record-Route: ${route}\r\n${contact}`)
  const goesThrough = (text: string, method: string): void => {
    t.match(
      text,
      new RegExp(`^${method} sip:bob@192\\.0\\.2\\.7 SIP/2\\.0\r\n`),
      'to the Contact, without its parameters',
    )
    t.ok(text.includes(`\r\nRoute: <${route}>\r\n`), 'by the loose router, in brackets (RFC 3261 §20.34)')
  }
  robot.command(`k1|sip||\r\nINVITE sip:bob@127.0.0.1:${core.port} SIP/2.0\r\nCall-ID: bare\r\n\r\n${SDP}`)
  const invite = await core.next(starts('INVITE'))
  core.send(unbracketed(reply(invite, 200, 'b', SDP, core.port)), portOf(invite))
  while (!robot.seen.some(s => s.text.startsWith('SIP/2.0 200'))) await pause(5)
  const dialog = robot.seen.find(s => s.text.startsWith('SIP/2.0 200'))?.fields[9] ?? ''
  robot.command(`k2|sip||${dialog}\r\nACK sip:placeholder SIP/2.0\r\n\r\n`)
  goesThrough(await core.next(starts('ACK')), 'ACK')
  robot.command(`k3|sip||${dialog}\r\nBYE sip:placeholder SIP/2.0\r\n\r\n`)
  goesThrough(await core.next(starts('BYE')), 'BYE')

  core.send(unbracketed(request('INVITE', core.port, { call_id: 'inward', body: SDP })), port)
  const to_tag = tagOf(await core.next(text => status(200)(text) && text.includes('inward')))
  core.send(request('ACK', core.port, { call_id: 'inward', to_tag }), port)
  while (!robot.seen.some(s => s.method === 'ACK')) await pause(5)
  robot.command('k4|sip||inward;from-tag=a\r\nBYE sip:placeholder SIP/2.0\r\n\r\n')
  goesThrough(await core.next(text => starts('BYE')(text) && text.includes('inward')), 'BYE')
})

t.test('a second fork that answers gets an ACK with its own tag and a BYE', async t => {
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
  t.equal(robot.seen.filter(s => s.text.startsWith('SIP/2.0 200')).length, 1, 'the application sees one 200')
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
    t.ok(await peer.next(text => status(200, 'INFO')(text) && text.includes(`tag=${tag}`)), `${tag} gets an answer`)
  }
  peer.send(reply(invite, 200, 'one', SDP, peer.port), port)
  while (!robot.seen.some(s => s.text.startsWith('SIP/2.0 200'))) await pause(5)
  peer.send(request('BYE', peer.port, { call_id: 'forks', from_tag: 'two', to_tag: ours, cseq: 8 }), port)
  t.ok(await peer.next(status(481, 'BYE')), 'the fork that lost gets 481')
  robot.command(`e2|sip||forks;from-tag=${ours}\r\nACK sip:placeholder SIP/2.0\r\n\r\n`)
  t.match(await peer.next(starts('ACK')), /;tag=one/, 'the ACK goes to the fork that answered')
})

t.test('each of two forks gets the PRACK of its own reliable 18x, also when both chose the same RSeq', async t => {
  const { robot, port } = await world(t)
  const peer = await Peer.open(t)
  for (const [call_id, rseqs] of [
    ['differ', { one: 10, two: 20 }],
    ['same', { one: 7, two: 7 }],
  ] as const) {
    robot.command(
      `${call_id}|sip||\r\nINVITE sip:bob@127.0.0.1:${peer.port} SIP/2.0\r\nCall-ID: ${call_id}\r\n\r\n${SDP}`,
    )
    const invite = await peer.next(starts('INVITE'))
    const field = (name: string): string => new RegExp(`^${name}: (.*)`, 'm').exec(invite)?.[1]?.trimEnd() ?? ''
    const ours = /;tag=([^;]+)/.exec(field('From'))?.[1] ?? ''
    const reliable = (tag: string, rseq: number): string =>
      reply(invite, 183, tag, SDP, peer.port).replace(
        '\r\nContact: <sip:bob@',
        `\r\nRequire: 100rel\r\nRSeq: ${rseq}\r\nContact: <sip:${tag}@`,
      )
    for (const tag of ['one', 'two'] as const) peer.send(reliable(tag, rseqs[tag]), port)
    const heard = () => robot.seen.filter(({ text }) => status(183)(text) && text.includes(`Call-ID: ${call_id}\r\n`))
    while (heard().length < 2) await pause(5)
    for (const tag of ['one', 'two'] as const) {
      const rack = `RAck: ${rseqs[tag]} ${field('CSeq')}`
      robot.command(
        `${call_id}-${tag}|sip||${call_id};from-tag=${ours}\r\nPRACK sip:placeholder SIP/2.0\r\n${rack}\r\n\r\n`,
      )
    }
    const sent = new Set<string>()
    for (const tag of ['one', 'two']) {
      const prack = await peer.next(text => starts('PRACK')(text) && !sent.has(branchOf(text)))
      sent.add(branchOf(prack))
      t.equal(tagOf(prack), tag, `${call_id}: the PRACK of ${tag}`)
      t.ok(prack.startsWith(`PRACK sip:${tag}@`), 'goes to its target')
      peer.send(reply(prack, 200, tag, '', peer.port), port)
    }
    robot.command(`${call_id}-end|sip||${call_id};from-tag=${ours}\r\nINFO sip:placeholder SIP/2.0\r\n\r\n`)
    const info = await peer.next(starts('INFO'))
    t.equal(tagOf(info), 'two', 'other requests go to the latest early dialog')
    peer.send(reply(info, 200, 'two', '', peer.port), port)
    peer.send(reply(invite, 486, 'two', '', peer.port), port)
    await peer.next(starts('ACK'))
  }
})

t.test('the application learns that an INVITE has ended because its PRACK never came', async t => {
  const clock = testClock()
  const { robot, port, edge } = await world(t, { clock })
  const peer = await Peer.open(t)
  robot.answer = method => (method === 'INVITE' ? 183 : 200)
  robot.headers = method => (method === 'INVITE' ? 'Require: 100rel\r\n' : '')
  const invite = request('INVITE', peer.port, { call_id: 'silent', body: SDP, headers: ['Supported: 100rel'] })
  peer.send(invite, port)
  await peer.next(status(183))
  clock.speed = 100
  t.match(await peer.next(finalTo(invite)), /^SIP\/2\.0 504 /)
  clock.speed = 1
  peer.send(request('ACK', peer.port, { call_id: 'silent', branch: branchOf(invite) }), port)
  // The application gets this after what the edge has said before.
  peer.send(request('OPTIONS', peer.port), port)
  while (!robot.seen.some(s => s.method === 'OPTIONS')) await pause(5)
  const ended = robot.seen.find(s => s.method === 'CANCEL')
  t.equal(ended?.fields[8], robot.seen.find(s => s.method === 'INVITE')?.fields[8], 'a CANCEL of its INVITE')
  t.equal(edge.stats().dialogs, 0)
})

t.test('a PRACK that our 200 has overtaken gets 200, once', async t => {
  const { robot, port } = await world(t)
  const peer = await Peer.open(t)
  robot.answer = method => (method === 'INVITE' ? 183 : 200)
  robot.headers = method => (method === 'INVITE' ? 'Require: 100rel\r\n' : '')
  const call_id = 'overtaken'
  peer.send(request('INVITE', peer.port, { call_id, body: SDP, headers: ['Supported: 100rel'] }), port)
  const rings = await peer.next(status(183))
  const to_tag = tagOf(rings)
  const transaction = robot.seen.find(({ method }) => method === 'INVITE')?.fields[8]
  robot.command(`late|sip|${transaction}|\r\nSIP/2.0 200 OK\r\ncseq: 1 INVITE\r\n\r\n`)
  await peer.next(status(200, 'INVITE'))
  peer.send(request('ACK', peer.port, { call_id, to_tag }), port)
  const rseq = Number(/\r\nRSeq: (\d+)/.exec(rings)?.[1])
  const prack = async (cseq: number, of: number): Promise<string> => {
    const sent = request('PRACK', peer.port, { call_id, to_tag, cseq, headers: [`RAck: ${of} 1 INVITE`] })
    peer.send(sent, port)
    return (await peer.next(finalTo(sent))).slice(0, 11)
  }
  t.equal(await prack(2, rseq + 1), 'SIP/2.0 481', 'there was no such 1xx')
  t.equal(await prack(3, rseq), 'SIP/2.0 200')
  t.equal(await prack(4, rseq), 'SIP/2.0 481', 'it is acknowledged')
})

t.test("the peer's UPDATE changes the interval of its session", async t => {
  const clock = testClock()
  const { robot, port } = await world(t, { clock })
  const peer = await Peer.open(t)
  robot.headers = (_method, text) => /\r\n(Session-Expires: .*\r\n)/.exec(text)?.[1] ?? ''
  const timer = (seconds: number) => ({ headers: ['Supported: timer', `Session-Expires: ${seconds};refresher=uac`] })
  for (const [call_id, first, then] of [
    ['longer', 90, 1800],
    ['shorter', 1800, 90],
  ] as const) {
    peer.send(request('INVITE', peer.port, { call_id, body: SDP, ...timer(first) }), port)
    const to_tag = tagOf(await peer.next(status(200, 'INVITE')))
    peer.send(request('ACK', peer.port, { call_id, to_tag }), port)
    while (!robot.seen.some(s => s.method === 'ACK' && s.text.includes(`Call-ID: ${call_id}\r\n`))) await pause(5)
    peer.send(request('UPDATE', peer.port, { call_id, to_tag, cseq: 2, ...timer(then) }), port)
    t.match(await peer.next(status(200, 'UPDATE')), new RegExp(`\r\nSession-Expires: ${then};refresher=uac\r\n`))
  }
  clock.speed = 100
  const bye = await peer.next(starts('BYE'))
  clock.speed = 1
  t.match(bye, /Call-ID: shorter\r\n[\s\S]*Session timer expired/)
  peer.send(reply(bye, 200, 'a', '', peer.port), port)
  t.notOk(
    peer.arrived.some(text => starts('BYE')(text) && text.includes('Call-ID: longer')),
    'the other call goes on',
  )
})

/** A call whose session the edge refreshes, at the moment in which the first refresh has come. */
async function refreshing(t: Test) {
  const clock = testClock()
  const { robot, port, edge } = await world(t, { clock })
  const peer = await Peer.open(t)
  const headers = ['Supported: timer', 'Session-Expires: 90;refresher=uas', 'Allow: INVITE, UPDATE']
  const begun_ms = clock.monotonic_ms()
  const call_id = 'refreshed'
  peer.send(request('INVITE', peer.port, { call_id, body: SDP, headers }), port)
  const to_tag = tagOf(await peer.next(status(200, 'INVITE')))
  peer.send(request('ACK', peer.port, { call_id, to_tag }), port)
  clock.speed = 100
  const update = await peer.next(starts('UPDATE'))
  clock.speed = 1
  t.match(update, /\r\nSession-Expires: 90;refresher=uac\r\n/)
  return { clock, robot, port, edge, peer, begun_ms, update, call_id, to_tag }
}

t.test('a peer that refuses a refresh as too short and names no minimum is asked for twice as long, once', async t => {
  const { clock, port, edge, peer, begun_ms, update } = await refreshing(t)
  peer.send(reply(update, 422, 'a', '', peer.port), port)
  const again = await peer.next(text => starts('UPDATE')(text) && text.includes('\r\nSession-Expires: 180;'))
  peer.send(reply(again, 422, 'a', '', peer.port), port)
  clock.speed = 100
  const bye = await peer.next(starts('BYE'))
  clock.speed = 1
  t.match(bye, /Session timer expired/)
  t.ok(clock.monotonic_ms() - begun_ms > 85_000, 'the session lasts for its interval')
  peer.send(reply(bye, 200, 'a', '', peer.port), port)
  while (edge.stats().dialogs > 0) await pause(5)
})

t.test('a re-INVITE in either direction may cross the refresh of the edge by UPDATE, which has no offer', async t => {
  const { robot, port, peer, update, call_id, to_tag } = await refreshing(t)
  const theirs = request('INVITE', peer.port, { call_id, to_tag, cseq: 2, body: SDP })
  peer.send(theirs, port)
  t.match(await peer.next(finalTo(theirs)), /^SIP\/2\.0 200 /)
  peer.send(request('ACK', peer.port, { call_id, to_tag, cseq: 2 }), port)
  while (robot.seen.filter(s => s.method === 'ACK').length < 2) await pause(5)
  robot.command(`ours|sip||${call_id};from-tag=a\r\nINVITE sip:placeholder SIP/2.0\r\n\r\n${SDP}`)
  const ours = await peer.next(starts('INVITE'))
  peer.send(reply(ours, 488, 'a', '', peer.port), port)
  await peer.next(starts('ACK'))
  peer.send(reply(update, 200, 'a', '', peer.port), port)
  peer.send(request('BYE', peer.port, { call_id, to_tag, cseq: 3 }), port)
  t.ok(await peer.next(status(200, 'BYE')), 'the call lasts until its BYE')
  t.notOk(peer.arrived.some(starts('BYE')))
})

t.test('the ladder gets every message, with retransmissions marked', async t => {
  const traced: TracedMessage[] = []
  const { port, robot } = await world(t, { onMessage: message => void traced.push(message) })
  const peer = await Peer.open(t)
  const text = request('OPTIONS', peer.port)
  peer.send(text, port)
  await peer.next(status(200))
  peer.send(text, port)
  await peer.next(status(200))
  t.same(
    traced.map(m => [m.direction, m.protocol, m.retransmission, m.text.split(' ')[0]]),
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

import { setImmediate } from 'node:timers/promises'
import pino from 'pino'
import { connectStack } from '../../../../signaling/drachtio/stack.ts'
import type { DialogHandler, InboundInvite, SipStack } from '../../../../signaling/drachtio/types.ts'
import { commandHeader } from '../../../../signaling/edge/control/command.ts'
import { ManualClock } from '../../../fuzz/edge/manual-clock.ts'
import { DrachtioPeer } from '../../../support/drachtio-peer.ts'
import t, { type Test } from '../../../support/harness/index.ts'
import { until } from '../../../support/wait.ts'

// Our behaviour where the real drachtio-server differs from the embedded edge.

const SERVED = { hosts: ['192.0.2.1'], sip_port: 5060, sips_port: 5061, ws_port: 5066 }

const up = (sip: SipStack): Promise<void> =>
  new Promise(resolve => {
    sip.onLink(now => now && resolve())
  })

/** Opens a stack that is connected to a fake server. */
async function linked(
  t: Test,
  server?: { readonly version?: string; readonly reliable?: boolean },
): Promise<{ peer: DrachtioPeer; sip: SipStack; clock: ManualClock }> {
  const clock = new ManualClock()
  const peer = await DrachtioPeer.open(server?.version)
  const log = pino({ level: 'silent' })
  const sip = connectStack({
    host: '127.0.0.1',
    port: peer.port,
    secret: 'secret',
    log,
    clock,
    reliable: server?.reliable ?? false,
    served: SERVED,
  })
  t.teardown(() => {
    sip.close()
    peer.close()
  })
  await up(sip)
  return { peer, sip, clock }
}

/** Advances the clock by `count` ping periods. */
async function looks(clock: ManualClock, count: number): Promise<void> {
  for (let look = 0; look < count; look++) {
    clock.advance(2000)
    await setImmediate()
  }
}

const handler = (): void => undefined
const place = (sip: SipStack, provisional = handler) =>
  sip.invite({ uri: 'sip:peer@198.51.100.7', headers: {}, body: '' }, { handler, provisional })
const is = (method: string) => (message: { readonly method: string }) => message.method === method

t.test('an INVITE without a response to our CANCEL fails after 35 s, and a late 200 gets a BYE', async t => {
  const { peer, sip, clock } = await linked(t)
  let rings = (): void => undefined
  const ringing = new Promise<void>(resolve => {
    rings = resolve
  })
  const { result, cancel } = place(sip, rings)
  const invite = await peer.next(is('INVITE'))
  peer.answer(invite, 180)
  await ringing
  clock.advance(120_000)
  t.equal(sip.counts().transactions, 1, 'ringing has no timeout here')
  cancel()
  await peer.next(is('CANCEL'))
  clock.advance(34_999)
  t.equal(sip.counts().transactions, 1)
  clock.advance(1)
  t.match(await result, { kind: 'failed', link_lost: false })
  t.equal(sip.counts().transactions, 0)
  peer.answer(invite, 200)
  await peer.next(is('ACK'))
  t.equal((await peer.next(is('BYE'))).dialog_id, [...peer.dialogs][0])
})

t.test('requests whose response the server never reports time out', async t => {
  const { peer, sip, clock } = await linked(t)
  const placed = place(sip)
  peer.answer(await peer.next(is('INVITE')), 200)
  const answered = await placed.result
  if (answered.kind !== 'answered') throw new Error(answered.kind)
  await peer.next(is('ACK'))
  const info = answered.dialog.request('INFO')
  const reinvite = answered.dialog.request('INVITE', { body: 'v=0' })
  const options = sip.request({ method: 'OPTIONS', uri: 'sip:peer@198.51.100.7' })
  for (const method of ['INFO', 'INVITE', 'OPTIONS']) await peer.next(is(method))
  const failures = [info, reinvite, options].map(request => t.rejects(request, { name: 'RequestFailed' }))
  clock.advance(35_000)
  t.equal(sip.counts().transactions, 1, 'a re-INVITE may wait for a person')
  clock.advance(145_000)
  const bye = answered.dialog.bye()
  await peer.next(is('BYE'))
  clock.advance(35_000)
  await Promise.all([...failures, bye])
  t.same(sip.counts(), { dialogs: 0, transactions: 0 })
})

t.test('a second 200 of a forked INVITE leaves the call to the peer that answered first', async t => {
  const { peer, sip } = await linked(t)
  const placed = place(sip)
  const invite = await peer.next(is('INVITE'))
  peer.answer(invite, 200, [], '', 'one')
  const answered = await placed.result
  if (answered.kind !== 'answered') throw new Error(answered.kind)
  await peer.next(is('ACK'))
  peer.answer(invite, 200, [], '', 'two')
  // What follows on the link shows that the second 200 was read. A BYE by the dialog's id would reach the first peer.
  for (const look of ['first', 'second']) {
    const info = answered.dialog.request('INFO')
    const sent = await peer.next(() => true)
    t.equal(sent.message.method, 'INFO', `the ${look} request is ours`)
    peer.answer(sent, 200, [], '', 'one')
    t.equal((await info).status, 200)
  }
  t.equal(answered.dialog.remote_tag, 'one')
  t.same(sip.counts(), { dialogs: 1, transactions: 0 })
})

t.test('a request with an old CSeq is refused in a dialog, and a stranger’s number makes none old', async t => {
  const { peer, sip } = await linked(t)
  const seen: string[] = []
  const placed = sip.invite(
    { uri: 'sip:peer@198.51.100.7', headers: {}, body: '' },
    {
      handler: request => {
        const cseq = request.header('cseq') ?? ''
        seen.push(cseq)
        request.respond(cseq.startsWith('900 ') ? 403 : 200)
      },
    },
  )
  const invite = await peer.next(is('INVITE'))
  peer.answer(invite, 200)
  t.equal((await placed.result).kind, 'answered')
  await peer.next(is('ACK'))
  const [dialog_id = ''] = peer.dialogs
  const statusOf = async (cseq: string): Promise<number> => {
    const [, method = ''] = cseq.split(' ')
    const lines = [
      'Via: SIP/2.0/UDP 198.51.100.7;branch=z9hG4bKx',
      'From: <sip:peer@x>;tag=answering',
      'To: <sip:us@x>;tag=a',
    ]
    const id = peer.bring(
      'udp',
      [`${method} sip:us SIP/2.0`, ...lines, `CSeq: ${cseq}`, '', ''].join('\r\n'),
      dialog_id,
    )
    const answer = await peer.next(({ status }) => status > 0)
    t.equal(answer.transaction_id, id)
    return answer.message.status
  }
  t.equal(await statusOf('7 INFO'), 200)
  t.equal(await statusOf('900 BYE'), 403)
  t.equal(await statusOf('6 BYE'), 500)
  t.equal(await statusOf('8 BYE'), 200)
  t.same(seen, ['7 INFO', '900 BYE', '8 BYE'])
})

/** Resolves with a value after as many steps as the code of a call takes from a dialog to the call's answer. */
const inSteps = async <T>(value: Promise<T>, steps: number): Promise<T> =>
  steps === 0 ? await value : await inSteps(value, steps - 1)

t.test('a called side that hangs up as soon as the caller has its 200 finds the call answered', async t => {
  const { peer, sip } = await linked(t)
  const seen: string[] = []
  const handler: DialogHandler = request => {
    seen.push(request.method)
    request.respond(200)
  }
  const placed = sip.invite({ uri: 'sip:peer@198.51.100.7', headers: {}, body: '' }, { handler })
  const called = await peer.next(is('INVITE'))
  peer.answer(called, 200)
  t.equal((await placed.result).kind, 'answered')
  const [dialog_id = ''] = peer.dialogs
  const came = new Promise<InboundInvite>(resolve => sip.onInvite(resolve))
  peer.bring('udp', INVITE)
  const accepted = inSteps(
    (await came).accept({}, () => undefined),
    10,
  ).then(() => seen.push('the call is answered'))
  await peer.next(({ status }) => status === 200)
  // It is written at once behind the confirmation of the 200, so that the application reads both together.
  const lines = [
    'Via: SIP/2.0/UDP 198.51.100.7;branch=z9hG4bKx',
    'From: <sip:peer@x>;tag=answering',
    'To: <sip:us@x>;tag=a',
    'CSeq: 1 BYE',
  ]
  peer.bring('udp', ['BYE sip:us SIP/2.0', ...lines, '', ''].join('\r\n'), dialog_id)
  await accepted
  await until('the BYE is handled', () => seen.includes('BYE'))
  t.same(seen, ['the call is answered', 'BYE'])
})

t.test('an INVITE or answer that the server never confirms as sent fails after 35 s', async t => {
  const { peer, sip, clock } = await linked(t)
  peer.mute = true
  const placed = place(sip)
  const came = new Promise<InboundInvite>(resolve => sip.onInvite(resolve))
  peer.bring('udp', INVITE)
  const invite = await came
  const [rung, accepted] = [invite.progress(183, { reliable: true }), invite.accept({}, handler)]
  const refused = t.rejects(accepted, { name: 'LinkLost' })
  clock.advance(35_000)
  t.match(await placed.result, { kind: 'failed', link_lost: false })
  await Promise.all([rung, refused])
  t.equal(sip.counts().transactions, 0)
})

t.test('a drachtio-server gets no reliable provisional responses; an INVITE that requires them gets 420', async t => {
  const { peer, sip } = await linked(t)
  const came = new Promise<InboundInvite>(resolve => sip.onInvite(resolve))
  peer.bring('udp', INVITE)
  await (await came).progress(183, { reliable: true, body: 'v=0' })
  const { message } = await peer.next(is(''))
  t.equal(message.status, 183, 'the 183 is sent, and no PRACK is awaited')
  t.notOk(message.headers.some(({ id }) => id === 'require'))
  sip.onInvite(() => t.fail('an INVITE that requires 100rel does not become a call'))
  peer.bring('udp', INVITE.replace('Supported: 100rel', 'Require: timer, 100rel').replace('call@', 'second@'))
  const refused = await peer.next(is(''))
  t.equal(refused.message.status, 420)
  t.match(refused.message.headers.find(({ id }) => id === 'unsupported')?.value, '100rel')
})

t.test('the embedded edge, and a server configured as reliable, get reliable provisional responses', async t => {
  for (const server of [{ version: 'v0.9.10-strowger' }, { reliable: true }]) {
    const { peer, sip } = await linked(t, server)
    const came = new Promise<InboundInvite>(resolve => sip.onInvite(resolve))
    peer.bring('udp', INVITE.replace('Supported', 'Require'))
    void (await came).progress(183, { reliable: true, body: 'v=0' })
    const { message } = await peer.next(is(''))
    t.equal(message.headers.find(({ id }) => id === 'require')?.value, '100rel')
  }
})

t.test('a secret that is refused repeatedly is logged once', async t => {
  const peer = await DrachtioPeer.open()
  const lines: string[] = []
  const log = pino({ level: 'info' }, { write: line => void lines.push(line) })
  const clock = new ManualClock()
  const sip = connectStack({
    host: '127.0.0.1',
    port: peer.port,
    secret: 'wrong',
    log,
    clock,
    reliable: false,
    served: SERVED,
  })
  for (let attempts = 0; attempts < 3; attempts++) await peer.refused()
  t.equal(sip.link, 'refused')
  peer.secret = 'wrong'
  await up(sip)
  sip.close()
  peer.close()
  t.equal(lines.filter(line => /secret/.test(line)).length, 1)
  t.match(lines[0], /rejects our secret/)
  t.notMatch(lines[0], /stack/)
})

t.test('a stalled server counts as silent after 4 pings, and loses its link and calls only after 18', async t => {
  const { peer, sip, clock } = await linked(t)
  const placed = place(sip)
  peer.answer(await peer.next(is('INVITE')), 200)
  await placed.result
  peer.frozen = true
  await looks(clock, 3)
  t.equal(sip.link, 'connected')
  await looks(clock, 1)
  t.match(sip, { link: 'silent', connected: false })
  t.equal(sip.counts().dialogs, 1)
  peer.frozen = false
  await looks(clock, 1)
  await until('the server has answered', () => sip.connected)
  peer.frozen = true
  const lost = new Promise<void>(resolve => {
    sip.onLink(now => now || resolve())
  })
  await looks(clock, 19)
  await lost
  t.equal(sip.counts().dialogs, 0)
  t.equal(sip.connected, false)
  peer.frozen = false
  await up(sip)
  t.equal(sip.link, 'connected', 'the stack reconnects')
})

t.test('the missing listeners of a drachtio-server are reported, and those of the embedded edge are not', async t => {
  const { sip } = await linked(t)
  t.same(sip.missing_contacts, ['tls/192.0.2.1:5061', 'ws/192.0.2.1:5066 or wss/192.0.2.1:5066'])
  const own = await linked(t, { version: 'v0.9.10-strowger' })
  t.same(own.sip.missing_contacts, [])
})

t.test('until signaling takes calls, a request gets 503 with a time and a reason', async t => {
  const { peer } = await linked(t)
  for (const text of [INVITE, INVITE.replaceAll('INVITE', 'OPTIONS')]) {
    peer.bring('udp', text)
    const { message } = await peer.next(({ status }) => status > 0)
    t.equal(message.status, 503)
    t.match(commandHeader(message, 'retry-after'), /^\d+$/)
    t.match(commandHeader(message, 'reason'), /^X-Strowger;cause=503;text="state_unavailable"$/)
    t.match(commandHeader(message, 'warning'), /^399 strowger ".+: the platform starts"$/)
  }
})

t.test('an absent server is distinguished from a refused secret', async t => {
  const peer = await DrachtioPeer.open()
  const { port } = peer
  peer.close()
  const log = pino({ level: 'silent' })
  const clock = new ManualClock()
  const sip = connectStack({ host: '127.0.0.1', port, secret: 'secret', log, clock, reliable: false, served: SERVED })
  t.teardown(() => sip.close())
  t.equal(sip.link, 'absent')
})

const INVITE = [
  'INVITE sip:+2342010000001@192.0.2.1 SIP/2.0',
  'Via: SIP/2.0/UDP 198.51.100.7;branch=z9hG4bKcall',
  'From: <sip:+2348000000001@198.51.100.7>;tag=peer',
  'To: <sip:+2342010000001@192.0.2.1>',
  'Call-ID: call@198.51.100.7',
  'CSeq: 1 INVITE',
  'Contact: <sip:peer@198.51.100.7>',
  'Supported: 100rel',
  'Content-Length: 0',
  '\r\n',
].join('\r\n')

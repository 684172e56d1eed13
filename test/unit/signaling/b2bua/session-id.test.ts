import pino from 'pino'
import { InboundLeg } from '../../../../signaling/b2bua/inbound-leg.ts'
import type { LegListener } from '../../../../signaling/b2bua/leg.ts'
import { OutboundLeg } from '../../../../signaling/b2bua/outbound-leg.ts'
import { connectStack } from '../../../../signaling/drachtio/stack.ts'
import type { InboundInvite } from '../../../../signaling/drachtio/types.ts'
import { createEdge } from '../../../../signaling/edge/index.ts'
import type { SipMessage } from '../../../../signaling/edge/sip/message.ts'
import type { UserAgentCall } from '../../../../signaling/edge/useragent/call.ts'
import { testClock } from '../../../conformance/edge/test-clock.ts'
import { openAgent, sdpOf } from '../../../support/agents.ts'
import t, { type Test } from '../../../support/harness/index.ts'
import { AGREED, legServices, sessionWith } from '../../../support/one-leg.ts'
import { until } from '../../../support/wait.ts'

// Two telephones, with two real legs between them over the embedded edge. Media is a fake.

const [CALLER, CALLED, MOVED, NULL] = ['a1'.repeat(16), 'b2'.repeat(16), 'c3'.repeat(16), '0'.repeat(32)]
const [CALLER_IP, CALLED_IP] = ['127.0.0.8', '127.0.0.9']
const says = (own: string, other = NULL) => ({ 'Session-ID': `${own};remote=${other}` })

const session = await sessionWith(() => ({ ...AGREED, sdp: sdpOf('127.0.0.1') }))
const nothing = (): void => undefined
const LISTENER: LegListener = {
  ...{ ended: nothing, digit: nothing, refer: nothing, notify: nothing, held: nothing },
  ...{ measured: nothing, message: nothing, media: nothing },
}

/** Starts an edge and a node's stack. `sent` returns what left for a telephone: the first line and Session-ID. */
async function started(t: Test) {
  const clock = testClock()
  const control = { host: '127.0.0.1', port: 0, secret: 'cymru' }
  const listeners = [{ protocol: 'udp', host: '127.0.0.1', port: 0 }] as const
  const messages: { text: string; to: string }[] = []
  const edge = await createEdge({
    ...{ listeners, control, clock },
    onMessage: ({ direction, text, remote }) => {
      if (direction === 'out') messages.push({ text, to: remote.host })
    },
  })
  const log = pino({ level: 'silent' })
  const served = { hosts: ['127.0.0.1'], sip_port: 5060, sips_port: 5061, ws_port: 5066 }
  const sip = connectStack({
    ...{ host: '127.0.0.1', port: edge.control.port, secret: 'cymru', log, clock, reliable: false, served },
  })
  t.teardown(() => {
    sip.close()
    edge.close()
  })
  await new Promise<void>(resolve => sip.onLink(up => up && resolve()))
  const sent = (to: string): string[] => {
    // By CSeq, because a busy machine sends some of them again.
    const found = new Map<string, string>()
    for (const { text } of messages.filter(message => message.to === to)) {
      const of = (name: string): string => new RegExp(`^${name}: (.*)\\r$`, 'im').exec(text)?.[1] ?? ''
      const what = /^SIP\/2\.0 (\d+)/.exec(text)?.[1] ?? 'send'
      if (what !== '100') found.set(`${what} ${of('cseq')}`, `${what} ${of('cseq').split(' ')[1]}: ${of('session-id')}`)
    }
    return [...found.values()]
  }
  return { clock, port: edge.listeners[0]?.port ?? 0, sip, log, sent }
}

type Started = Awaited<ReturnType<typeof started>>

/** Makes the called side's leg. `trunks`: the project of each trunk. */
function legTo({ sip, clock, log }: Started, projects: Readonly<Record<string, string>>, ringing = nothing) {
  const trunks = new Map(
    Object.entries(projects).map(([id, project_id]) => [
      id,
      { project_id, subaccount_id: null, auth_mode: 'ip_allow_list' as const, targets: [] },
    ]),
  )
  const ctx = legServices({ sip, clock }, trunks)
  const leg = new OutboundLeg(ctx, {
    ...{ id: 'b', session, log, trunk_id: 'called' },
    listener: { ...LISTENER, sent: nothing, progress: ringing },
  })
  return { ctx, leg }
}

/** Places a call through two legs that face each other. */
async function called(t: Test, projects: Readonly<Record<string, string>>, take: (call: UserAgentCall) => void) {
  const world = await started(t)
  const phone = await openAgent(t, { ip: CALLED_IP, take })
  const incoming = new Promise<InboundInvite>(resolve => world.sip.onInvite(resolve))
  const asked = await openAgent(t, { ip: CALLER_IP })
  const over = { final: null as SipMessage | null, ended: '' }
  const caller = asked.ua.call('sip:+2348031234567@127.0.0.1', {
    ...{ hop: `sip:127.0.0.1:${world.port}`, body: sdpOf(CALLER_IP), headers: says(CALLER) },
    events: {
      answered: response => {
        over.final = response
      },
      failed: response => {
        over.final = response ?? null
      },
      ended: why => {
        over.ended = why
      },
      request: request => request.answer(200, request.message.method === 'INVITE' ? { body: sdpOf(CALLER_IP) } : {}),
    },
  })
  const invite = await incoming
  const { ctx, leg: b } = legTo(world, projects, () => a.ring())
  const a = new InboundLeg(ctx, {
    ...{ id: 'a', session, log: world.log, trunk_id: 'caller' },
    listener: LISTENER,
    invite,
  })
  a.prefer = b
  b.prefer = a
  const outcome = await b.place({ uri: `sip:bob@${CALLED_IP}:${phone.port}`, headers: {} })
  return { ...world, phone, caller, over, a, b, outcome }
}

const OWN = { caller: 'ours', called: 'ours' }

t.test('Session-ID is in every message of both dialogs, with the receiver as the remote half', async t => {
  const { a, b, caller, over, phone, sent } = await called(t, OWN, call => {
    call.events.request = request => request.answer(200, { body: sdpOf(CALLED_IP) })
    call.ring(180, { headers: says(CALLED, CALLER) })
    call.answer({ body: sdpOf(CALLED_IP), headers: says(CALLED, CALLER) })
  })
  await a.answer()
  await until('the answer', () => over.final)
  t.ok(await a.reoffer())
  t.ok(await b.reoffer())
  await caller.send('INFO', { headers: says(CALLER, CALLED) })
  const theirs = phone.invites[0]?.call
  const asked = await theirs?.send('SUBSCRIBE', { headers: { ...says(CALLED, CALLER), Event: 'presence' } })
  t.equal(asked?.status, 489)
  // The caller's PBX has connected another telephone.
  await caller.send('UPDATE', { headers: says(MOVED, CALLED) })
  await b.end(null)
  await a.end(null)
  await until('both have hung up', () => over.ended !== '' && theirs?.state === 'ended')

  const [to_caller, to_called] = [`${CALLED};remote=${CALLER}`, `${CALLER};remote=${CALLED}`]
  t.strictSame(sent(CALLER_IP), [
    `180 INVITE: ${to_caller}`,
    `200 INVITE: ${to_caller}`,
    `send INVITE: ${to_caller}`,
    `send ACK: ${to_caller}`,
    `200 INFO: ${to_caller}`,
    `200 UPDATE: ${CALLED};remote=${MOVED}`,
    `send BYE: ${CALLED};remote=${MOVED}`,
  ])
  t.strictSame(sent(CALLED_IP), [
    `send INVITE: ${CALLER};remote=${NULL}`,
    `send ACK: ${to_called}`,
    `send INVITE: ${to_called}`,
    `send ACK: ${to_called}`,
    `489 SUBSCRIBE: ${to_called}`,
    `send BYE: ${MOVED};remote=${CALLED}`,
  ])
})

t.test('Session-ID of a refusal names who refused, and that of an older peer is not taken for its own', async t => {
  const refused = await called(t, OWN, call => call.reject(486, { headers: says(CALLED, CALLER) }))
  t.match(refused.outcome, { kind: 'refused', response: { status: 486 } })
  refused.a.refuseWith(486, {})
  await refused.a.end(null)
  await until('the refusal', () => refused.over.final)
  t.strictSame(refused.sent(CALLER_IP), [`486 INVITE: ${CALLED};remote=${CALLER}`])

  const older = await called(t, OWN, call =>
    call.answer({
      body: sdpOf(CALLED_IP),
      headers: { 'Session-ID': call.invite?.get('session-id')?.slice(0, 32) ?? '' },
    }),
  )
  await older.a.answer()
  await until('the answer', () => older.over.final)
  await older.b.end(null)
  await until('it has hung up', () => older.phone.invites[0]?.call.state === 'ended')
  t.strictSame(older.sent(CALLER_IP), [`200 INVITE: ${NULL};remote=${CALLER}`], 'its UUID is not known')
  t.strictSame(older.sent(CALLED_IP).slice(1), [
    `send ACK: ${CALLER};remote=${NULL}`,
    `send BYE: ${CALLER};remote=${NULL}`,
  ])
})

t.test('two tenants in one call, and a carrier, learn nothing of each other by Session-ID', async t => {
  const strangers: Readonly<Record<string, string>>[] = [{ caller: 'ours', called: 'theirs' }, { caller: 'ours' }]
  for (const projects of strangers) {
    const { a, b, over, phone, sent } = await called(t, projects, call =>
      call.answer({ body: sdpOf(CALLED_IP), headers: says(CALLED, CALLER) }),
    )
    await a.answer()
    await until('the answer', () => over.final)
    await b.end(null)
    await a.end(null)
    await until('both have hung up', () => over.ended !== '' && phone.invites[0]?.call.state === 'ended')
    t.strictSame(sent(CALLER_IP), [`200 INVITE: ${NULL};remote=${CALLER}`, `send BYE: ${NULL};remote=${CALLER}`])
    t.strictSame(sent(CALLED_IP), [
      'send INVITE: ',
      `send ACK: ${NULL};remote=${CALLED}`,
      `send BYE: ${NULL};remote=${CALLED}`,
    ])
  }
})

t.test('a call of our own making brings no Session-ID, and repeats that of its peer', async t => {
  const world = await started(t)
  const phone = await openAgent(t, {
    ip: CALLED_IP,
    take: call => call.answer({ body: sdpOf(CALLED_IP), headers: says(CALLED) }),
  })
  const { leg } = legTo(world, { called: 'ours' })
  await leg.place({ uri: `sip:bob@${CALLED_IP}:${phone.port}`, headers: {} })
  await leg.end(null)
  await until('it has hung up', () => phone.invites[0]?.call.state === 'ended')
  t.strictSame(world.sent(CALLED_IP), [
    'send INVITE: ',
    `send ACK: ${NULL};remote=${CALLED}`,
    `send BYE: ${NULL};remote=${CALLED}`,
  ])
})

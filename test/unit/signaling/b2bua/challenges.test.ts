import { createHash } from 'node:crypto'
import pino from 'pino'
import type { CallContext } from '../../../../signaling/b2bua/context.ts'
import type { MediaSession } from '../../../../signaling/b2bua/media.ts'
import { OutboundLeg } from '../../../../signaling/b2bua/outbound-leg.ts'
import { connectStack } from '../../../../signaling/drachtio/stack.ts'
import { createEdge } from '../../../../signaling/edge/index.ts'
import type { SipMessage } from '../../../../signaling/edge/sip/message.ts'
import type { Call } from '../../../../signaling/edge/useragent/call.ts'
import type { IncomingRequest } from '../../../../signaling/edge/useragent/message-parts.ts'
import { testClock } from '../../../conformance/edge/test-clock.ts'
import { type Agent, openAgent, sdpOf } from '../../../support/agents.ts'
import t, { type Test } from '../../../support/harness/index.ts'
import { until } from '../../../support/wait.ts'

// A peer that challenges what we send, over the embedded edge. Media is a fake that notes the SDP it is given.

const AUTH = { username: 'us', password: 'secret' }

const challenge = (nonce: string, { realm = 'carrier', stale = false } = {}): string =>
  `Digest realm="${realm}", nonce="${nonce}", qop="auth", algorithm=SHA-256${stale ? ', stale=true' : ''}`

/** Whether an Authorization value proves the password for this nonce and method. */
function proves(value: string | undefined, nonce: string, method: string): boolean {
  const of = (name: string): string => new RegExp(`[ ,]${name}="?([^",]*)`).exec(value ?? '')?.[1] ?? ''
  const hash = (text: string): string => createHash('sha256').update(text).digest('hex')
  const first = hash(`${AUTH.username}:${of('realm')}:${AUTH.password}`)
  const second = hash(`${method}:${of('uri')}`)
  const response = hash(`${first}:${nonce}:${of('nc')}:${of('cnonce')}:auth:${second}`)
  return of('nonce') === nonce && of('response') === response
}

/** Starts an edge, a node's stack and a peer, and places a call with our credentials. */
async function placed(t: Test, take: (call: Call, agent: () => Agent) => void, auth: typeof AUTH | null = AUTH) {
  const clock = testClock()
  const control = { host: '127.0.0.1', port: 0, secret: 'cymru' }
  const edge = await createEdge({ listeners: [{ protocol: 'udp', host: '127.0.0.1', port: 0 }], control, clock })
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
  let agent: Agent | null = null
  const opened = await openAgent(t, { ip: '127.0.0.8', take: call => take(call, () => agent ?? opened) })
  agent = opened
  const given: string[] = []
  const ended: string[] = []
  const hub = {
    async request(method: string, { sdp = '' }: { sdp?: string }) {
      if (method === 'leg.remote_answer') given.push(sdp)
      return { sdp: sdpOf('127.0.0.1'), codec: 'PCMU', direction: 'sendrecv', hold: false }
    },
  }
  const session = { hub, openLeg: async () => undefined, closeLeg: async () => null } as unknown as MediaSession
  const nothing = (): void => undefined
  const ctx = { sip, clock, snapshot: () => ({ trunks: new Map() }) } as unknown as CallContext
  const leg = new OutboundLeg(ctx, {
    ...{ id: 'b', session, log },
    listener: {
      ended: (_leg, { cause }) => void ended.push(cause),
      ...{ digit: nothing, refer: nothing, notify: nothing, held: nothing, message: nothing, media: nothing },
      ...{ measured: nothing, sent: nothing, progress: nothing },
    },
  })
  const outcome = await leg.place({
    uri: `sip:+2348031234567@127.0.0.8:${opened.port}`,
    headers: { From: '<sip:+2342010000001@127.0.0.1>' },
    ...(auth ? { auth } : {}),
  })
  return { agent: opened, clock, edge, leg, given, ended, outcome }
}

const rejects = (call: Call, nonce: string, more = {}): void =>
  call.reject(407, { headers: { 'Proxy-Authenticate': challenge(nonce, more) } })
const answers = (call: Call, headers: Record<string, string> = {}): void =>
  call.answer({ body: sdpOf('127.0.0.8'), headers })
const proxied = ({ invite }: Call): string | undefined => invite?.get('proxy-authorization')

t.test('a challenged INVITE is sent again with the credentials, as the same request', async t => {
  const seen: SipMessage[] = []
  const { outcome } = await placed(t, call => {
    if (call.invite) seen.push(call.invite)
    if (proves(proxied(call), 'n1', 'INVITE')) answers(call)
    else rejects(call, 'n1')
  })
  t.equal(outcome.kind, 'answered')
  const [first, second] = seen
  t.equal(seen.length, 2)
  t.equal(second?.call_id, first?.call_id)
  t.equal(second?.from_tag, first?.from_tag)
  t.equal(second?.cseq.seq, (first?.cseq.seq ?? 0) + 1)
})

t.test(
  'wrong credentials are tried once, an old nonce is renewed, and a peer without a password sees its 407',
  async t => {
    const asked: (string | undefined)[] = []
    const refused = await placed(t, call => {
      asked.push(proxied(call))
      rejects(call, `n${asked.length}`)
    })
    t.match(refused.outcome, { kind: 'refused', response: { status: 407 } })
    t.equal(asked.length, 2)

    const renewed = await placed(t, call => {
      if (proves(proxied(call), 'new', 'INVITE')) answers(call)
      else rejects(call, proxied(call) ? 'new' : 'old', { stale: proxied(call) !== undefined })
    })
    t.equal(renewed.outcome.kind, 'answered')

    const without = await placed(t, call => rejects(call, 'n1'), null)
    t.match(without.outcome, { kind: 'refused', response: { status: 407 } })
  },
)

t.test('a challenged session refresh is answered, and the call goes on', async t => {
  const updates: IncomingRequest[] = []
  const { clock, ended, agent } = await placed(t, call => {
    if (!proxied(call)) return rejects(call, 'n1')
    call.events.request = request => {
      updates.push(request)
      const name = request.message.method
      if (proves(request.message.get('authorization'), 'n2', name)) request.answer(200)
      else request.answer(401, { headers: { 'WWW-Authenticate': challenge('n2') } })
    }
    answers(call, { Allow: 'INVITE, ACK, BYE, UPDATE', 'Session-Expires': '90;refresher=uac', Require: 'timer' })
  })
  clock.speed = 40
  await until('two refreshes are answered', () => updates.length >= 4)
  clock.speed = 1
  t.same(ended, [])
  t.equal(agent.invites.at(-1)?.call.state, 'answered')
  t.ok(updates.every(({ message }) => message.method === 'UPDATE' && message.body.length === 0))
  t.match(updates.at(-1)?.message.get('session-expires'), /^90;refresher=uac/)
})

t.test('a challenge in another realm gets no digest of the password', async t => {
  const updates: SipMessage[] = []
  const { clock, leg } = await placed(t, call => {
    if (!proxied(call)) return rejects(call, 'n1')
    call.events.request = request => {
      updates.push(request.message)
      request.answer(401, { headers: { 'WWW-Authenticate': challenge('n2', { realm: 'another' }) } })
    }
    answers(call, { Allow: 'UPDATE', 'Session-Expires': '90;refresher=uac' })
  })
  clock.speed = 40
  await until('a refresh was refused', () => updates.length > 0)
  clock.speed = 1
  await leg.end(null)
  t.ok(updates.every(message => !message.has('authorization')))
})

t.test('the SDP of an answer to a refresh moves our media', async t => {
  const { clock, given } = await placed(t, call => {
    call.events.request = request => request.answer(200, { body: sdpOf('127.0.0.9') })
    answers(call, { Allow: 'INVITE, ACK, BYE', 'Session-Expires': '90;refresher=uac' })
  })
  clock.speed = 40
  await until('the refresh is answered', () => given.some(sdp => sdp.includes('c=IN IP4 127.0.0.9')))
  clock.speed = 1
  t.match(given[0], /127\.0\.0\.8/)
})

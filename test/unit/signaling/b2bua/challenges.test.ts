import { createHash } from 'node:crypto'
import pino from 'pino'
import { OutboundLeg } from '../../../../signaling/b2bua/outbound-leg.ts'
import { connectStack } from '../../../../signaling/drachtio/stack.ts'
import { createEdge } from '../../../../signaling/edge/index.ts'
import type { SipMessage } from '../../../../signaling/edge/sip/message.ts'
import type { UserAgentCall } from '../../../../signaling/edge/useragent/call.ts'
import type { IncomingRequest } from '../../../../signaling/edge/useragent/message-parts.ts'
import { Peer, reply, request, SDP, starts, status, tagOf } from '../../../conformance/edge/peer.ts'
import { testClock } from '../../../conformance/edge/test-clock.ts'
import { type Agent, openAgent, sdpOf } from '../../../support/agents.ts'
import t, { type Test } from '../../../support/harness/index.ts'
import { AGREED, legServices, sessionWith } from '../../../support/one-leg.ts'
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

/** Whether a value proves the password for nonce n1 and an INVITE with its body, by MD5-sess and auth-int. */
function provesBody(value: string | undefined, body: string): boolean {
  const of = (name: string): string => new RegExp(`[ ,]${name}="?([^",]*)`).exec(value ?? '')?.[1] ?? ''
  const hash = (text: string): string => createHash('md5').update(text).digest('hex')
  const first = hash(`${hash(`${AUTH.username}:carrier:${AUTH.password}`)}:n1:${of('cnonce')}`)
  const second = hash(`INVITE:${of('uri')}:${hash(body)}`)
  return of('response') === hash(`${first}:n1:00000001:${of('cnonce')}:auth-int:${second}`)
}

/** Starts an edge and a node's stack. `traced` holds what the ladder gets. */
async function started(t: Test) {
  const clock = testClock()
  const control = { host: '127.0.0.1', port: 0, secret: 'cymru' }
  const listeners = [{ protocol: 'udp', host: '127.0.0.1', port: 0 }] as const
  const traced: string[] = []
  const edge = await createEdge({ listeners, control, clock, onMessage: ({ text }) => void traced.push(text) })
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
  return { clock, edge, sip, log, traced }
}

/** Places a call with our credentials to a peer. */
async function placed(
  t: Test,
  take: (call: UserAgentCall, agent: () => Agent) => void,
  auth: typeof AUTH | null = AUTH,
) {
  const { clock, edge, sip, log } = await started(t)
  let agent: Agent | null = null
  const opened = await openAgent(t, { ip: '127.0.0.8', take: call => take(call, () => agent ?? opened) })
  agent = opened
  const given: string[] = []
  const ended: string[] = []
  const session = await sessionWith((method, { sdp = '' }) => {
    if (method === 'leg.remote_answer') given.push(sdp)
    return { ...AGREED, sdp: sdpOf('127.0.0.1') }
  })
  const nothing = (): void => undefined
  const leg = new OutboundLeg(legServices({ sip, clock }), {
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

const rejects = (call: UserAgentCall, nonce: string, more = {}): void =>
  call.reject(407, { headers: { 'Proxy-Authenticate': challenge(nonce, more) } })
const answers = (call: UserAgentCall, headers: Record<string, string> = {}): void =>
  call.answer({ body: sdpOf('127.0.0.8'), headers })
const proxied = ({ invite }: UserAgentCall): string | undefined => invite?.get('proxy-authorization')

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

t.test('a peer that offers only auth-int with MD5-sess gets a digest of the body too', async t => {
  const tried: string[] = []
  const needed = 'Digest realm="carrier", nonce="n1", qop="auth-int", algorithm=MD5-sess'
  const { outcome } = await placed(t, call => {
    const value = proxied(call)
    tried.push(value ?? '')
    if (provesBody(value, call.offer)) answers(call)
    else call.reject(407, { headers: { 'Proxy-Authenticate': needed } })
  })
  t.equal(outcome.kind, 'answered')
  t.equal(tried.length, 2)
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

t.test('challenges to what the edge sends by itself are answered, and the credentials leave it nowhere', async t => {
  const { clock, edge, sip, traced } = await started(t)
  const port = edge.listeners[0]?.port ?? 0
  const peer = await Peer.open(t)
  const answer = (text: string, code: number, tag: string, body = ''): void =>
    peer.send(reply(text, code, tag, body, peer.port), port)
  const refuse = (text: string, nonce: string, tag: string): void =>
    peer.send(
      reply(text, 407, tag, '', peer.port).replace('\r\n', `\r\nProxy-Authenticate: ${challenge(nonce)}\r\n`),
      port,
    )
  /** Resolves with the request of this method that proves the password for this nonce. */
  const proved = (method: string, nonce: string): Promise<string> =>
    peer.next(text => starts(method)(text) && proves(proxyOf(text), nonce, method))

  const { result } = sip.invite(
    { uri: `sip:bob@127.0.0.1:${peer.port}`, headers: {}, body: SDP, auth: AUTH },
    { handler: request => request.respond(200) },
  )
  refuse(await peer.next(starts('INVITE')), 'n1', 'none')
  const invite = await proved('INVITE', 'n1')
  answer(invite, 200, 'one', SDP)
  t.equal((await result).kind, 'answered')
  const ack = await peer.next(text => starts('ACK')(text) && text.includes('tag=one'))
  t.equal(proxyOf(ack), proxyOf(invite), 'the ACK has the credentials of its INVITE (RFC 3261 §22.1)')
  // A second fork answers: the edge hangs it up by itself.
  answer(invite, 200, 'two', SDP)
  refuse(await peer.next(starts('BYE')), 'n2', 'two')
  const fork = await proved('BYE', 'n2')
  t.match(fork, /;tag=two/)
  answer(fork, 200, 'two')

  const accepted = new Promise<unknown>((resolve, reject) =>
    sip.onInvite(call => call.accept({ body: SDP, auth: AUTH }, request => request.respond(200)).then(resolve, reject)),
  )
  peer.send(request('INVITE', peer.port, { call_id: 'theirs', body: SDP }), port)
  const to_tag = tagOf(await peer.next(status(200, 'INVITE')))
  peer.send(request('ACK', peer.port, { call_id: 'theirs', to_tag }), port)

  await accepted
  // The node is gone, so the edge hangs up both calls.
  sip.close()
  clock.speed = 20
  const byes = await Promise.all(
    ['theirs', /Call-ID: (.*)\r/.exec(invite)?.[1] ?? ''].map(call_id =>
      peer.next(text => starts('BYE')(text) && text.includes(`Call-ID: ${call_id}\r`)),
    ),
  )
  clock.speed = 1
  for (const [n, bye] of byes.entries()) {
    refuse(bye, `b${n}`, 'x')
    answer(await proved('BYE', `b${n}`), 200, 'x')
  }
  const leaked = traced.filter(text => /strowger-credentials/i.test(text) || text.includes(AUTH.password))
  t.same(leaked, [])
})

t.test('a challenge to the edge’s own session refresh is answered, and the session goes on', async t => {
  const { clock, edge, sip } = await started(t)
  const port = edge.listeners[0]?.port ?? 0
  for (const method of ['UPDATE', 'INVITE']) {
    const peer = await Peer.open(t)
    /** Answers with the headers of a session timer, or of a challenge. */
    const answer = (text: string, code: number, headers: readonly string[], body = ''): void =>
      peer.send(reply(text, code, 'peer', body, peer.port).replace('\r\n', `\r\n${headers.join('\r\n')}\r\n`), port)
    const timed = [
      'Session-Expires: 90;refresher=uac',
      `Allow: INVITE, ACK, BYE${method === 'UPDATE' ? ', UPDATE' : ''}`,
    ]
    const seen: string[] = []
    const { result } = sip.invite(
      { uri: `sip:bob@127.0.0.1:${peer.port}`, headers: { Supported: 'timer' }, body: SDP, auth: AUTH },
      {
        handler: request => {
          seen.push(request.method)
          request.respond(200)
        },
      },
    )
    const invite = await peer.next(starts('INVITE'))
    answer(invite, 200, timed, SDP)
    t.equal((await result).kind, 'answered')
    await peer.next(starts('ACK'))
    /** Resolves with the next refresh above a CSeq, which comes after half of the interval. */
    const refresh = async (above: number): Promise<string> => {
      clock.speed = 40
      const text = await peer.next(message => starts(method)(message) && cseqOf(message) > above)
      clock.speed = 1
      return text
    }
    const first = await refresh(cseqOf(invite))
    t.match(first, /\r\nSession-Expires: 90;refresher=uac\r\n/)
    answer(first, 407, [`Proxy-Authenticate: ${challenge('r1')}`])
    const again = await peer.next(message => starts(method)(message) && proves(proxyOf(message), 'r1', method))
    t.ok(cseqOf(again) > cseqOf(first), 'RFC 3261 §22.2: the same request with a higher CSeq')
    answer(again, 200, timed, method === 'INVITE' ? SDP : '')
    if (method === 'INVITE') {
      const ack = await peer.next(message => starts('ACK')(message) && cseqOf(message) === cseqOf(again))
      t.equal(proxyOf(ack), proxyOf(again), 'the ACK has the credentials of its INVITE')
    }
    const second = await refresh(cseqOf(again))
    t.match(second, /\r\nSession-Expires: 90;refresher=uac\r\n/, 'the session went on to its next refresh')
    answer(second, 200, timed, method === 'INVITE' ? SDP : '')
    t.same([...seen, ...peer.arrived.filter(starts('BYE'))], [], 'nobody hung up')
  }
})

const cseqOf = (text: string): number => Number(/\r\nCSeq: (\d+)/.exec(text)?.[1])
const proxyOf = (text: string): string | undefined => /\r\nProxy-Authorization: (.*)\r/.exec(text)?.[1]

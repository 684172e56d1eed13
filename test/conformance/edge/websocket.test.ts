import { once } from 'node:events'
import {
  Invitation,
  Inviter,
  Registerer,
  type Session,
  type SessionDescriptionHandler,
  SessionState,
  type URI,
  UserAgent,
  Web,
} from 'sip.js'
import { WebSocket } from 'ws'
import { createEdge } from '../../../signaling/edge/index.ts'
import { newUuid } from '../../../signaling/edge/sip/ids.ts'
import t, { type Test } from '../../support/harness/index.ts'
import { world } from './peer.ts'
import { type Robot, startRobot } from './robot.ts'
import { testClock } from './test-clock.ts'
import { testTls } from './test-tls.ts'

// Tests sip.js, the library of the console's telephone, over WebSocket with and without TLS. It registers, calls, and
// is called over the connection with which it registered. There is no media.

const SDP = 'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n'

const sessions = (): SessionDescriptionHandler => ({
  close: () => undefined,
  getDescription: () => Promise.resolve({ body: SDP, contentType: 'application/sdp' }),
  hasDescription: type => type === 'application/sdp',
  rollbackDescription: () => Promise.resolve(),
  setDescription: () => Promise.resolve(),
  sendDtmf: () => true,
})

const tls = await testTls()

/** A browser that trusts our certificate. */
class BrowserSocket extends WebSocket {
  constructor(url: string, protocols: string[]) {
    super(url, protocols, { ca: tls.cert })
  }
}

for (const protocol of ['ws', 'wss'] as const) {
  t.test(`sip.js registers, calls and is called over ${protocol}`, t => story(t, protocol))
}

t.test('a call goes on over the WebSocket with which its browser has replaced a lost one', async t => {
  const w = await world(t, { listeners: [{ protocol: 'ws', host: '127.0.0.1', port: 0 }] })
  const { edge, robot } = w
  robot.headers = (method, text) => (method === 'REGISTER' ? `${/Contact: .*\r\n/.exec(text)?.[0] ?? ''}` : '')
  const server = `ws://127.0.0.1:${edge.listeners[0]?.port}`
  let called: ((invitation: Invitation) => void) | undefined
  const phone = await openPhone(t, server, invitation => called?.(invitation))
  const registerer = new Registerer(phone)
  await accepted(registerer)
  const registration = robot.seen.find(s => s.method === 'REGISTER')?.text ?? ''
  const contact = /Contact: <([^>]+)>/.exec(registration)?.[1] ?? ''
  const incoming = new Promise<Invitation>(resolve => {
    called = resolve
  })
  robot.command(`c1|sip||\r\nINVITE ${contact} SIP/2.0\r\nCall-ID: moved\r\n\r\n${SDP}`)
  const invitation = await incoming
  // Without the ACK the browser would end the call itself.
  const acknowledged = new Promise<void>(resolve => {
    invitation.delegate = { onAck: () => resolve() }
  })
  await invitation.accept()
  const isAnswer = (s: Robot['seen'][number]): boolean => s.text.startsWith('SIP/2.0 200') && s.text.includes('moved')
  while (!robot.seen.some(isAnswer)) await pause()
  const dialog = robot.seen.find(isAnswer)?.fields[9]
  robot.command(`c2|sip||${dialog}\r\nACK sip:placeholder SIP/2.0\r\n\r\n`)
  await acknowledged
  t.equal(invitation.state, SessionState.Established)

  ;(phone.transport as Web.Transport & { readonly ws: WebSocket }).ws.terminate()
  while (edge.stats().sip_connections > 0) await pause()
  const other = new WebSocket(server, 'sip')
  t.teardown(() => other.terminate())
  const heard: string[] = []
  other.on('message', data => heard.push(String(data)))
  await once(other, 'open')
  // Others with the same private contact: another address, another domain, another password.
  const others = [
    registration.replace(/\r\nTo: [^\r]*/, '\r\nTo: <sip:mallory@example.org>'),
    registration.replace(/^REGISTER [^ ]+/, 'REGISTER sip:example.net'),
    registration.replace('\r\nTo: ', `\r\nAuthorization: ${OF_MALLORY}\r\nTo: `),
  ]
  for (const [at, text] of others.entries()) {
    const cseq = `CSeq: ${at + 1} REGISTER`
    other.send(
      text
        .replace(/;branch=[^;\r]+/, `;branch=z9hG4bKother${at}`)
        .replace(/CSeq: [^\r]+/, cseq)
        .replace(/Call-ID: [^\r]+/, 'Call-ID: other'),
    )
    while (!heard.some(one => one.startsWith('SIP/2.0 200') && one.includes(cseq))) await pause()
  }
  robot.command(`c3|sip||${dialog}\r\nINFO sip:placeholder SIP/2.0\r\n\r\n`)
  while (!robot.seen.some(s => s.text.startsWith('SIP/2.0 503') && s.text.includes(' INFO\r'))) await pause()

  await phone.reconnect()
  await accepted(registerer)
  robot.command(`c4|sip||${dialog}\r\nBYE sip:placeholder SIP/2.0\r\n\r\n`)
  await reached(invitation, SessionState.Terminated)
  t.notMatch(heard.join(''), /^(INFO|BYE) /m, 'the others hear nothing of it')
})

const OF_MALLORY =
  'Digest username="mallory", realm="r", nonce="n", uri="sip:x", response="0", qop=auth, cnonce="c", nc=00000001'

const accepted = (registerer: Registerer): Promise<unknown> =>
  new Promise((resolve, reject) => {
    registerer.register({ requestDelegate: { onAccept: resolve } }).catch(reject)
  })

async function openPhone(t: Test, server: string, onInvite: (invitation: Invitation) => void): Promise<UserAgent> {
  Object.assign(globalThis, { WebSocket: BrowserSocket })
  const phone = new UserAgent({
    uri: uri('sip:alice@example.org'),
    transportConstructor: Web.Transport,
    transportOptions: { server },
    sessionDescriptionHandlerFactory: sessions,
    logBuiltinEnabled: false,
    delegate: { onInvite },
  })
  await phone.start()
  t.teardown(() => phone.stop())
  return phone
}

async function story(t: Test, protocol: 'ws' | 'wss'): Promise<void> {
  const edge = await createEdge({
    listeners: [
      { protocol: 'udp', host: '127.0.0.1', port: 0 },
      { protocol: 'ws', host: '127.0.0.1', port: 0 },
      { protocol: 'wss', host: '127.0.0.1', port: 0, same_port: true },
    ],
    tls,
    control: { host: '127.0.0.1', port: 0, secret: 'cymru' },
    clock: testClock(),
  })
  t.teardown(() => edge.close())
  const robot = await startRobot(edge.control.port, ['invite', 'register'])
  t.teardown(() => robot.close())
  robot.answer = method => (method === 'INVITE' ? 0 : 200)
  // A registrar repeats the contact (RFC 3261 §10.3 step 8).
  robot.headers = (method, text) => (method === 'REGISTER' ? `${/Contact: .*\r\n/.exec(text)?.[0] ?? ''}` : '')
  const port = edge.listeners.find(l => l.protocol === protocol)?.port ?? 0
  let called: ((invitation: Invitation) => void) | undefined
  const phone = await openPhone(t, `${protocol}://127.0.0.1:${port}`, invitation => called?.(invitation))

  const registerer = new Registerer(phone)
  await registerer.register()
  while (registerer.state !== 'Registered') await pause()
  t.equal(edge.stats().bindings, 1, 'the contact is bound to its connection')
  const registration = robot.seen.find(s => s.method === 'REGISTER')
  t.equal(registration?.fields[4], protocol, 'the transport is reported')
  const contact = /Contact: <([^>]+)>/.exec(registration?.text ?? '')?.[1] ?? ''

  const outgoing = new Inviter(phone, uri('sip:bob@example.org'))
  await outgoing.invite()
  while (!robot.seen.some(s => s.method === 'INVITE')) await pause()
  const invite = robot.seen.find(s => s.method === 'INVITE')
  robot.command(`${newUuid()}|sip|${invite?.fields[8]}|\r\nSIP/2.0 200 OK\r\ncseq: 1 INVITE\r\n\r\n${SDP}`)
  await reached(outgoing, SessionState.Established)
  await outgoing.bye()
  await reached(outgoing, SessionState.Terminated)

  const incoming = new Promise<Invitation>(resolve => {
    called = resolve
  })
  robot.command(`c1|sip||\r\nINVITE ${contact} SIP/2.0\r\nCall-ID: to-phone\r\n\r\n${SDP}`)
  const invitation = await incoming
  await invitation.accept()
  while (!robot.seen.some(s => s.text.startsWith('SIP/2.0 200') && s.text.includes('to-phone'))) await pause()
  const answer = robot.seen.find(s => s.text.startsWith('SIP/2.0 200') && s.text.includes('to-phone'))
  robot.command(`c2|sip||${answer?.fields[9]}\r\nACK sip:placeholder SIP/2.0\r\n\r\n`)
  await reached(invitation, SessionState.Established)
  robot.command(`c3|sip||${answer?.fields[9]}\r\nBYE sip:placeholder SIP/2.0\r\n\r\n`)
  await reached(invitation, SessionState.Terminated)
  while (edge.stats().dialogs > 0) await pause()
  t.ok(invitation instanceof Invitation)
}

async function reached(session: Session, state: SessionState): Promise<void> {
  while (session.state !== state) await pause()
}

function uri(text: string): URI {
  const made = UserAgent.makeURI(text)
  if (!made) throw new Error(`${text} is not a URI`)
  return made
}

function pause(): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, 5))
}

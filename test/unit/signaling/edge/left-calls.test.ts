import type { SipDialog } from '../../../../signaling/edge/dialog/dialog.ts'
import { type KeptMessage, leftCalls } from '../../../../signaling/edge/left-calls.ts'
import type { Listener, Protocol } from '../../../../signaling/edge/transport/types.ts'
import t from '../../../support/harness/index.ts'

// The calls that an edge ends after a restart, derived from the stored messages.

const listenerOf = (protocol: Protocol): Listener | undefined =>
  protocol === 'tls'
    ? undefined
    : { protocol, host: '192.0.2.1', port: 5060, advertised_host: '192.0.2.1', ipv6: false }

interface Said {
  readonly start: string
  readonly direction: 'in' | 'out'
  readonly cseq: string
  readonly to_tag?: string
  readonly branch?: string
  readonly headers?: readonly string[]
}

function kept(call_id: string, protocol: string, said: readonly Said[]): KeptMessage[] {
  return said.map(({ start, direction, cseq, to_tag, branch = 'z9hG4bKx', headers = [] }) => ({
    sip_call_id: call_id,
    direction,
    protocol,
    remote: '198.51.100.7:5070',
    text: [
      start,
      `Via: SIP/2.0/${protocol.toUpperCase()} 198.51.100.7:5070;branch=${branch}`,
      'From: <sip:a@198.51.100.7>;tag=a',
      `To: <sip:b@192.0.2.1>${to_tag === undefined ? '' : `;tag=${to_tag}`}`,
      `Call-ID: ${call_id}`,
      `CSeq: ${cseq}`,
      ...headers,
      // The length of the body before secrets were removed from it.
      'Content-Length: 400',
      '',
      'a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:…',
    ].join('\r\n'),
  }))
}

const answered = (messages: KeptMessage[]): SipDialog | undefined => {
  const [left] = leftCalls(messages, listenerOf)
  return left?.kind === 'answered' ? left.dialog : undefined
}

const contact = 'Contact: <sip:peer@198.51.100.7:5070>'
const routes = ['Record-Route: <sip:p1.test;lr>, <sip:p2.test;lr>']

const called: readonly Said[] = [
  { start: 'INVITE sip:b@192.0.2.1 SIP/2.0', direction: 'in', cseq: '7 INVITE', headers: [contact, ...routes] },
  { start: 'SIP/2.0 200 OK', direction: 'out', cseq: '7 INVITE', to_tag: 'ours' },
  { start: 'ACK sip:b@192.0.2.1 SIP/2.0', direction: 'in', cseq: '7 ACK', to_tag: 'ours' },
]
const calling: readonly Said[] = [
  { start: 'INVITE sip:peer@198.51.100.7 SIP/2.0', direction: 'out', cseq: '20 INVITE', headers: [contact] },
  { start: 'SIP/2.0 401 Unauthorized', direction: 'in', cseq: '20 INVITE', to_tag: 'x' },
  { start: 'INVITE sip:peer@198.51.100.7 SIP/2.0', direction: 'out', cseq: '21 INVITE', headers: [contact] },
  { start: 'SIP/2.0 200 OK', direction: 'in', cseq: '21 INVITE', to_tag: 'theirs', headers: [contact, ...routes] },
  { start: 'ACK sip:peer@198.51.100.7 SIP/2.0', direction: 'out', cseq: '21 ACK', to_tag: 'theirs' },
]
const bye: Said = { start: 'BYE sip:b@192.0.2.1 SIP/2.0', direction: 'in', cseq: '8 BYE', to_tag: 'ours' }

t.test('an answered dialog that was not hung up gets a valid BYE', async t => {
  const dialog = answered(kept('one', 'udp', called))
  const text = dialog?.draft('BYE', dialog.nextSeq()).serialize() ?? ''
  t.match(text, /^BYE sip:peer@198\.51\.100\.7:5070 SIP\/2\.0\r\n/, 'to the Contact')
  t.match(text, /Route: <sip:p1\.test;lr>\r\nRoute: <sip:p2\.test;lr>\r\n/, 'with the route set in order')
  t.match(text, /From: <sip:b@192\.0\.2\.1>;tag=ours\r\nTo: <sip:a@198\.51\.100\.7>;tag=a\r\n/, 'with both tags')
  t.match(text, /CSeq: 18 BYE/, 'with a CSeq above all that may have been used')

  const ours = answered(kept('two', 'tcp', calling))
  const back = ours?.draft('BYE', ours.nextSeq()).serialize() ?? ''
  t.match(
    back,
    /Route: <sip:p2\.test;lr>\r\nRoute: <sip:p1\.test;lr>\r\n/,
    'with the route set reversed when we were the caller',
  )
  t.match(back, /From: <sip:a@198\.51\.100\.7>;tag=a\r\nTo: <sip:b@192\.0\.2\.1>;tag=theirs\r\n/)
  t.match(back, /CSeq: 32 BYE/)
})

t.test('a router that closes its brackets before `lr` is a loose one, and one without `lr` is strict', async t => {
  const by = (route: string): string => {
    const headers = [contact, `Record-Route: ${route}`]
    const dialog = answered(kept('one', 'udp', [{ ...(called[0] as Said), headers }, ...called.slice(1)]))
    return dialog?.draft('BYE', dialog.nextSeq()).serialize() ?? ''
  }
  const loose = by('<sip:192.0.2.8>;transport=tcp;r2=on;lr, <sip:p2.test;lr>')
  t.match(loose, /^BYE sip:peer@198\.51\.100\.7:5070 SIP\/2\.0\r\n/, 'to the Contact')
  t.match(loose, /Route: <sip:192\.0\.2\.8;transport=tcp;r2=on;lr>\r\nRoute: <sip:p2\.test;lr>\r\n/)
  const strict = by('<sip:192.0.2.8>;r2=on, <sip:p2.test;lr>')
  t.match(strict, /^BYE sip:192\.0\.2\.8 SIP\/2\.0\r\n/, 'to the router')
  t.match(strict, /Route: <sip:p2\.test;lr>\r\nRoute: <sip:peer@198\.51\.100\.7:5070>\r\n/)
})

t.test('the remote target is the Contact of the last re-INVITE', async t => {
  const moved: Said = {
    start: 'INVITE sip:b@192.0.2.1 SIP/2.0',
    direction: 'in',
    cseq: '8 INVITE',
    to_tag: 'ours',
    headers: ['Contact: <sip:moved@198.51.100.9>'],
  }
  const dialog = answered(kept('one', 'udp', [...called, moved]))
  t.equal(dialog?.target, 'sip:moved@198.51.100.9')
})

t.test('a BYE goes to the name in the Contact of a peer that called over a connection, which is gone', async t => {
  const named = (said: readonly Said[]) =>
    said.map(one => ({ ...one, headers: ['Contact: <sip:peer@pbx.example.test;transport=tcp>'] }))
  const where = (dialog: SipDialog | undefined) => dialog?.nextHop()
  t.match(where(answered(kept('one', 'tcp', named(called)))), { uri: 'sip:peer@pbx.example.test;transport=tcp' })
  const came_from = { destination: { host: '198.51.100.7', port: 5070 } }
  t.match(where(answered(kept('one', 'udp', named(called)))), came_from, 'over UDP to the source')
  t.match(where(answered(kept('two', 'tcp', named(calling)))), came_from, 'to the address that we called')
})

t.test('an unanswered inbound call is refused, and an unanswered outbound call is cancelled', async t => {
  const rings: Said = { start: 'SIP/2.0 180 Ringing', direction: 'out', cseq: '7 INVITE', to_tag: 'early' }
  const [asked] = leftCalls(kept('one', 'udp', called.slice(0, 1)), listenerOf)
  t.match(asked, { kind: 'called', tag: '', invite: { source: { host: '198.51.100.7', port: 5070 } } })
  const [heard] = leftCalls(kept('one', 'udp', [...called.slice(0, 1), rings]), listenerOf)
  t.match(heard, { kind: 'called', tag: 'early' }, 'with the tag that the caller knows')

  const again = calling.slice(0, 3).map((said, i) => (i < 2 ? said : { ...said, branch: 'z9hG4bKy' }))
  const [silent] = leftCalls(kept('two', 'tcp', again), listenerOf)
  t.match(silent, { kind: 'calling', rang: false, invite: { destination: { protocol: 'tcp', port: 5070 } } })
  const ringing: Said = {
    start: 'SIP/2.0 183 Progress',
    direction: 'in',
    cseq: '21 INVITE',
    to_tag: 'theirs',
    branch: 'z9hG4bKy',
  }
  const [rang] = leftCalls(kept('two', 'tcp', [...again, ringing]), listenerOf)
  t.match(rang, { kind: 'calling', rang: true })
  t.match(rang?.kind === 'calling' ? rang.invite.text : '', /CSeq: 21 INVITE/, 'the attempt after the challenge')
})

t.test('calls that have ended, or cannot be reached, are left alone', async t => {
  const none: readonly (readonly [string, KeptMessage[]])[] = [
    ['hung up', kept('one', 'udp', [...called, bye])],
    ['refused', kept('one', 'udp', calling.slice(0, 2))],
    ['the INVITE was not stored', kept('one', 'udp', called.slice(1))],
    ['a WebSocket, which only the peer can open', kept('one', 'ws', called)],
    ['a transport that is no longer served', kept('one', 'tls', called)],
  ]
  for (const [what, messages] of none) t.same(leftCalls(messages, listenerOf), [], what)
})

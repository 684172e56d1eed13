import { hostOf, readUri, uriOf } from '../../../../core/domain/sip/address.ts'
import { readBody } from '../../../../core/domain/sip/body.ts'
import { readRemoteParty } from '../../../../core/domain/sip/remote-party.ts'
import { tagOf } from '../../../../core/domain/sip/uri.ts'
import { passedReason } from '../../../../signaling/b2bua/call.ts'
import { keyOfInfo } from '../../../../signaling/b2bua/dtmf-info.ts'
import { type OfferEvent, type OfferState, offerStep } from '../../../../signaling/b2bua/offer-answer.ts'
import { redirectUris } from '../../../../signaling/b2bua/redirect.ts'
import { answerHeaders, intervalTooSmall, offerHeaders } from '../../../../signaling/b2bua/session-timer.ts'
import { outgoing, sendableStatus } from '../../../../signaling/drachtio/messages.ts'
import type { SipRequest } from '../../../../signaling/drachtio/types.ts'
import { targetUri } from '../../../../signaling/trunks/health.ts'
import t from '../../../support/harness/index.ts'

const request = (headers: Record<string, string>, body = ''): SipRequest => ({
  method: 'INVITE',
  uri: 'sip:x',
  call_id: 'c',
  headers,
  header: name => headers[name.toLowerCase()] ?? null,
  body,
  content: understood =>
    readBody(body, { type: headers['content-type'] ?? null, disposition: null, encoding: null }, understood),
  source: { address: '10.0.0.1', port: 5060, transport: 'udp' },
})

t.test('glare is 491, and a second offer of the peer while its first is open is 500', async t => {
  const table: [OfferState, OfferEvent, OfferState, number | null][] = [
    ['stable', 'remote_offer', 'theirs', null],
    ['stable', 'remote_empty', 'theirs', null],
    ['stable', 'local_offer', 'ours', null],
    ['ours', 'remote_offer', 'ours', 491],
    ['ours', 'local_offer', 'ours', 491],
    ['theirs', 'remote_offer', 'theirs', 500],
    ['theirs', 'local_offer', 'theirs', 491],
    ['awaiting_ack', 'remote_empty', 'awaiting_ack', 491],
    ['awaiting_ack', 'ack', 'stable', null],
    ['theirs', 'answered', 'stable', null],
    ['theirs', 'refused', 'stable', null],
  ]
  for (const [state, event, next, code] of table) {
    const step = offerStep(state, event)
    t.equal(step.state, next, `${state} ${event}`)
    t.equal(step.allowed ? null : step.sip_code, code)
  }
})

t.test('our 2xx answers the requested session timer, and an interval below 90 s is refused', async t => {
  t.same(answerHeaders(request({})), {}, 'a peer without the extension gets no timer headers')
  t.same(answerHeaders(request({ supported: 'timer, 100rel', 'session-expires': '600;refresher=uas' })), {
    'Session-Expires': '600;refresher=uas',
  })
  t.same(answerHeaders(request({ supported: 'timer', 'session-expires': '600' })), {
    'Session-Expires': '600;refresher=uac',
    Require: 'timer',
  })
  t.match(
    answerHeaders(request({ supported: 'timer', 'min-se': '3600' })),
    { 'Session-Expires': '3600;refresher=uac' },
    'RFC 4028 §9: never below the least interval of the request',
  )
  t.equal(intervalTooSmall(request({ supported: 'timer', 'session-expires': '30' })), '90')
  t.equal(intervalTooSmall(request({ 'session-expires': '30' })), null, 'without the extension the header is ignored')
  t.equal(intervalTooSmall(request({ supported: 'timer', 'session-expires': '90' })), null)
  t.match(offerHeaders(1800, 3600), { 'Session-Expires': '3600', 'Min-SE': '3600' })
})

t.test('a key is read from both INFO body types, and anything else is not a key', async t => {
  const info = (type: string, body: string) => keyOfInfo(request({ 'content-type': type }, body)).digit
  t.equal(info('application/dtmf-relay', 'Signal=5\r\nDuration=160'), '5')
  t.equal(info('application/dtmf-relay', 'Duration=1\r\nSignal= *'), '*')
  t.equal(info('application/dtmf-relay; charset=x', 'signal=11'), '#')
  t.equal(info('application/dtmf', 'a'), 'A')
  for (const [type, body] of [
    ['application/dtmf-relay', 'Signal=55'],
    ['application/dtmf-relay', ''],
    ['application/dtmf', '12345'],
    ['text/plain', 'Signal=5'],
  ] as const)
    t.equal(info(type, body), null, `${type} ${body}`)
})

t.test('the causes of a Reason header pass to the other leg, and its text does not', async t => {
  t.equal(passedReason({ reason: 'Q.850;cause=17;text="at 10.0.0.1"' }), 'Q.850;cause=17')
  t.equal(passedReason({ reason: 'SIP ;cause=486, q.850; cause=17' }), 'SIP;cause=486, Q.850;cause=17')
  t.equal(
    passedReason({ reason: 'SIP;cause=200;text="taken at 10.0.0.1", Q.850;cause=26' }),
    'SIP;cause=200;text="Call completed elsewhere", Q.850;cause=26',
  )
  t.equal(passedReason({ reason: 'X-Evil;cause=1' }), null)
  t.equal(passedReason({}), null)
})

t.test('outgoing headers contain no line breaks and do not set headers of the dialog', async t => {
  const headers = {
    'X-A': 'one\r\nEvil: 1',
    'Bad Name': 'x',
    'Call-ID': 'mine',
    From: '<sip:a@b>',
    'Content-Length': '9',
  }
  t.same(outgoing(headers, { initial: false }), { 'X-A': 'one Evil: 1' })
  t.same(outgoing(headers, { initial: true }), { 'X-A': 'one Evil: 1', 'Call-ID': 'mine', From: '<sip:a@b>' })
  t.equal(sendableStatus(486), 486)
  t.equal(sendableStatus(607), 607)
  t.equal(sendableStatus(499), 499, 'a code that the library lacks is sent as well')
  for (const nonsense of [0, 99, 700, 486.5, Number.NaN]) t.equal(sendableStatus(nonsense), 500)
})

t.test('tags, addresses, users and hosts are read from headers and URIs', async t => {
  t.equal(tagOf('"x" <sip:a@b;tag=no>;tag=yes'), 'yes', 'a parameter of the URI is not the tag')
  t.equal(tagOf('<sip:a@b>'), '')
  t.equal(uriOf('"n" <sip:a@b:5060;transport=tcp>;q=1, <sip:c@d>'), 'sip:a@b:5060;transport=tcp')
  t.equal(uriOf('sip:a@b;expires=3'), 'sip:a@b')
  t.equal(readUri('sip:%2B2348030000001;x=y@host:5060')?.user, '+2348030000001')
  t.equal(readUri('sip:a%0d%0ab@host')?.user, 'ab')
  t.equal(readUri('sip:%ZZ@host'), null)
  t.equal(readUri('tel:+234-803;phone-context=x')?.user, '+234-803')
  t.equal(readUri('sip:host')?.user, '')
  t.equal(hostOf('sip:u@[::1]:5060;lr'), '::1')
  t.equal(hostOf('sips:example.org?x=y'), 'example.org')
  t.equal(targetUri('sip:a.example', 'tcp'), 'sip:a.example;transport=tcp')
  t.equal(targetUri('sip:a.example;transport=udp', 'tcp'), 'sip:a.example;transport=udp')
  t.equal(targetUri('sip:a.example?X-A=1', 'tls'), 'sip:a.example;transport=tls?X-A=1')
})

t.test('the contacts of a redirect are ordered by q, and lose the headers of their URIs', async t => {
  t.same(
    redirectUris('<sip:a@x;transport=tcp>;q=0.2, "Doe, J" <sips:b@[2001:db8::1]:5061?Subject=x>;expires=60;q=0.9'),
    ['sips:b@[2001:db8::1]:5061', 'sip:a@x;transport=tcp'],
  )
  t.same(redirectUris('sip:a@x;q=0.1, sip:b@y'), ['sip:b@y', 'sip:a@x'])
  t.same(redirectUris('<sip:a,b@x>, <sip:c@y>'), ['sip:a,b@x', 'sip:c@y'])
  for (const bad of ['', '*', 'tel:+1', '<>', '<sip:>', '<sip:a b@x>', ',,,']) t.same(redirectUris(bad), [], bad)
  t.same(redirectUris(`${'<'.repeat(100_000)}`), [])
})

t.test('a Remote-Party-ID gives the calling party and whether it may be shown', t => {
  const of = (header: string | null) => readRemoteParty(header)
  t.match(of('<sip:1@x>'), { address: { user: '1', name: null }, restricted: false })
  t.match(of('"A, <b>" <sip:1@x>;privacy=off;screen=yes'), {
    address: { user: '1', name: 'A, <b>' },
    restricted: false,
  })
  t.match(of('"A" <sip:1@x>;privacy=name'), { address: { user: '1', name: null }, restricted: false })
  t.match(of('<sip:2@x>;party=called;privacy=full, sip:1@x;party="calling"'), {
    address: { user: '1' },
    restricted: false,
  })
  t.match(of('<sip:1@x>; Privacy="full"'), { restricted: true })
  t.match(of('<sip:1@x>;privacy=uri'), { restricted: true })
  for (const none of [null, '', '<sip:2@x>;party=called', '<<<']) t.equal(of(none), null, `${none}`)
  t.equal(of('"'.repeat(100_000)), null)
  t.end()
})

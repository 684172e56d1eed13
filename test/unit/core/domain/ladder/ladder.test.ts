import { fieldReader, fieldsReader } from '../../../../../core/domain/ladder/field.ts'
import { redactSip } from '../../../../../core/domain/ladder/redact.ts'
import { renderLadder, title } from '../../../../../core/domain/ladder/render.ts'
import t from '../../../../support/harness/index.ts'

const message = (...lines: string[]): string => `${lines.join('\r\n')}\r\n\r\n`

t.test('removes digest responses, SRTP keys and typed keys, and nothing else', async t => {
  const invite = message(
    'INVITE sip:+234@example.org SIP/2.0',
    'Proxy-Authorization: Digest username="pbx", realm="r", nonce="N0NCE", uri="sip:x", response="5ECRET", cnonce="CN0NCE"',
    'authorization: Bearer 5ECRET',
    'Identity: eyJ5ECRET',
    'Call-ID: a@b',
  )
  const kept = redactSip(invite)
  t.notMatch(kept, /5ECRET|N0NCE/)
  t.match(kept, /username="pbx", realm="r"/)
  t.match(kept, /Call-ID: a@b/)
  const sdp = 'm=audio 4000 RTP/SAVP 0\r\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:5ECRETkey|2^31\r\n'
  t.equal(redactSip(sdp), 'm=audio 4000 RTP/SAVP 0\r\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:…\r\n')
  t.equal(redactSip('Signal=5\r\nDuration=160\r\n'), 'Signal=…\r\nDuration=160\r\n')
})

t.test('removes secrets however a device writes them', async t => {
  const folded = message(
    'REGISTER sip:x SIP/2.0',
    'Authorization: Digest username="pbx",\r\n\tresponse = "5ECRET",\r\n  nonce=N0NCE',
    'Proxy-Authorization:\r\n Bearer 5ECRET',
    'Call-ID: a@b',
  )
  const kept = redactSip(folded)
  t.notMatch(kept, /5ECRET|N0NCE/)
  t.match(kept, /username="pbx"/)
  t.match(kept, /Call-ID: a@b\r\n/)
  t.equal(redactSip('v=0\ra=crypto:1  X  inline:5ECRET\r'), 'v=0\ra=crypto:1  X  inline:…\r')
  t.equal(redactSip(' Signal = 5\r\nDuration = 160'), ' Signal =…\r\nDuration = 160')
})

t.test('fields are found in the head alone, in any spelling, unfolded, and in long texts at once', async t => {
  const callId = fieldReader('call-id', 'i')
  t.equal(callId('INVITE sip:x SIP/2.0\r\nI \t: \r\n a\r\n  b \r\n\r\n'), 'a b')
  t.equal(callId('INVITE sip:x SIP/2.0\nCALL-ID:a\n'), 'a')
  t.equal(callId(message('INVITE sip:x SIP/2.0', 'Call-IDs: a')), null)
  t.equal(callId(`${message('INVITE sip:x SIP/2.0', 'X-I: a')}i: b\r\n`), null, 'a line of the body is no header')
  t.same(fieldsReader('reason')(message('BYE sip:x SIP/2.0', 'Reason: a', 'X: y', 'reason : b', ' c')), ['a', 'b c'])
  const blank = `a${' '.repeat(60_000)}b`
  const long = `INVITE sip:x SIP/2.0\r\nContent-Type: ${blank}\r\n c\r\ni: ${blank}\r\n\r\nbody of five`
  for (let times = 0; times < 20; times++) t.equal(callId(redactSip(long)), blank)
})

t.test('a request is labelled with its method, a response also with its status', async t => {
  t.equal(title(message('BYE sip:x SIP/2.0', 'CSeq: 2 BYE')), 'BYE')
  t.equal(title(message('SIP/2.0 486 Busy Here', 'CSeq: 1 INVITE')), '486 INVITE')
})

t.test('a ladder has a lane for each peer, times since the first message, and marks retransmissions', async t => {
  const at = (at_ms: number, direction: 'in' | 'out', remote: string, text: string, retransmission = false) => ({
    at_ms,
    direction,
    protocol: 'udp',
    remote,
    retransmission,
    text,
  })
  const sdp = 'v=0\r\nm=audio 4000 RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\na=sendonly\r\n'
  const drawn = renderLadder([
    at(1000, 'in', 'a:1', `${message('INVITE sip:x SIP/2.0', 'CSeq: 1 INVITE')}${sdp}`),
    at(1004, 'out', 'b:2', message('INVITE sip:y SIP/2.0', 'CSeq: 1 INVITE')),
    at(1504, 'out', 'b:2', message('INVITE sip:y SIP/2.0', 'CSeq: 1 INVITE'), true),
    at(2000, 'in', 'b:2', message('SIP/2.0 486 Busy Here', 'CSeq: 1 INVITE', 'Reason: Q.850;cause=17')),
  ])
  t.equal(
    drawn,
    [
      '          a:1                             b:2',
      '   0.000  INVITE -------------------->                                    udp, SDP PCMU/8000 :4000 sendonly',
      '   0.004                                  <-------------------- INVITE    udp',
      '   0.504                                  <-------------------- INVITE    udp, again',
      '   1.000                                  486 INVITE ---------------->    udp, Q.850;cause=17',
      '',
    ].join('\n'),
  )
  t.equal(renderLadder([]), 'no SIP message is kept for this call\n')
})

import { CODEC_NAMES } from '../../../../core/domain/codecs/codec.ts'
import { SRTP_SUITES, type SrtpSuite } from '../../../../core/domain/codecs/crypto-line.ts'
import { Negotiation } from '../../../../media/session/negotiation.ts'
import t from '../../../support/harness/index.ts'

const keys = Object.fromEntries(
  SRTP_SUITES.map(({ suite, key_bytes }) => [suite, Buffer.alloc(key_bytes, 7).toString('base64')]),
) as Record<SrtpSuite, string>

const leg = () =>
  new Negotiation({
    session_id: '77',
    address: '203.0.113.77',
    rtp_port: 20_000,
    rtcp_port: 20_001,
    policy: { codecs: ['PCMU', 'PCMA'], security: 'rtp', telephone_event: true },
    keys,
    browser: null,
  })

const described = (...media: readonly string[]) =>
  ['v=0', 'o=- 1 1 IN IP4 192.0.2.1', 's=-', 'c=IN IP4 192.0.2.1', 't=0 0', ...media, ''].join('\r\n')
const AUDIO = described('m=audio 4000 RTP/AVP 0')
const MOVED = described('m=audio 5000 RTP/AVP 8')
const FAX = described('m=audio 0 RTP/AVP 0', 'm=image 4000 udptl t38')
const SECURED = described(
  'm=audio 4000 RTP/SAVP 0',
  `a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:${Buffer.alloc(30, 1).toString('base64')}`,
  'm=video 0 RTP/AVP 31',
)

/** Takes an offer that is refused, and rolls it back as signaling does. */
function refuses(negotiation: Negotiation): void {
  t.match(negotiation.remoteOffer(FAX), { refused: 'no_common_codec' })
  negotiation.rollback()
}

const answers = (negotiation: Negotiation) => {
  const answer = negotiation.localAnswer(null, CODEC_NAMES)
  if ('refused' in answer) throw new Error(answer.detail)
  return answer
}

t.test('a refused offer leaves the session as it was: codec, keys, lines and version', async t => {
  const negotiation = leg()
  negotiation.remoteOffer(SECURED)
  const { settled } = answers(negotiation)
  refuses(negotiation)
  t.strictSame(negotiation.settled, settled)
  const offer = negotiation.localOffer(null, CODEC_NAMES, null)
  t.match(offer, /^o=\S+ 77 2 /m, 'no version comes twice')
  t.match(offer, /^m=audio 20000 RTP\/SAVP 0 8 101\r$/m, 'a secured leg stays secured')
  t.match(offer, /^m=video 0 /m)
  negotiation.rollback()
  refuses(negotiation)
  t.strictSame(negotiation.settled, settled, 'after an offer of ours that was refused')
})

t.test('a refused offer before the answer to an INVITE loses neither its offer nor the answer', async t => {
  const caller = leg()
  caller.remoteOffer(AUDIO)
  refuses(caller)
  const early = answers(caller)
  refuses(caller)
  t.equal(answers(caller).sdp, early.sdp, 'the 200 has the SDP of the 183')

  const called = leg()
  called.localOffer(null, CODEC_NAMES, null)
  t.match(called.remoteAnswer(AUDIO), { codec: 'PCMU' }, 'early media')
  refuses(called)
  t.match(called.remoteAnswer(MOVED), { codec: 'PCMA', remote: { rtp_port: 5000 } })
})

t.test('an offer that was read but not answered is rolled back to the session before it', async t => {
  const negotiation = leg()
  negotiation.remoteOffer(AUDIO)
  const { settled } = answers(negotiation)
  t.match(negotiation.remoteOffer(MOVED), { hold: false })
  t.strictSame(negotiation.rollback(), settled)
  negotiation.remoteOffer(MOVED)
  const moved = answers(negotiation)
  t.match(moved.sdp, /^o=\S+ 77 2 /m)
  t.match(moved.settled, { codec: 'PCMA', remote: { rtp_port: 5000 } })
})

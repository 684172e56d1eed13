import { readdirSync, readFileSync } from 'node:fs'
import type { CodecName } from '../../../../../core/domain/codecs/codec.ts'
import { CODEC_NAMES } from '../../../../../core/domain/codecs/codec.ts'
import { SRTP_SUITES, type SrtpSuite } from '../../../../../core/domain/codecs/crypto-line.ts'
import {
  type Answered,
  answerOffer,
  bridgeMode,
  type Continuity,
  codecOrder,
  type LocalSide,
  type MediaPolicy,
  makeOffer,
  NO_CONTINUITY,
  numberNotes,
  type Offer,
  type OtherLeg,
  readAnswer,
  readOffer,
} from '../../../../../core/domain/codecs/negotiate.ts'
import { CODECS } from '../../../../../core/domain/codecs/registry.ts'
import { type Direction, type OwnSdp, readSdp, type Sdp, writeSdp } from '../../../../../core/domain/codecs/sdp.ts'
import t from '../../../../support/harness/index.ts'
import { fc } from '../../../../support/properties.ts'

const FIXTURES = new URL('../../../../../../fixtures/sdp/', import.meta.url)
const ALL: readonly CodecName[] = ['PCMA', 'PCMU', 'G722', 'G729', 'OPUS']

const policy = (over: Partial<MediaPolicy> = {}): MediaPolicy => ({
  codecs: ALL,
  security: 'rtp',
  telephone_event: true,
  ...over,
})

const keys = (fill: number) =>
  Object.fromEntries(
    SRTP_SUITES.map(({ suite, key_bytes }) => [suite, Buffer.alloc(key_bytes, fill).toString('base64')]),
  ) as Record<SrtpSuite, string>

const own = (over: Partial<LocalSide> = {}): LocalSide => ({
  session_id: '77',
  address: '203.0.113.77',
  rtp_port: 20_000,
  rtcp_port: 20_001,
  policy: policy(),
  keys: keys(7),
  browser: null,
  direction: 'sendrecv',
  ...over,
})

function parsed(text: string): Sdp {
  const reading = readSdp(text)
  if ('refused' in reading) throw new Error(reading.detail)
  return reading.sdp
}

/** An offer of one audio line from its formats and attributes. */
const offerText = (formats: string, attributes: readonly string[] = [], over: { c?: string; proto?: string } = {}) =>
  [
    'v=0',
    'o=- 1 1 IN IP4 192.0.2.1',
    's=-',
    `c=IN IP4 ${over.c ?? '192.0.2.1'}`,
    't=0 0',
    `m=audio 4000 ${over.proto ?? 'RTP/AVP'} ${formats}`,
    ...attributes.map(attribute => `a=${attribute}`),
    '',
  ].join('\r\n')

function answered(
  text: string,
  side: LocalSide = own(),
  prefer: CodecName | null = null,
  continuity: Continuity = NO_CONTINUITY,
): Answered {
  const offer = readOffer(parsed(text), side.policy, continuity)
  if ('refused' in offer) throw new Error(`${offer.refused}: ${offer.detail}`)
  const answer = answerOffer(offer, side, continuity, prefer ? [prefer] : [])
  if ('refused' in answer) throw new Error(`${answer.refused}: ${answer.detail}`)
  return answer
}

const OPUS = ['rtpmap:111 opus/48000/2']
const EVENTS = ['rtpmap:101 telephone-event/8000', 'rtpmap:110 telephone-event/48000']

t.test('an answer selects the other leg’s codec for a relay, else the first in the answerer’s order', async t => {
  const rows: [offer: string, attributes: string[], policy: CodecName[], prefer: CodecName | null, codec: CodecName][] =
    [
      ['0 8', [], ['PCMA', 'PCMU'], null, 'PCMA'],
      ['8 0', [], ['PCMU', 'PCMA'], null, 'PCMU'],
      ['8 0', [], ['PCMU', 'PCMA'], 'PCMA', 'PCMA'],
      ['8 0', [], ['PCMU', 'PCMA'], 'OPUS', 'PCMU'],
      ['8', [], ['PCMU', 'PCMA'], 'PCMU', 'PCMA'],
      ['18 0', [], ['G729', 'PCMU'], null, 'G729'],
      ['111 0', OPUS, ['OPUS', 'PCMU'], null, 'OPUS'],
      ['111 0', OPUS, ['OPUS', 'PCMU'], 'PCMU', 'PCMU'],
      ['9 0', [], ['G722'], null, 'G722'],
      ['97 0', ['rtpmap:97 pcma/8000'], ['PCMA'], null, 'PCMA'],
      ['97 0', ['rtpmap:97 G722/16000'], ['G722', 'PCMU'], null, 'PCMU'],
    ]
  for (const [formats, attributes, codecs, prefer, codec] of rows) {
    const { settled } = answered(offerText(formats, attributes), own({ policy: policy({ codecs }) }), prefer)
    t.equal(settled.codec, codec, `offer ${formats}, policy ${codecs.join(' ')}, prefer ${prefer}`)
  }
})

t.test(
  'an answer keeps the offer’s payload types, and telephone-event at the codec’s clock rate if it is offered',
  async t => {
    const opus = answered(offerText('111 0 101 110', [...OPUS, ...EVENTS]), own(), 'OPUS')
    t.match(writeSdp(opus.local), /m=audio 20000 RTP\/AVP 111 110\r\n/)
    t.strictSame(opus.settled.telephone_event, { send: 110, receive: 110, clock_rate_hz: 48_000 })
    const g711 = answered(offerText('111 0 101 110', [...OPUS, ...EVENTS]), own(), 'PCMU')
    t.match(writeSdp(g711.local), /m=audio 20000 RTP\/AVP 0 101\r\n/)
    const lone = answered(offerText('111 101', [...OPUS, 'rtpmap:101 telephone-event/8000']), own(), 'OPUS')
    t.match(lone.settled.telephone_event, { send: 101, receive: 101, clock_rate_hz: 8000 }, 'decision 0760')
    const wide = answered(offerText('0 98', ['rtpmap:98 telephone-event/16000']), own(), 'PCMU')
    t.match(writeSdp(wide.local), /a=rtpmap:98 telephone-event\/16000\r\n/)
    const twice = offerText('111 0 101', [
      ...OPUS,
      'rtpmap:101 telephone-event/48000',
      'rtpmap:101 telephone-event/8000',
    ])
    t.match(answered(twice, own(), 'PCMU').settled.telephone_event, { send: 101, clock_rate_hz: 8000 })
    t.match(answered(twice, own(), 'OPUS').settled.telephone_event, { send: 101, clock_rate_hz: 48_000 })
    t.match(
      answered(offerText('111 0 101 110', [...OPUS, ...EVENTS]), own(), 'OPUS').settled.also_receive,
      { events: [{ payload_type: 101, clock_rate_hz: 8000 }], comfort_noise: [13] },
      'keys of the other clock rate and comfort noise are accepted too',
    )
    const unwanted = answered(offerText('0 101', EVENTS), own({ policy: policy({ telephone_event: false }) }))
    t.equal(unwanted.settled.telephone_event, null)
  },
)

t.test('answers every form of hold, and never exceeds our own direction', async t => {
  const rows: [theirs: string, address: string, wish: Direction, ours: Direction, hold: boolean][] = [
    ['sendrecv', '192.0.2.1', 'sendrecv', 'sendrecv', false],
    ['sendonly', '192.0.2.1', 'sendrecv', 'recvonly', true],
    ['recvonly', '192.0.2.1', 'sendrecv', 'sendonly', false],
    ['inactive', '192.0.2.1', 'sendrecv', 'inactive', true],
    ['sendrecv', '0.0.0.0', 'sendrecv', 'recvonly', true],
    ['inactive', '0.0.0.0', 'sendrecv', 'inactive', true],
    ['sendrecv', '192.0.2.1', 'sendonly', 'sendonly', false],
    ['sendonly', '192.0.2.1', 'sendonly', 'inactive', true],
  ]
  for (const [theirs, address, wish, ours, hold] of rows) {
    const answer = answered(offerText('0', [theirs], { c: address }), own({ direction: wish }))
    t.equal(answer.settled.direction, ours, `${theirs} at ${address}, we want ${wish}`)
    t.equal(answer.settled.hold, hold)
    t.match(writeSdp(answer.local), new RegExp(`a=${ours}\r\n`))
    t.equal(answer.settled.remote.address, address === '0.0.0.0' ? null : address)
  }
})

t.test('a media line without a direction takes the session’s', async t => {
  const text = offerText('0').replace('t=0 0\r\n', 't=0 0\r\na=inactive\r\n')
  t.equal(answered(text).settled.direction, 'inactive')
})

t.test('rejects every m= line but one audio line with port 0, and keeps their order', async t => {
  const text = readFileSync(new URL('good/audio-and-video.sdp', FIXTURES), 'utf8')
  const answer = writeSdp(answered(text, own({ policy: policy({ codecs: ['PCMU', 'PCMA'] }) })).local)
  t.strictSame(answer.match(/^m=.*$/gm), ['m=video 0 RTP/AVP 31 34', 'm=audio 20000 RTP/AVP 0', 'm=audio 0 RTP/AVP 8'])
  const second = writeSdp(answered(text, own({ policy: policy({ codecs: ['PCMA'] }) })).local)
  t.strictSame(second.match(/^m=audio.*$/gm), ['m=audio 0 RTP/AVP 0', 'm=audio 20000 RTP/AVP 8'])
  const fax = writeSdp(answered(readFileSync(new URL('good/fax-switch-with-audio.sdp', FIXTURES), 'utf8')).local)
  t.match(fax, /m=image 0 udptl t38\r\n/)
})

t.test('agrees to G.729 Annex B unless a side refuses it or the other leg cannot use it', async t => {
  const other = (over: Partial<OtherLeg> = {}): OtherLeg => ({
    ...{ codecs: ['G729'], comfort_noise: false, silence_frames: false },
    ...over,
  })
  const rows: [fmtp: string[], other: OtherLeg | null, agreed: boolean, vad: boolean][] = [
    [[], null, false, false],
    [['fmtp:18 annexb=yes'], null, false, false],
    [[], other({ silence_frames: true }), true, false],
    [['fmtp:18 annexb=yes'], other({ silence_frames: true }), true, true],
    [['fmtp:18 AnnexB=YES'], other({ codecs: ['PCMU'] }), true, true],
    [['fmtp:18 annexb=yes'], other(), false, false],
    [['fmtp:18 annexb=no'], other({ silence_frames: true }), false, false],
  ]
  for (const [attributes, leg, agreed, vad] of rows) {
    const offer = readOffer(parsed(offerText('18', attributes)), policy())
    if ('refused' in offer) throw new Error(offer.detail)
    const answer = answerOffer(offer, own(), NO_CONTINUITY, [], leg)
    if ('refused' in answer) throw new Error(answer.detail)
    const title = `${attributes} beside ${JSON.stringify(leg)}`
    t.match(answer.settled, { silence_frames: agreed, encoder: { dtx: vad } }, title)
    t.match(writeSdp(answer.local), agreed ? /a=fmtp:18 annexb=yes\r/ : /a=fmtp:18 annexb=no\r/, title)
  }
  const side = own({ policy: policy({ codecs: ['G729'] }) })
  t.match(writeSdp(makeOffer(side, NO_CONTINUITY, []).local), /a=fmtp:18 annexb=no/)
  const { local, continuity } = makeOffer(side, NO_CONTINUITY, [], null, other({ silence_frames: true }))
  t.match(writeSdp(local), /a=fmtp:18 annexb=yes/)
  for (const [attributes, agreed] of [
    [[], true],
    [['fmtp:18 annexb=no'], false],
  ] as const) {
    const settled = readAnswer(parsed(offerText('18', attributes)), local, side, continuity)
    t.match(settled, { silence_frames: agreed }, `answered ${attributes}`)
    if ('refused' in settled) continue
    const again = makeOffer(side, continuity, [], settled, other())
    t.match(writeSdp(again.local), agreed ? /annexb=yes/ : /annexb=no/, 'a re-offer keeps what holds')
  }
})

t.test('the peer’s Opus fmtp parameters configure our encoder', async t => {
  const fmtp = 'fmtp:111 UseInbandFec=1; usedtx=1;maxaveragebitrate=2000000;maxplaybackrate=16000'
  t.strictSame(answered(offerText('111', [...OPUS, fmtp])).settled.encoder, {
    fec: true,
    dtx: true,
    max_bitrate: 510_000,
    max_playback_hz: 16_000,
  })
  t.strictSame(answered(offerText('111', OPUS)).settled.encoder, { fec: false, dtx: false })
})

t.test('agrees to offered comfort noise with codecs that have no silence suppression of their own', async t => {
  const rows: [formats: string, attributes: string[], codec: CodecName, type: number | null][] = [
    ['0 13', [], 'PCMU', 13],
    ['8 13', ['rtpmap:13 CN/8000'], 'PCMA', 13],
    ['9 100', ['rtpmap:100 cn/8000'], 'G722', 100],
    ['0 98', ['rtpmap:98 CN/16000'], 'PCMU', null],
    ['18 13', [], 'G729', null],
    ['111 13', OPUS, 'OPUS', null],
    ['0', [], 'PCMU', null],
  ]
  for (const [formats, attributes, codec, type] of rows) {
    const { settled, local } = answered(offerText(formats, attributes), own({ policy: policy({ codecs: [codec] }) }))
    t.strictSame(settled.comfort_noise, type === null ? null : { send: type, receive: type }, `${codec} of ${formats}`)
    const answer = writeSdp(local)
    t.equal(/^a=rtpmap:\d+ CN\/8000\r$/m.test(answer), type !== null)
    if (type !== null) t.ok(parsed(answer).lines[0]?.formats.includes(String(type)))
  }
})

t.test('offers comfort noise only when the other leg uses it, and keeps it in re-offers', async t => {
  const pcm = own({ policy: policy({ codecs: ['PCMU'] }) })
  t.notMatch(writeSdp(makeOffer(pcm, NO_CONTINUITY, []).local), /CN/)
  const opus = own({ policy: policy({ codecs: ['OPUS'] }) })
  const noisy: OtherLeg = { codecs: ['PCMU'], comfort_noise: true, silence_frames: false }
  t.notMatch(writeSdp(makeOffer(opus, NO_CONTINUITY, [], null, noisy).local), /CN/, 'it is of no use to Opus')
  const { local, continuity } = makeOffer(pcm, NO_CONTINUITY, [], null, noisy)
  t.match(writeSdp(local), /^m=audio \d+ RTP\/AVP 0 13 101\r$/m)
  const settle = (answer: string) => {
    const settled = readAnswer(parsed(answer), local, pcm, continuity)
    if ('refused' in settled) throw new Error(settled.detail)
    return settled
  }
  t.equal(settle(offerText('0')).comfort_noise, null, 'an answer may leave it out')
  const agreed = settle(offerText('0 13'))
  t.strictSame(agreed.comfort_noise, { send: 13, receive: 13 })
  t.match(writeSdp(makeOffer(pcm, continuity, [], agreed).local), /^m=audio \d+ RTP\/AVP 0 13 101\r$/m)
})

t.test('rounds ptime to 10–60 ms and never above maxptime', async t => {
  const rows: [attributes: string[], ptime_ms: number][] = [
    [[], 20],
    [['ptime:30'], 30],
    [['ptime:5'], 10],
    [['ptime:240'], 60],
    [['ptime:35'], 30],
    [['ptime:0'], 20],
    [['maxptime:10'], 10],
    [['ptime:40', 'maxptime:20'], 20],
    [['ptime:x'], 20],
  ]
  for (const [attributes, ptime_ms] of rows) {
    const answer = answered(offerText('0', attributes))
    t.equal(answer.settled.ptime_ms, ptime_ms, attributes.join(' '))
    t.match(writeSdp(answer.local), new RegExp(`a=ptime:${ptime_ms}\r\n`))
  }
})

t.test('sends RTCP to the next port, the port of the rtcp attribute, or the RTP port with rtcp-mux', async t => {
  t.equal(answered(offerText('0')).settled.remote.rtcp_port, 4001)
  t.equal(answered(offerText('0', ['rtcp:53020'])).settled.remote.rtcp_port, 53_020)
  const mux = answered(offerText('0', ['rtcp-mux']))
  t.strictSame(mux.settled.remote, { address: '192.0.2.1', rtp_port: 4000, rtcp_port: 4000, rtcp_mux: true })
  t.match(writeSdp(mux.local), /a=rtcp-mux\r\n/)
  t.notMatch(writeSdp(answered(offerText('0')).local), /rtcp/)
  t.match(writeSdp(answered(offerText('0'), own({ rtcp_port: 30_001 })).local), /a=rtcp:30001\r\n/)
})

t.test('accepts the first supported SDES line with its tag, and answers with a key of its own', async t => {
  const secure = policy({ security: 'sdes_srtp_required' })
  const text = readFileSync(new URL('good/srtp-sdes.sdp', FIXTURES), 'utf8')
  for (const allowed of [secure, policy()]) {
    const answer = answered(text, own({ policy: allowed }))
    t.strictSame(answer.settled.srtp, {
      suite: 'AES_CM_128_HMAC_SHA1_80',
      receive_key: 'PS1uQCVeeCFCanVmcjkpPywjNWhcYD0mXXtxaVBR',
      send_key: keys(7).AES_CM_128_HMAC_SHA1_80,
    })
    t.match(writeSdp(answer.local), /m=audio 20000 RTP\/SAVP/)
    t.match(writeSdp(answer.local), /a=crypto:2 AES_CM_128_HMAC_SHA1_80 inline:/)
  }
  const refusals: [attributes: string[], proto: string, refused: string][] = [
    [[], 'RTP/AVP', 'srtp_required'],
    [[], 'RTP/SAVP', 'srtp_required'],
    [[`crypto:1 AES_CM_128_HMAC_SHA1_80 inline:c2hvcnQ=`], 'RTP/SAVP', 'srtp_required'],
    [
      [`crypto:1 AES_CM_128_HMAC_SHA1_80 inline:${keys(1).AES_CM_128_HMAC_SHA1_80}|2^31|1:1`],
      'RTP/SAVP',
      'srtp_required',
    ],
    [
      [`crypto:1 AES_CM_128_HMAC_SHA1_80 inline:${keys(1).AES_CM_128_HMAC_SHA1_80} UNENCRYPTED_SRTP`],
      'RTP/SAVP',
      'srtp_required',
    ],
    [[`crypto:1 AES_CM_128_HMAC_SHA1_80 inline:${keys(1).AES_CM_128_HMAC_SHA1_80}`], 'RTP/AVP', 'srtp_required'],
  ]
  for (const [attributes, proto, refused] of refusals) {
    t.match(readOffer(parsed(offerText('0', attributes, { proto })), secure), { refused }, `${proto} ${attributes}`)
  }
  const mirrored = offerText('0', [`crypto:1 AES_CM_128_HMAC_SHA1_80 inline:${keys(7).AES_CM_128_HMAC_SHA1_80}`], {
    proto: 'RTP/SAVP',
  })
  const offer = readOffer(parsed(mirrored), policy())
  t.notOk('refused' in offer)
  t.match(answerOffer(offer as Offer, own(), NO_CONTINUITY, []), { refused: 'srtp_required' }, 'our own key comes back')
})

t.test('our offer lists the other leg’s codec first and uses the codec that the answer chose', async t => {
  const { local, continuity } = makeOffer(own(), NO_CONTINUITY, codecOrder(policy(), ['G722'], ALL))
  t.match(writeSdp(local), /m=audio 20000 RTP\/AVP 9 8 0 18 96 101 110\r\n/)
  const answer = (formats: string, attributes: string[] = []) =>
    readAnswer(parsed(offerText(formats, attributes)), local, own(), continuity)
  t.match(answer('9 101', EVENTS), { codec: 'G722', telephone_event: { send: 101, receive: 101, clock_rate_hz: 8000 } })
  t.match(answer('0 8'), {
    codec: 'PCMU',
    receive: [
      { codec: 'PCMU', payload_type: 0 },
      { codec: 'PCMA', payload_type: 8 },
    ],
  })
  // Another number for the same encoding: we send theirs and receive ours (RFC 3264 §5.1).
  t.match(answer('120 121', ['rtpmap:120 opus/48000/2', 'rtpmap:121 telephone-event/48000']), {
    codec: 'OPUS',
    send: { payload_type: 120 },
    receive: [{ payload_type: 96 }, { payload_type: 120 }],
    telephone_event: { send: 121, receive: 110 },
    also_receive: { events: [{ payload_type: 121, clock_rate_hz: 48_000 }] },
  })
  const other = answer('120 121', ['rtpmap:120 opus/48000/2', 'rtpmap:121 telephone-event/48000'])
  t.strictSame('refused' in other ? other : numberNotes(other), [
    'OPUS is answered as 120, offered as 96: both are accepted',
    'telephone-event is answered as 121, offered as 110: both are accepted',
  ])
  t.match(answer('3'), { refused: 'codec_not_offered' })
  t.match(readAnswer(parsed(offerText('0').replace('audio 4000', 'audio 0')), local, own(), continuity), {
    refused: 'audio_refused',
  })
  const two = parsed(`${offerText('0')}m=video 0 RTP/AVP 31\r\n`)
  t.match(readAnswer(two, local, own(), continuity), { codec: 'PCMU' }, 'a line more than offered')
  const moved = parsed(
    `${offerText('0').replace('m=audio 4000 RTP/AVP 0', 'm=video 0 RTP/AVP 31\r\nm=audio 4002 RTP/AVP 0')}`,
  )
  t.match(readAnswer(moved, local, own(), continuity), { remote: { rtp_port: 4002 } }, 'its first audio line counts')
  const secured = parsed(`${offerText('0').replace('RTP/AVP', 'RTP/SAVP')}m=audio 4002 RTP/AVP 0\r\n`)
  t.match(readAnswer(secured, local, own(), continuity), { remote: { rtp_port: 4002 } }, 'the line that answers ours')
})

t.test('a secured offer lists every suite, and its answer selects one, whatever tag it has', async t => {
  const side = own({ policy: policy({ security: 'sdes_srtp_required' }) })
  const { local, continuity } = makeOffer(side, NO_CONTINUITY, [])
  t.equal(writeSdp(local).match(/^a=crypto:/gm)?.length, SRTP_SUITES.length)
  const answer = (attribute: string, proto = 'RTP/SAVP') =>
    readAnswer(parsed(offerText('8', attribute ? [attribute] : [], { proto })), local, side, continuity)
  const good = `crypto:3 AES_CM_128_HMAC_SHA1_80 inline:${keys(9).AES_CM_128_HMAC_SHA1_80}`
  t.match(answer(good), { srtp: { suite: 'AES_CM_128_HMAC_SHA1_80', receive_key: keys(9).AES_CM_128_HMAC_SHA1_80 } })
  t.match(answer(good.replace('crypto:3', 'crypto:1')), {
    srtp: { suite: 'AES_CM_128_HMAC_SHA1_80', receive_key: keys(9).AES_CM_128_HMAC_SHA1_80 },
  })
  t.match(answer(`crypto:3 AES_CM_128_HMAC_SHA1_80 inline:${keys(7).AES_CM_128_HMAC_SHA1_80}`), {
    refused: 'srtp_required',
  })
  t.match(answer('', 'RTP/AVP'), { refused: 'srtp_required' })
})

t.test(
  'a secured leg stays secured in our re-offers, in its suite and with its key, whatever the policy asks',
  async t => {
    const text = readFileSync(new URL('good/srtp-sdes.sdp', FIXTURES), 'utf8')
    const first = answered(text)
    const { local, continuity } = makeOffer(own({ direction: 'sendonly' }), first.continuity, ['PCMU'], first.settled)
    const written = writeSdp(local)
    t.match(written, /m=audio 20000 RTP\/SAVP /)
    t.strictSame(written.match(/^a=crypto:.*$/gm), [
      `a=crypto:3 AES_CM_128_HMAC_SHA1_80 inline:${keys(7).AES_CM_128_HMAC_SHA1_80}`,
    ])
    const answer = offerText('0', [`crypto:3 AES_CM_128_HMAC_SHA1_80 inline:${keys(4).AES_CM_128_HMAC_SHA1_80}`], {
      proto: 'RTP/SAVP',
    })
    t.match(readAnswer(parsed(answer), local, own(), continuity), {
      srtp: { send_key: first.settled.srtp?.send_key, receive_key: keys(4).AES_CM_128_HMAC_SHA1_80 },
    })
    const other = offerText('0', [`crypto:3 AES_CM_128_HMAC_SHA1_32 inline:${keys(4).AES_CM_128_HMAC_SHA1_32}`], {
      proto: 'RTP/SAVP',
    })
    t.match(readAnswer(parsed(other), local, own(), continuity), { refused: 'srtp_required' }, 'a suite not offered')
  },
)

t.test('the session version increases by one with a change, and stays without one', async t => {
  const first = answered(offerText('0 101', EVENTS))
  t.equal(first.local.version, 1)
  const again = answered(offerText('0 101', EVENTS), own(), null, first.continuity)
  t.equal(again.local.version, 1, 'a session refresh')
  const held = answered(offerText('0 101', [...EVENTS, 'sendonly']), own(), null, again.continuity)
  t.equal(held.local.version, 2)
  const { local } = makeOffer(own(), held.continuity, codecOrder(policy(), ['PCMU'], ALL))
  t.equal(local.version, 3)
  t.match(writeSdp(local), /^o=strowger 77 3 IN IP4 203\.0\.113\.77$/m)
})

t.test('our re-offer keeps rejected lines and the peer’s payload types', async t => {
  const text = `${offerText('96 0', ['rtpmap:96 telephone-event/8000'])}m=video 5000 RTP/AVP 97\r\na=rtpmap:97 H264/90000\r\n`
  const first = answered(text)
  const { local } = makeOffer(own(), first.continuity, codecOrder(policy(), ['PCMU'], ALL))
  const written = writeSdp(local)
  t.match(written, /m=video 0 RTP\/AVP 97\r\n$/)
  t.match(written, /a=rtpmap:96 telephone-event\/8000/)
  t.match(written, /a=rtpmap:97 opus\/48000\/2/, '96 is taken')
  const fewer = answered(offerText('0'), own(), null, first.continuity)
  t.equal(fewer.local.lines.length, 1, 'a line is gone (RFC 3264 §8 forbids it): the rest is answered')
})

t.test('our re-offer names each number once, although the peer gave a bound one to another encoding', async t => {
  const formats = (continuity: Continuity) =>
    makeOffer(own(), continuity, codecOrder(policy(), ['OPUS'], ALL)).local.lines[0]?.formats.join(' ')
  const next = (text: string, before: Continuity) => formats(answered(text, own(), 'OPUS', before).continuity)
  const keys_alone = answered(offerText('0 101', EVENTS)).continuity
  const taken = offerText('101 0', ['rtpmap:101 opus/48000/2'])
  t.equal(next(taken, keys_alone), '101 8 0 9 18 110 96', 'keys get a free number')
  const first = answered(offerText('111 0 101', [...OPUS, ...EVENTS])).continuity
  const swapped = ['rtpmap:101 opus/48000/2', 'rtpmap:111 telephone-event/8000', 'rtpmap:96 opus/48000/2']
  t.equal(next(offerText('101 0 111 96', swapped), first), '101 8 0 9 18 110 111')
  const twice = ['rtpmap:101 telephone-event/48000', 'rtpmap:101 telephone-event/8000']
  t.equal(next(offerText('111 0 101', [...OPUS, ...twice]), NO_CONTINUITY), '111 8 0 9 18 101 96')
})

t.test('orders codecs by relay first, then by what we can decode, and offers no others', async t => {
  const rows: [policy: CodecName[], related: CodecName[], decodable: CodecName[], order: string][] = [
    [['PCMU', 'PCMA', 'G729'], ['G729'], ['PCMU', 'PCMA'], 'G729 PCMU PCMA'],
    [['PCMU', 'PCMA', 'G729'], ['PCMA', 'PCMU'], ['PCMU', 'PCMA'], 'PCMU PCMA'],
    [['G729', 'PCMA'], [], ['PCMA'], 'PCMA'],
    [['G729'], [], ['PCMA'], ''],
    [['OPUS', 'PCMA'], ['PCMU'], ['PCMA', 'OPUS'], 'OPUS PCMA'],
  ]
  for (const [codecs, related, decodable, order] of rows)
    t.equal(codecOrder(policy({ codecs }), related, decodable).join(' '), order, `${codecs} for ${related}`)
})

t.test('a bridge relays when both legs have the same codec', async t => {
  const pcmu = answered(offerText('0')).settled
  const pcma = answered(offerText('8')).settled
  t.equal(bridgeMode(pcmu, pcmu), 'relay')
  t.equal(bridgeMode(pcmu, pcma), 'transcode')
})

t.test('answers every valid fixture with parsable SDP, and rejects every invalid one with its reason', async t => {
  for (const name of readdirSync(new URL('good/', FIXTURES))) {
    const { local } = answered(readFileSync(new URL(`good/${name}`, FIXTURES), 'utf8'))
    t.ok(
      parsed(writeSdp(local)).lines.some(line => line.port === 20_000),
      name,
    )
  }
  for (const name of readdirSync(new URL('bad/', FIXTURES))) {
    const [first = '', ...rest] = readFileSync(new URL(`bad/${name}`, FIXTURES), 'utf8').split('\n')
    const expected = /^# (\w+):/.exec(first)?.[1]
    const reading = readSdp(rest.join('\r\n'))
    const outcome = 'refused' in reading ? reading : readOffer(reading.sdp, policy())
    t.equal('refused' in outcome ? outcome.refused : 'accepted', expected, name)
  }
})

t.test('answers browsers as an ICE-lite, DTLS-passive endpoint on one port, with their payload types', async t => {
  const browser = { ice_ufrag: 'ours', ice_pwd: 'secret', fingerprint: 'AB:CD' }
  const side = own({ policy: policy({ codecs: ['OPUS', 'PCMU'], security: 'dtls_srtp' }), browser })
  const rows: [file: string, formats: string, event: number | null, ufrag: string][] = [
    ['chromium', '111 110', 110, 'EsAw'],
    ['firefox', '109 101', 101, '58b99ead'],
  ]
  for (const [file, formats, event, ice_ufrag] of rows) {
    const text = readFileSync(new URL(`browser/${file}.sdp`, FIXTURES), 'utf8')
    const { local, settled } = answered(text, side)
    const written = writeSdp(local)
    t.match(written, `m=audio 20000 UDP/TLS/RTP/SAVPF ${formats}\r\n`, file)
    for (const attribute of [
      'ice-lite',
      'group:BUNDLE 0',
      'mid:0',
      'rtcp-mux',
      'setup:passive',
      'ice-ufrag:ours',
      'ice-pwd:secret',
      'fingerprint:sha-256 AB:CD',
      'candidate:1 1 UDP 2130706431 203.0.113.77 20000 typ host',
      'sendrecv',
    ])
      t.ok(written.includes(`\r\na=${attribute}\r\n`), `${file}: ${attribute}`)
    t.equal(settled.hold, false, '0.0.0.0 is no hold here')
    t.equal(settled.telephone_event?.send ?? null, event)
    t.match(settled.dtls, { ice_ufrag, algorithm: 'sha-256', setup: 'actpass' })
    t.equal(settled.encoder.fec, true)
    t.match(readOffer(parsed(text), policy()), { refused: 'no_common_codec' }, 'not for a telephone’s leg')
  }
})

t.test('accepts a browser’s answer to our offer only when the browser is DTLS-active', async t => {
  const browser = { ice_ufrag: 'ours', ice_pwd: 'secret', fingerprint: 'AB:CD' }
  const side = own({ policy: policy({ codecs: ['OPUS', 'PCMU'], security: 'dtls_srtp' }), browser })
  const { local, continuity } = makeOffer(side, NO_CONTINUITY, [])
  const theirs = readFileSync(new URL('browser/chromium.sdp', FIXTURES), 'utf8')
    .replaceAll('111', '96')
    .replace('a=setup:actpass', 'a=setup:active')
  t.match(readAnswer(parsed(theirs), local, side, continuity), { codec: 'OPUS', remote: { rtcp_mux: true } })
  for (const [from, to] of [
    ['a=setup:active', 'a=setup:passive'],
    ['a=rtcp-mux\r\n', ''],
    ['UDP/TLS/RTP/SAVPF', 'RTP/AVP'],
  ] as const)
    t.match(readAnswer(parsed(theirs.replace(from, to)), local, side, continuity), { refused: 'srtp_required' }, from)
})

const anyOffer = fc
  .record({
    statics: fc.subarray([0, 3, 8, 9, 13, 18]),
    dynamics: fc.subarray(['opus/48000/2', 'telephone-event/8000', 'telephone-event/48000', 'PCMA/8000', 'iLBC/8000']),
    first: fc.integer({ min: 96, max: 110 }),
    direction: fc.constantFrom('sendrecv', 'sendonly', 'recvonly', 'inactive'),
    video: fc.boolean(),
    ptime: fc.option(fc.integer({ min: 0, max: 300 })),
  })
  .map(({ statics, dynamics, first, direction, video, ptime }) => {
    const formats = [...statics, ...dynamics.map((_encoding, index) => first + index)]
    const attributes = dynamics.map((encoding, index) => `rtpmap:${first + index} ${encoding}`)
    const text = offerText(formats.join(' ') || '13', [
      ...attributes,
      direction,
      ...(ptime === null ? [] : [`ptime:${ptime}`]),
    ])
    return video ? text.replace('m=audio', 'm=video 6000 RTP/AVP 31\r\nm=audio') : text
  })
const anyPolicy = fc
  .shuffledSubarray([...ALL], { minLength: 1 })
  .chain(codecs => fc.boolean().map(telephone_event => policy({ codecs, telephone_event })))

t.test(
  'property: any answer is a subset of its offer and its policy, and has one clock where the offer allows it',
  async t => {
    fc.assert(
      fc.property(anyOffer, anyPolicy, fc.constantFrom(...ALL, null), (text, allowed, prefer) => {
        const sdp = parsed(text)
        const offer = readOffer(sdp, allowed)
        if ('refused' in offer) return offer.refused === 'no_common_codec'
        const answer = answerOffer(offer, own({ policy: allowed }), NO_CONTINUITY, prefer ? [prefer] : [])
        if ('refused' in answer) return false
        const line = parsed(writeSdp(answer.local)).lines[offer.audio]
        const asked = sdp.lines[offer.audio]
        if (!line || !asked || sdp.lines.length !== answer.local.lines.length) return false
        const subset = line.payloads.every(payload =>
          asked.payloads.some(
            other =>
              other.payload_type === payload.payload_type &&
              other.encoding.toLowerCase() === payload.encoding.toLowerCase() &&
              other.clock_rate_hz === payload.clock_rate_hz,
          ),
        )
        const clocks = new Set(line.payloads.map(payload => payload.clock_rate_hz))
        const audio = line.payloads[0]?.clock_rate_hz
        const oneClock = asked.payloads.some(
          ({ encoding, clock_rate_hz }) => /^telephone-event$/i.test(encoding) && clock_rate_hz === audio,
        )
        const offersPreferred = prefer !== null && offer.choices.some(({ codec }) => codec.name === prefer)
        return (
          subset &&
          (!oneClock || clocks.size === 1) &&
          allowed.codecs.includes(answer.settled.codec) &&
          (!offersPreferred || answer.settled.codec === prefer)
        )
      }),
      { numRuns: 2000 },
    )
    t.pass('held for 2000 offers')
  },
)

t.test('property: two of our own endpoints always agree, and each sends what the other accepts', async t => {
  fc.assert(
    fc.property(anyPolicy, anyPolicy, fc.boolean(), (offering, answering, secured) => {
      const security = secured ? 'sdes_srtp_required' : 'rtp'
      const a = own({ policy: { ...offering, security }, keys: keys(1) })
      const b = own({ policy: { ...answering, security }, keys: keys(2), rtp_port: 30_000, rtcp_port: 30_001 })
      const { local, continuity } = makeOffer(a, NO_CONTINUITY, [])
      const offer = readOffer(parsed(writeSdp(local)), b.policy)
      if ('refused' in offer) return !offering.codecs.some(codec => answering.codecs.includes(codec))
      const answer = answerOffer(offer, b, NO_CONTINUITY, [])
      if ('refused' in answer) return false
      const settled = readAnswer(parsed(writeSdp(answer.local)), local, a, continuity)
      if ('refused' in settled) return false
      return (
        settled.codec === answer.settled.codec &&
        settled.send.payload_type === answer.settled.receive[0]?.payload_type &&
        settled.receive[0]?.payload_type === answer.settled.send.payload_type &&
        settled.srtp?.send_key === answer.settled.srtp?.receive_key &&
        settled.srtp?.receive_key === answer.settled.srtp?.send_key &&
        (settled.telephone_event === null) === (answer.settled.telephone_event === null)
      )
    }),
    { numRuns: 1000 },
  )
  t.pass('held for 1000 pairs')
})

t.test('property: any SDP from a stranger is parsed or rejected, without an exception', async t => {
  const good = readFileSync(new URL('good/softphone-many-codecs.sdp', FIXTURES), 'utf8')
  const lines = good.split('\r\n')
  const mutated = fc
    .tuple(
      fc.nat(lines.length - 1),
      fc.string({ maxLength: 60 }),
      fc.constantFrom('replace', 'insert', 'append', 'drop'),
    )
    .map(([at, junk, how]) => {
      const copy = [...lines]
      if (how === 'replace') copy[at] = junk
      else if (how === 'insert') copy.splice(at, 0, `a=${junk}`)
      else if (how === 'append') copy[at] = `${copy[at]}${junk}`
      else copy.splice(at, 1)
      return copy.join('\r\n')
    })
  fc.assert(
    fc.property(fc.oneof(mutated, fc.string({ maxLength: 400 })), text => {
      const reading = readSdp(text)
      if ('refused' in reading) return reading.refused === 'sdp_malformed'
      const offer = readOffer(reading.sdp, policy())
      return 'refused' in offer || !('refused' in answerOffer(offer, own(), NO_CONTINUITY, []))
    }),
    { numRuns: 3000 },
  )
  t.pass('held for 3000 texts')
})

t.test('every codec of the registry is complete and no two share a static payload type', async t => {
  t.strictSame(
    CODECS.map(({ name }) => name),
    [...CODEC_NAMES],
  )
  const statics = CODECS.flatMap(codec => codec.static_payload_type ?? [])
  t.equal(new Set(statics).size, statics.length)
  for (const codec of CODECS) {
    const { local } = makeOffer(own({ policy: policy({ codecs: [codec.name] }) }), NO_CONTINUITY, [])
    const line = parsed(writeSdp(local as OwnSdp)).lines[0]
    t.equal(line?.payloads[0]?.codec, codec, codec.name)
  }
})

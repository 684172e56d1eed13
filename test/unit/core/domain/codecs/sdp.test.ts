import {
  answerOffer,
  type LocalSide,
  type MediaPolicy,
  readOffer,
} from '../../../../../core/domain/codecs/negotiate.ts'
import { type MediaLine, readSdp, writeSdp } from '../../../../../core/domain/codecs/sdp.ts'
import t from '../../../../support/harness/index.ts'

/** What devices and proxies really send, and what is taken of it. Each offer has audio that can be used. */

const policy: MediaPolicy = {
  codecs: ['PCMA', 'PCMU', 'G722', 'G729', 'OPUS'],
  security: 'rtp',
  telephone_event: true,
}
const side: LocalSide = {
  session_id: '77',
  address: '203.0.113.77',
  rtp_port: 20_000,
  rtcp_port: 20_001,
  policy,
  keys: {
    AEAD_AES_128_GCM: '',
    AEAD_AES_256_GCM: '',
    AES_CM_128_HMAC_SHA1_80: '',
    AES_CM_128_HMAC_SHA1_32: '',
    AES_256_CM_HMAC_SHA1_80: '',
    AES_256_CM_HMAC_SHA1_32: '',
  },
  browser: null,
  direction: 'sendrecv',
}

const HEAD = ['v=0', 'o=- 1 1 IN IP4 192.0.2.1', 's=-', 'c=IN IP4 192.0.2.1', 't=0 0']
const AUDIO = 'm=audio 4000 RTP/AVP 0 101'
const EVENTS = 'a=rtpmap:101 telephone-event/8000'
const lines = (...all: string[]): string => [...all, ''].join('\r\n')
/** The usual offer with one line replaced. */
const but = (line: string, by: string): string =>
  lines(...[...HEAD, AUDIO, EVENTS].flatMap(one => (one === line ? (by === '' ? [] : [by]) : [one])))

interface Case {
  readonly odd: string
  readonly text: string
  /** What is read of the audio line; the usual one unless named. */
  readonly read?: Partial<MediaLine>
  /** A part of the note; null: nothing is odd about it for us. */
  readonly note: string | null
  /** Lines of our answer beside the usual ones. */
  readonly answer?: readonly string[]
}

const CASES: readonly Case[] = [
  {
    odd: 'a count of ports',
    text: but(AUDIO, 'm=audio 4000/2 RTP/AVP 0 101'),
    note: 'line 6 (m=audio 4000/2 RTP/AVP 0 101): counts several ports',
  },
  {
    odd: 'a hyphen in the name of another medium',
    text: lines(...HEAD, 'm=x-data 9 RTP/AVP-X 96', AUDIO),
    note: null,
    answer: ['m=x-data 0 RTP/AVP-X 96'],
  },
  {
    odd: 'a second m= line without a port',
    text: lines(...HEAD, AUDIO, 'm=video RTP/AVP 31'),
    note: '"RTP/AVP" is not a port',
    answer: ['m=video 0 31 0'],
  },
  {
    odd: 'a second m= line of one word',
    text: lines(...HEAD, AUDIO, 'm=audio'),
    note: null,
    answer: ['m=audio 0 RTP/AVP 0'],
  },
  {
    odd: 'a second m= line with quotes',
    text: lines(...HEAD, AUDIO, 'm="x" 1 "y" z'),
    note: 'media or protocol cannot be read',
    answer: ['m=application 0 RTP/AVP z'],
  },
  {
    odd: 'negative numbers in o=',
    text: but('o=- 1 1 IN IP4 192.0.2.1', 'o=- -481516 -1 IN IP4 192.0.2.1'),
    note: 'line 2 (o=',
  },
  {
    odd: 'hex numbers in o=',
    text: but('o=- 1 1 IN IP4 192.0.2.1', 'o=user 0x1F 0x2 IN IP4 192.0.2.1'),
    note: 'line 2 (o=',
  },
  { odd: 'no numbers in o=', text: but('o=- 1 1 IN IP4 192.0.2.1', 'o=user IN IP4 192.0.2.1'), note: 'line 2 (o=' },
  {
    odd: 'a user of two words in o=',
    text: but('o=- 1 1 IN IP4 192.0.2.1', 'o=Office PBX 1 1 IN IP4 192.0.2.1'),
    note: 'line 2 (o=',
  },
  { odd: 'no o= line', text: but('o=- 1 1 IN IP4 192.0.2.1', ''), note: 'there is no o= line' },
  { odd: 'no s= line', text: but('s=-', ''), note: 'there is no s= line' },
  { odd: 'no t= line', text: but('t=0 0', ''), note: 'there is no t= line' },
  { odd: 'no v= line', text: but('v=0', ''), note: 'does not begin with v=0' },
  { odd: 'another version', text: but('v=0', 'v=1'), note: 'does not begin with v=0' },
  { odd: 'double blanks', text: but(AUDIO, 'm=audio  4000   RTP/AVP  0 101 '), note: 'has blanks too many' },
  { odd: 'blanks around the letter', text: but(AUDIO, ' m = audio 4000 RTP/AVP 0 101'), note: 'has blanks too many' },
  { odd: 'a tab between words', text: but(AUDIO, 'm=audio\t4000\tRTP/AVP\t0\t101'), note: 'has blanks too many' },
  {
    odd: 'c= in lower case',
    text: but('c=IN IP4 192.0.2.1', 'c=in ip4 192.0.2.1'),
    note: 'line 4 (c=in ip4 192.0.2.1): is read as IN IP4 192.0.2.1',
  },
  {
    odd: 'c= without its network',
    text: but('c=IN IP4 192.0.2.1', 'c=IP4 192.0.2.1'),
    note: 'is read as IN IP4 192.0.2.1',
  },
  {
    odd: 'c= of the address alone',
    text: but('c=IN IP4 192.0.2.1', 'c=192.0.2.1'),
    note: 'is read as IN IP4 192.0.2.1',
  },
  { odd: 'c= with a TTL', text: but('c=IN IP4 192.0.2.1', 'c=IN IP4 192.0.2.1/127'), note: null },
  { odd: 'zeros before the decimals', text: but('c=IN IP4 192.0.2.1', 'c=IN IP4 192.000.002.001'), note: null },
  {
    odd: 'IPv6 called IP4',
    text: but('c=IN IP4 192.0.2.1', 'c=IN IP4 2001:db8::1'),
    note: 'is read as IN IP6',
    read: { address: '2001:db8::1', family: 'ipv6' },
  },
  {
    odd: 'IPv6 in brackets',
    text: but('c=IN IP4 192.0.2.1', 'c=IN IP6 [2001:db8::1]'),
    note: null,
    read: { address: '2001:db8::1', family: 'ipv6' },
  },
  {
    odd: 'IPv6 with a zone',
    text: but('c=IN IP4 192.0.2.1', 'c=IN IP6 fe80::1%eth0'),
    note: null,
    read: { address: 'fe80::1', family: 'ipv6' },
  },
  {
    odd: 'IPv4 mapped into IPv6',
    text: but('c=IN IP4 192.0.2.1', 'c=IN IP6 ::ffff:192.0.2.1'),
    note: 'is read as IN IP4',
  },
  {
    odd: 'a host name in c=',
    text: but('c=IN IP4 192.0.2.1', 'c=IN IP4 media.example.com'),
    note: 'the media address is taken to be 192.0.2.1',
  },
  {
    odd: 'no c= line',
    text: but('c=IN IP4 192.0.2.1', ''),
    note: 'there is no c= line; the media address is taken to be 192.0.2.1',
  },
  {
    odd: 'two session-level c= lines',
    text: but('c=IN IP4 192.0.2.1', 'c=IN IP4 192.0.2.9\r\nc=IN IP4 192.0.2.1'),
    note: 'line 5 (c=IN IP4 192.0.2.1): is one of several c= lines',
  },
  {
    odd: 'two c= lines, the last of no use',
    text: but('c=IN IP4 192.0.2.1', 'c=IN IP4 192.0.2.1\r\nc=IN IP4'),
    note: 'one of several',
  },
  {
    odd: 'a c= line below the m= line only',
    text: lines('v=0', 'o=- 1 1 IN IP4 192.0.2.1', 's=-', 't=0 0', AUDIO, 'c=IN IP4 192.0.2.1'),
    note: null,
  },
  {
    odd: 'c= behind t=',
    text: lines('v=0', 'o=- 1 1 IN IP4 192.0.2.1', 's=-', 't=0 0', 'c=IN IP4 192.0.2.1', AUDIO),
    note: null,
  },
  { odd: 'a leading empty line', text: `\r\n${lines(...HEAD, AUDIO)}`, note: null },
  { odd: 'empty lines in between', text: lines('v=0', '', ...HEAD.slice(1), '', AUDIO), note: null },
  { odd: 'a byte order mark', text: `\ufeff${lines(...HEAD, AUDIO)}`, note: null },
  { odd: 'a NUL at the end', text: `${lines(...HEAD, AUDIO)}\0`, note: 'NUL characters' },
  { odd: 'LF alone', text: lines(...HEAD, AUDIO, EVENTS).replaceAll('\r\n', '\n'), note: 'CR or LF alone' },
  { odd: 'CR alone', text: lines(...HEAD, AUDIO, EVENTS).replaceAll('\r\n', '\r'), note: 'CR or LF alone' },
  { odd: 'CR CR LF', text: lines(...HEAD, AUDIO).replaceAll('\r\n', '\r\r\n'), note: 'CR or LF alone' },
  { odd: 'no line end at the end', text: lines(...HEAD, AUDIO).trimEnd(), note: null },
  {
    odd: 'b= lines of any form',
    text: lines(...HEAD, 'b=', 'b=X-YZ:128', 'b=AS: 64', 'b=TIAS', AUDIO, 'b=RS:-1'),
    note: null,
  },
  {
    odd: 'attributes of any form',
    text: lines(
      ...HEAD,
      AUDIO,
      'a=',
      'a=:',
      'a=X:',
      'a=rtpmap',
      'a=rtpmap:',
      'a=fmtp',
      'a=ptime:',
      'a=silenceSupp:off - - - -',
      'a=T38FaxVersion:0',
    ),
    note: null,
  },
  {
    odd: 'a line that is none',
    text: lines(...HEAD, 'Content-Type: application/sdp', AUDIO),
    note: 'line 6 (=Content-Type: application/sdp): is not a line of SDP',
  },
  {
    odd: 'attributes before their m= line',
    text: lines(...HEAD, EVENTS, 'a=fmtp:101 0-15', 'a=ptime:30', AUDIO),
    note: 'its attributes stand before it',
    read: { ptime_ms: 30 },
    answer: ['m=audio 20000 RTP/AVP 0 101'],
  },
  {
    odd: 'attribute names in capitals',
    text: lines(...HEAD, AUDIO, 'a=RTPMAP:101 TELEPHONE-EVENT/8000', 'a=SendOnly'),
    note: null,
    read: { direction: 'sendonly' },
  },
  {
    odd: 'blanks behind the colon',
    text: lines(...HEAD, AUDIO, 'a=rtpmap: 101 telephone-event / 8000', 'a=ptime: 30'),
    note: null,
    read: { ptime_ms: 30 },
    answer: ['m=audio 20000 RTP/AVP 0 101'],
  },
  {
    odd: 'a media name in capitals',
    text: but(AUDIO, 'm=AUDIO 4000 rtp/avp 0 101'),
    note: null,
    answer: ['m=audio 20000 RTP/AVP 0 101'],
  },
  { odd: 'commas between formats', text: but(AUDIO, 'm=audio 4000 RTP/AVP 0,101'), note: null },
  {
    odd: 'no formats, but their a=rtpmap lines',
    text: lines(...HEAD, 'm=audio 4000 RTP/AVP', 'a=rtpmap:0 PCMU/8000', EVENTS),
    note: 'names no format; those of its a=rtpmap lines count',
    answer: ['m=audio 20000 RTP/AVP 0 101'],
  },
  {
    odd: 'formats that are none',
    text: but(AUDIO, 'm=audio 4000 RTP/AVP 0 * 200 -1 101'),
    note: null,
    answer: ['m=audio 20000 RTP/AVP 0 101'],
  },
  {
    odd: 'more formats than types',
    text: but(AUDIO, `m=audio 4000 RTP/AVP ${Array.from({ length: 200 }, (_, n) => n).join(' ')}`),
    note: 'only its first 128 formats are read',
  },
  {
    odd: 'telephone-event mapped twice',
    text: lines(...HEAD, AUDIO, 'a=rtpmap:101 telephone-event/16000', EVENTS),
    note: 'payload type 101: is telephone-event at several clock rates',
    answer: ['a=rtpmap:101 telephone-event/8000'],
  },
  { odd: 'telephone-event without fmtp', text: lines(...HEAD, AUDIO, EVENTS), note: null, answer: ['a=fmtp:101 0-15'] },
  {
    odd: 'telephone-event with fmtp alone',
    text: lines(...HEAD, AUDIO, 'a=fmtp:101 0-16'),
    note: 'payload type 101: is taken for telephone-event',
    answer: ['a=rtpmap:101 telephone-event/8000'],
  },
  {
    odd: 'telephone-event at 16000 Hz alone',
    text: lines(...HEAD, AUDIO, 'a=rtpmap:101 telephone-event/16000'),
    note: null,
    answer: ['a=rtpmap:101 telephone-event/16000'],
  },
  {
    odd: 'G.722 at its sample rate',
    text: lines(...HEAD, 'm=audio 4000 RTP/AVP 9', 'a=rtpmap:9 G722/16000'),
    note: 'payload type 9: is G722 by RFC 3551, not G722/16000',
    answer: ['a=rtpmap:9 G722/8000'],
  },
  {
    odd: 'a static type mapped to another codec',
    text: lines(...HEAD, 'm=audio 4000 RTP/AVP 8', 'a=rtpmap:8 PCMU/8000'),
    note: 'payload type 8: is PCMA by RFC 3551, not PCMU/8000',
    answer: ['a=rtpmap:8 PCMA/8000'],
  },
  {
    odd: 'a static type with channels',
    text: lines(...HEAD, 'm=audio 4000 RTP/AVP 8', 'a=rtpmap:8 PCMA/8000/1'),
    note: null,
    answer: ['a=rtpmap:8 PCMA/8000'],
  },
  {
    odd: 'G.729 by its annex',
    text: lines(...HEAD, 'm=audio 4000 RTP/AVP 97', 'a=rtpmap:97 G729A/8000'),
    note: null,
    answer: ['a=rtpmap:97 G729/8000'],
  },
  {
    odd: 'an rtpmap without a clock rate',
    text: lines(...HEAD, 'm=audio 4000 RTP/AVP 96', 'a=rtpmap:96 opus'),
    note: null,
    answer: ['a=rtpmap:96 opus/48000/2'],
  },
  {
    odd: 'comfort noise beside G.729',
    text: lines(...HEAD, 'm=audio 4000 RTP/AVP 18 13'),
    note: null,
    answer: ['m=audio 20000 RTP/AVP 18'],
  },
  {
    odd: 'a dynamic type mapped twice',
    text: lines(...HEAD, 'm=audio 4000 RTP/AVP 97', 'a=rtpmap:97 PCMA/8000', 'a=rtpmap:97 AMR/8000'),
    note: 'payload type 97: is mapped more than once',
    answer: ['a=rtpmap:97 PCMA/8000'],
  },
]

t.test('audio is used whatever else is odd about an SDP, and a note names the oddity', async t => {
  for (const { odd, text, read = {}, note, answer = [] } of CASES) {
    const reading = readSdp(text, () => '192.0.2.1')
    if ('refused' in reading) {
      t.fail(`${odd}: ${reading.detail}`)
      continue
    }
    const { sdp } = reading
    const offer = readOffer(sdp, policy)
    if ('refused' in offer) {
      t.fail(`${odd}: ${offer.detail}`)
      continue
    }
    t.match(sdp.lines[offer.audio], { port: 4000, address: '192.0.2.1', fault: null, ...read }, odd)
    if (note === null)
      t.strictSame(
        sdp.notes.filter(one => !/^there is no|CR or LF/.test(one)),
        [],
        odd,
      )
    else
      t.ok(
        sdp.notes.some(one => one.includes(note)),
        `${odd}: ${JSON.stringify(sdp.notes)}`,
      )
    const answered = answerOffer(offer, side, { lines: [], audio: 0, payload_types: {}, local: null }, ['PCMU'])
    const written = 'refused' in answered ? answered.detail : writeSdp(answered.local)
    for (const line of answer) t.ok(written.split('\r\n').includes(line), `${odd}: ${line} in ${written}`)
    t.match(written, /^v=0\r\no=strowger 77 1 IN IP4 203\.0\.113\.77\r\ns=-\r\nc=IN IP4 203\.0\.113\.77\r\nt=0 0\r\n/)
    t.equal(written.match(/^m=/gm)?.length, sdp.lines.length, `${odd}: every m= line is answered (RFC 3264 §6)`)
  }
})

t.test('an SDP without usable audio is refused, and the detail names the line', async t => {
  const rows: [odd: string, text: string, reason: string, detail: string][] = [
    ['no SDP', '<html>', 'sdp_malformed', 'has no m= line'],
    [
      'no port',
      lines(...HEAD, 'm=audio x RTP/AVP 0'),
      'sdp_malformed',
      'line 6 (m=audio x RTP/AVP 0): "x" is not a port',
    ],
    [
      'no format',
      lines(...HEAD, 'm=audio 4000 RTP/AVP'),
      'sdp_malformed',
      'line 6 (m=audio 4000 RTP/AVP): names no format',
    ],
    ['no address in c=', but('c=IN IP4 192.0.2.1', 'c=IN IP4'), 'sdp_malformed', 'line 4 (c=IN IP4): names no address'],
    [
      'a host name that nobody places',
      but('c=IN IP4 192.0.2.1', 'c=IN IP4 nowhere.example'),
      'sdp_malformed',
      'line 4 (c=IN IP4 nowhere.example): the host name has no address that we may send to',
    ],
    ['nobody says where', but('c=IN IP4 192.0.2.1', ''), 'sdp_malformed', 'there is no c= line'],
    [
      'no codec of ours',
      lines(...HEAD, 'm=audio 4000 RTP/AVP 4'),
      'no_common_codec',
      'line 6 (m=audio 4000 RTP/AVP 4): offered',
    ],
    [
      'keys that cannot be served',
      lines(...HEAD, 'm=audio 4000 RTP/SAVP 0'),
      'no_common_codec',
      'line 6 (m=audio 4000 RTP/SAVP 0): RTP/SAVP without',
    ],
    [
      'too many m= lines',
      lines(...HEAD, ...Array.from({ length: 65 }, () => AUDIO)),
      'sdp_malformed',
      'more than 64 m= lines',
    ],
  ]
  for (const [odd, text, reason, detail] of rows) {
    const reading = readSdp(text)
    const outcome = 'refused' in reading ? reading : readOffer(reading.sdp, policy)
    t.match(outcome, { refused: reason }, odd)
    t.ok('detail' in outcome && outcome.detail.includes(detail), `${odd}: ${JSON.stringify(outcome)}`)
  }
})

t.test('names hosts that only a resolver can place, with the port of their audio', async t => {
  const reading = readSdp(but('c=IN IP4 192.0.2.1', 'c=IN IP4 media.example.com'))
  t.match(reading, { sdp: { unplaced: [{ host: 'media.example.com', port: 4000 }] } })
  t.match(readSdp(but('c=IN IP4 192.0.2.1', '')), { sdp: { unplaced: [{ host: '', port: 4000 }] } })
})

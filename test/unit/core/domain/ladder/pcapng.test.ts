import { pcapng } from '../../../../../core/domain/ladder/pcapng.ts'
import t from '../../../../support/harness/index.ts'
import { packetsIn } from '../../../../support/pcap.ts'

// Captures of calls, as tshark reads them.

const SDP = [
  ...['v=0', 'o=- 1 1 IN IP4 192.0.2.7', 's=-', 'c=IN IP4 192.0.2.7', 't=0 0', 'm=audio 4000 RTP/SAVP 0'],
  'a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:…',
]

function sip(start: string, cseq: string, lines: readonly string[] = [], body = ''): string {
  // The length is that of the body before its secrets were masked.
  const length = body === '' ? 0 : body.length + 39
  const head = [
    start,
    'Via: SIP/2.0/UDP 192.0.2.7:5060;branch=z9hG4bKa;rport',
    'From: <sip:+2342010000001@192.0.2.7>;tag=a',
    `To: <sip:+2348030000001@198.51.100.1>${start.startsWith('SIP') ? ';tag=b' : ''}`,
    'Call-ID: one@192.0.2.7',
    `CSeq: ${cseq}`,
    'Contact: <sip:192.0.2.7:5060>',
    'Max-Forwards: 70',
    ...lines,
    `Content-Length: ${length}`,
  ]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}

const invite = sip(
  'INVITE sip:+2348030000001@198.51.100.1 SIP/2.0',
  '1 INVITE',
  ['Content-Type: application/sdp'],
  `${SDP.join('\r\n')}\r\n`,
)
const AT_MS = Date.parse('2026-03-11T12:00:00.250Z')
const message = (text: string, over: object = {}) => ({
  ...{ at_ms: AT_MS, direction: 'in' as const, protocol: 'udp', local: '198.51.100.1:5060', remote: '192.0.2.7:5070' },
  ...over,
  text,
})

const COMPLAINTS = ['_ws.expert.severity', '_ws.expert.message', '_ws.malformed']
/** The severities of tshark from which on it complains. Below are comments, chats and notes. */
const WARNING = 0x00600000

/** Fails for what tshark warns of. */
function uncomplaining(t: { same(a: unknown, b: unknown, why: string): unknown }, found: readonly string[][]): void {
  const worse = found.filter(([severity = '', , malformed]) => {
    return malformed !== '' || severity.split(',').some(level => Number(level) >= WARNING)
  })
  t.same(worse, [], 'tshark has no complaint')
}

t.test('each message is a packet with its addresses, ports, time and text, in both directions', async t => {
  const capture = pcapng(
    [
      message(invite),
      message(sip('SIP/2.0 486 Busy Here', '1 INVITE'), { direction: 'out', at_ms: AT_MS + 1500.5 }),
      message(sip('OPTIONS sip:a@[2001:db8::1] SIP/2.0', '2 OPTIONS'), {
        local: '2001:db8::1:5060',
        remote: '2001:db8::7:5070',
      }),
      message(sip('OPTIONS sip:a SIP/2.0', '3 OPTIONS'), { local: '0.0.0.0:5060' }),
    ],
    ['203.0.113.5', '2001:db8::5'],
    'Call CA1.',
  )
  const fields = ['ip.src', 'ip.dst', 'udp.srcport', 'udp.dstport', 'sip.Method', 'sip.Status-Code']
  const packets = await packetsIn(
    capture,
    ...COMPLAINTS,
    ...fields,
    'frame.time_epoch',
    'ipv6.src',
    'ipv6.dst',
    'sdp.media',
  )
  uncomplaining(t, packets)
  const facts = packets.map(packet => packet.slice(COMPLAINTS.length))
  t.same(
    facts.map(fact => fact.slice(0, fields.length)),
    [
      ['192.0.2.7', '198.51.100.1', '5070', '5060', 'INVITE', ''],
      ['198.51.100.1', '192.0.2.7', '5060', '5070', '', '486'],
      ['', '', '5070', '5060', 'OPTIONS', ''],
      ['192.0.2.7', '203.0.113.5', '5070', '5060', 'OPTIONS', ''],
    ],
  )
  const [first, second, third] = facts.map(fact => fact.slice(fields.length))
  t.same([Number(first?.[0]), Number(second?.[0])], [AT_MS / 1000, AT_MS / 1000 + 1.5005])
  t.same(third?.slice(1, 3), ['2001:db8::7', '2001:db8::1'])
  t.equal(first?.[3], 'audio 4000 RTP/SAVP 0')
})

t.test('TCP messages are one stream each way, however long; what was encrypted is marked', async t => {
  const tcp = { protocol: 'tcp', remote: '192.0.2.7:40000' }
  const long = sip('MESSAGE sip:a SIP/2.0', '5 MESSAGE', ['Content-Type: text/plain'], '').replace(
    'Content-Length: 0\r\n\r\n',
    `Content-Length: 90000\r\n\r\n${'x'.repeat(90_000)}`,
  )
  const capture = pcapng(
    [
      message(invite, tcp),
      message(sip('SIP/2.0 100 Trying', '1 INVITE'), { ...tcp, direction: 'out' }),
      message(long, tcp),
      message(sip('SIP/2.0 200 OK', '5 MESSAGE'), { ...tcp, direction: 'out' }),
      message(invite, { protocol: 'tls', local: '198.51.100.1:5061', remote: '192.0.2.7:40001' }),
    ],
    [],
    '',
  )
  const packets = await packetsIn(capture, ...COMPLAINTS, 'sip.Method', 'sip.Status-Code', 'frame.comment')
  uncomplaining(t, packets)
  const facts = packets.map(packet => packet.slice(COMPLAINTS.length))
  t.same(facts.map(([method, code]) => method || code).filter(Boolean), ['INVITE', '100', 'MESSAGE', '200', 'INVITE'])
  t.equal(facts.at(-1)?.[2], 'SIP over tls, decrypted')
})

import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import type { Log } from '../../../../core/runtime/log.ts'
import { encodeHep, exportHep } from '../../../../signaling/edge/hep.ts'
import type { TracedMessage } from '../../../../signaling/edge/index.ts'
import { silentLog } from '../../../../signaling/edge/stack.ts'
import { ManualClock } from '../../../fuzz/edge/manual-clock.ts'
import t from '../../../support/harness/index.ts'
import { isMediaOfOthers } from '../../../support/ports.ts'

t.test('a HEP packet has the addresses, time and text of a message, without secrets', async t => {
  const message = (over: Partial<TracedMessage>): TracedMessage => ({
    direction: 'in',
    protocol: 'tls',
    local: { host: '::', port: 5061 },
    remote: { host: '2001:db8::9', port: 40_000 },
    text: 'INVITE sip:a SIP/2.0\r\nProxy-Authorization: Digest username="u", response="0123abcd"\r\n\r\n',
    retransmission: false,
    at: 1_700_000_000_250,
    ...over,
  })
  const options = { id: 7, password: null, own_addresses: ['192.0.2.1', '2001:db8::1'] }
  const hex = encodeHep(message({}), 'CA1', options).toString('hex')
  t.ok(hex.startsWith(Buffer.from('HEP3').toString('hex')))
  for (const [what, bytes] of [
    ['IPv6', '00000001 0007 0a'],
    ['TCP', '00000002 0007 06'],
    ['from the peer', '00000005 0016 20010db8000000000000000000000009'],
    ['to our own address, for a socket bound to all', '00000006 0016 20010db8000000000000000000000001'],
    ['source port', '00000007 0008 9c40'],
    ['target port', '00000008 0008 13c5'],
    ['seconds', '00000009 000a 6553f100'],
    ['microseconds', '0000000a 000a 0003d090'],
    ['agent', '0000000c 000a 00000007'],
    ['correlation', '00000011 0009 434131'],
  ] as const) {
    t.ok(hex.includes(bytes.replaceAll(' ', '')), what)
  }
  t.notOk(hex.includes(Buffer.from('0123abcd').toString('hex')), 'the digest response is removed')
  const sdp = 'v=0\r\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2Vj\r\n'
  const head = 'INVITE sip:a SIP/2.0\r\nContent-Type: application/sdp\r\n'
  const keyed = encodeHep(message({ text: `${head}Content-Length: ${sdp.length}\r\n\r\n${sdp}` }), 'CA1', options)
  const copy = keyed.toString('latin1')
  const body = copy.slice(copy.indexOf('\r\n\r\n') + 4, copy.lastIndexOf('\r\n') + 2)
  t.match(copy, /inline:\*\*\*/, 'the mask is ASCII')
  t.match(copy, new RegExp(`Content-Length: ${body.length}\r\n`), 'the length is that of the body that is left')
  const out = encodeHep(
    message({
      direction: 'out',
      protocol: 'udp',
      local: { host: '10.0.0.1', port: 5060 },
      remote: { host: '10.0.0.2', port: 5062 },
    }),
    'CA1',
    options,
  ).toString('hex')
  t.ok(
    out.includes('00000003000a0a000001') && out.includes('00000004000a0a000002'),
    'a sent message has our address as its source',
  )
  const huge = encodeHep(message({ text: 'a'.repeat(70_000) }), 'CA1', options)
  t.ok(huge.length <= 65_507, 'a message too large for a datagram is truncated')
  t.equal(huge.readUInt16BE(4), huge.length)
})

t.test('a message waits a limited time for its call to be known, and at most 5,000 messages wait', async t => {
  const collector = createSocket('udp4')
  collector.bind(0, '127.0.0.1')
  await once(collector, 'listening')
  t.teardown(() => collector.close())
  const clock = new ManualClock()
  const found = new Map<string, string>()
  const asked: number[] = []
  const { port } = collector.address()
  const options = { host: '127.0.0.1', port, id: 1, password: null, own_addresses: ['127.0.0.1'] }
  const hep = exportHep(
    options,
    async ids => {
      asked.push(ids.length)
      return found
    },
    silentLog as unknown as Log,
    clock,
  )
  const invite = (call_id: string): TracedMessage => ({
    direction: 'in',
    protocol: 'udp',
    local: { host: '127.0.0.1', port: 5060 },
    remote: { host: '127.0.0.1', port: 5070 },
    text: `INVITE sip:a SIP/2.0\r\nCall-ID: ${call_id}\r\nCSeq: 1 INVITE\r\n\r\n`,
    retransmission: false,
    at: 0,
  })
  const correlation = async (): Promise<string> => {
    let packet: Buffer
    do [packet] = await once(collector, 'message')
    while (isMediaOfOthers(packet))
    return /\0\x11\0.(CA1|stranger)/s.exec(packet.toString('latin1'))?.[1] ?? ''
  }
  const turn = async (ms: number): Promise<void> => {
    clock.advance(ms)
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  hep.keep(invite('known'))
  hep.keep(invite('stranger'))
  while (!asked.length) await turn(300)
  t.equal(hep.sent, 0, 'nothing is sent while no call has these Call-IDs')
  found.set('known', 'CA1')
  let next = correlation()
  while (hep.sent === 0) await turn(300)
  t.equal(await next, 'CA1')
  next = correlation()
  while (hep.sent === 1) await turn(300)
  t.equal(await next, 'stranger', 'a message without a call is sent under its own Call-ID')
  for (let i = 0; i < 6_000; i++) hep.keep(invite('stranger'))
  t.equal(hep.left_out, 1_000, 'messages beyond 5,000 are dropped and counted')
  await hep.close()
  t.equal(hep.sent, 5_002, 'close sends the waiting messages')
})

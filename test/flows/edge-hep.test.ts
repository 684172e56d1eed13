import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { ladderOf } from '../../core/state/calls/ladder.ts'
import t from '../support/harness/index.ts'
import { isMediaOfOthers } from '../support/ports.ts'
import { until } from '../support/wait.ts'
import { world } from '../support/world.ts'

// A collector such as Homer gets every SIP message of a call, with one correlation id for all legs.

interface Captured {
  readonly chunks: ReadonlyMap<number, Buffer>
  readonly correlation_id: string
  readonly text: string
}

t.test('all messages of a call and its child reach the HEP collector under one correlation id', async t => {
  const collector = createSocket('udp4')
  collector.bind(0, '127.0.0.1')
  await once(collector, 'listening')
  t.teardown(() => collector.close())
  const captured: Captured[] = []
  collector.on('message', packet => {
    if (!isMediaOfOthers(packet)) captured.push(decode(packet))
  })
  const w = await world(t, {
    STROWGER_HEP: `localhost:${collector.address().port}`,
    STROWGER_HEP_ID: '2001',
    STROWGER_HEP_PASSWORD: 'homer',
  })
  const { status, body } = await w.voice('POST', '/Calls.json', {
    From: w.numbers[0] ?? '',
    To: '+2348030000001',
    InlineMarkup: '<Response><Dial timeout="10">+2348030000006</Dial><Hangup/></Response>',
  })
  t.equal(status, 201)
  await w.ended(body.sid)

  const ours = await until('the collector has what the ladder has', async () => {
    const ladder = await ladderOf(w.state.db, body.sid, 'operator')
    const found = captured.filter(one => one.correlation_id === body.sid)
    const ended = found.filter(one => one.text.startsWith('BYE ')).length >= 2
    return ended && ladder?.length === found.length && found
  })
  const call_ids = new Set(ours.map(one => /\r\nCall-ID: (\S+)/i.exec(one.text)?.[1]))
  t.equal(call_ids.size, 2, 'both legs, each with its own Call-ID')
  t.ok(
    ours.every(one => /^(SIP\/2\.0 |\w+ sip:)/.test(one.text)),
    'each is a SIP message',
  )
  for (const { chunks } of ours) {
    const ports = [chunks.get(7)?.readUInt16BE(), chunks.get(8)?.readUInt16BE()]
    if (!ports.includes(w.sip.port)) t.fail(`ports ${ports}`)
  }
  const seconds = ours.map(one => one.chunks.get(9)?.readUInt32BE() ?? 0)
  t.ok(
    seconds.every(at => Math.abs(at - Date.now() / 1000) < 120),
    'with the time of the wire',
  )
  const first = ours[0]?.chunks
  t.equal(first?.get(1)?.[0], 2, 'IPv4')
  t.equal(first?.get(2)?.[0], 17, 'UDP')
  t.equal(first?.get(11)?.[0], 1, 'SIP')
  t.equal(first?.get(12)?.readUInt32BE(), 2001)
  t.equal(first?.get(14)?.toString(), 'homer')
  t.same([...(first?.get(3) ?? [])], [127, 0, 0, 1])
  t.notOk(
    captured.some(one => /\r\nCSeq: \d+ (OPTIONS|REGISTER)/i.test(one.text)),
    'no keep-alives',
  )
})

/** Parses a HEP3 datagram by its specification, without the product's code. */
function decode(packet: Buffer): Captured {
  if (packet.toString('latin1', 0, 4) !== 'HEP3' || packet.readUInt16BE(4) !== packet.length) {
    throw new Error(`no HEP3: ${packet.toString('hex', 0, 12)}`)
  }
  const chunks = new Map<number, Buffer>()
  for (let at = 6; at < packet.length; ) {
    const length = packet.readUInt16BE(at + 4)
    if (packet.readUInt16BE(at) !== 0 || length < 6 || at + length > packet.length) throw new Error(`chunk at ${at}`)
    chunks.set(packet.readUInt16BE(at + 2), packet.subarray(at + 6, at + length))
    at += length
  }
  return {
    chunks,
    correlation_id: chunks.get(17)?.toString() ?? '',
    text: chunks.get(15)?.toString('latin1') ?? '',
  }
}

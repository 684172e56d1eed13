import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createEdge } from '../../../signaling/edge/index.ts'
import t from '../../support/harness/index.ts'
import { isMediaOfOthers } from '../../support/ports.ts'
import { ALL_VERBS, startRobot } from './robot.ts'
import { testClock } from './test-clock.ts'
import { tortureMessages } from './torture.ts'

// Each message of RFC 4475 and RFC 5118 must get the answer that fixtures/sip/torture names, and the edge must survive.

for (const file of ['rfc4475.txt', 'rfc5118.txt'] as const) {
  t.test(`the torture messages of ${file} are answered as expected`, async t => {
    const faults: unknown[] = []
    const edge = await createEdge({
      listeners: [{ protocol: 'udp', host: '127.0.0.1', port: 0 }],
      control: { host: '127.0.0.1', port: 0, secret: 'cymru' },
      // The test sends no ACK for refusals. With a running clock, retransmissions would pass for later answers.
      clock: testClock(0),
      log: { debug: () => 0, info: () => 0, warn: () => 0, error: facts => faults.push(facts) },
    })
    t.teardown(() => edge.close())
    const robot = await startRobot(edge.control.port, ALL_VERBS)
    t.teardown(() => robot.close())
    const socket = createSocket('udp4')
    socket.bind(0, '127.0.0.1')
    await once(socket, 'listening')
    t.teardown(() => socket.close())
    const arrived: string[] = []
    socket.on('message', data => {
      if (isMediaOfOthers(data)) return
      arrived.push(data.toString('latin1'))
      socket.emit('answer')
    })
    const port = edge.listeners[0]?.port ?? 0
    let probes = 0
    for (const { name, expected, remark, bytes } of tortureMessages(file)) {
      arrived.length = 0
      socket.send(bytes, port, '127.0.0.1')
      if (expected !== 'silent') {
        while (!arrived.some(isFinal)) await once(socket, 'answer')
        const status = Number(arrived.find(isFinal)?.slice(8, 11))
        t.equal(status, expected, `${name}: ${expected}, ${remark}`)
      }
      // A probe shows that the edge is alive, and gives it time to send an unwanted answer.
      const probe = `alive-${++probes}`
      socket.send(options(probe), port, '127.0.0.1')
      while (!arrived.some(text => text.includes(probe))) await once(socket, 'answer')
      if (expected === 'silent') {
        t.equal(arrived.filter(text => !text.includes(probe)).length, 0, `${name}: no answer, ${remark}`)
      }
    }
    t.same(faults, [], 'nothing threw')
  })
}

function isFinal(text: string): boolean {
  return text.startsWith('SIP/2.0 ') && !text.startsWith('SIP/2.0 1')
}

function options(id: string): string {
  return [
    'OPTIONS sip:alive@example.com SIP/2.0',
    `Via: SIP/2.0/UDP 127.0.0.1;branch=z9hG4bK${id};rport`,
    'From: <sip:probe@example.com>;tag=1',
    'To: <sip:alive@example.com>',
    `Call-ID: ${id}`,
    'CSeq: 1 OPTIONS',
    'Content-Length: 0',
    '',
    '',
  ].join('\r\n')
}

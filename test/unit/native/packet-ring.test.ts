// Reports of the engine about the packet rings of its threads.
import { readFileSync } from 'node:fs'
import { createEngine } from '../../../native/index.ts'
import t from '../../support/harness/index.ts'

const CAP_NET_RAW = 13n
const held = BigInt(`0x${/^CapEff:\s*(\w+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]}`)
const allowed = ((held >> CAP_NET_RAW) & 1n) === 1n

for (const packet_ring of [true, false]) {
  t.test(`the engine reports packet rings with the option packet_ring: ${packet_ring}`, async t => {
    const engine = createEngine(
      { threads: 2, bind_address: '127.0.0.1', port_min: 0, port_max: 0, quarantine_ms: 0, packet_ring },
      () => {},
    )
    t.teardown(() => engine.close())
    t.strictSame(
      engine.stats().threads.map(thread => thread.packet_ring),
      Array(2).fill(packet_ring && allowed),
    )
  })
}

// #own-process: it measures the heap.
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { systemClock } from '../../../../core/runtime/clock.ts'
import { writeLadder } from '../../../../signaling/edge/ladder.ts'
import t from '../../../support/harness/index.ts'

const MIB = 1024 * 1024

t.test('the memory of a call that has ended is its Call-ID, however large its INVITE was', async t => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const used = (): number => {
    collect()
    return getHeapStatistics().used_heap_size
  }
  const node = { give: async () => true, onDrain: async () => undefined }
  const journal = { append: () => undefined, settling: () => () => undefined }
  const ladder = writeLadder(node, journal as never, [], systemClock)
  const invite = (call: number) => {
    const head = `INVITE sip:1@127.0.0.1 SIP/2.0\r\nCall-ID: call-${call}@127.0.0.1\r\nCSeq: 1 INVITE\r\n`
    const text = Buffer.from(`${head}\r\n${'a'.repeat(30_000)}`, 'latin1').toString('latin1')
    const peer = { host: '127.0.0.1', port: 5060 }
    return { direction: 'in', protocol: 'udp', local: peer, remote: peer, text, retransmission: false, at: 0 } as const
  }
  const before = used()
  for (let call = 0; call < 1000; call++) {
    ladder.keep(invite(call))
    if (call % 100 === 99) await node.onDrain()
  }
  await ladder.close()
  const grown = used() - before
  t.ok(grown < 5 * MIB, `${(grown / MIB).toFixed(1)} MiB for 1000 calls`)
})

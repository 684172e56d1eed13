import t from '../../support/harness/index.ts'
import { coreTests } from './cpp.ts'

// #own-process: it compiles and runs the tests of the C++ core.
t.test('the C++ core passes its own tests', async t => {
  await coreTests(t, 'none', [], 450)
})

t.test('the sockets deliver all packets without CAP_NET_RAW', async t => {
  const forbidden = ['setpriv', '--bounding-set=-net_raw', '--inh-caps=-net_raw']
  await coreTests(t, 'none', ['packet-ring'], 25, process.getuid?.() === 0 ? forbidden : [])
})

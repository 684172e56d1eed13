// The priority of the packet threads, as the kernel reports it.
import { readdirSync, readFileSync } from 'node:fs'
import { createEngine } from '../../../native/index.ts'
import t from '../../support/harness/index.ts'

const SCHED_OTHER = 0
const SCHED_RR = 2

/** Returns the scheduling policies of this process's threads of that name (proc(5): field 41 of `stat`). */
const policies = (name: string) =>
  readdirSync('/proc/self/task')
    .map(task => readFileSync(`/proc/self/task/${task}/stat`, 'utf8'))
    .filter(stat => stat.includes(`(${name})`))
    .map(stat => Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[38]))

for (const realtime of [true, false]) {
  t.test(`packet threads have the priority that the option realtime: ${realtime} sets`, async t => {
    const engine = createEngine(
      { threads: 2, bind_address: '127.0.0.1', port_min: 0, port_max: 0, quarantine_ms: 0, realtime },
      () => {},
    )
    t.teardown(() => engine.close())
    const [first, second] = engine.stats().threads
    const allowed = first?.realtime === true
    t.equal(second?.realtime, allowed)
    if (!realtime) t.notOk(allowed)
    for (const thread of ['media-0', 'media-1'])
      t.strictSame(policies(thread), [allowed ? SCHED_RR : SCHED_OTHER], thread)
    t.strictSame(policies('recorder'), [SCHED_OTHER], 'the recorder keeps the normal priority')
  })
}

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { CHRT } from '../../../../core/runtime/back-seat.ts'
import { builtModule } from '../../../../core/runtime/tree.ts'
import t from '../../../support/harness/index.ts'

const SCHED_IDLE = 5

/** A thread that takes the back seat and tells its scheduling policy (proc(5), field 41 of stat). */
const TELLS = `
  const { parentPort, workerData } = require('node:worker_threads')
  const { readFileSync } = require('node:fs')
  const policy = () => Number(readFileSync('/proc/thread-self/stat', 'utf8').replace(/^.*\\) /, '').split(' ')[38])
  const { module, chrt } = workerData
  import(module).then(({ takeBackSeat }) => parentPort.postMessage([policy(), takeBackSeat(chrt), policy()]))
`

/** Returns what a thread tells that runs a script, by which it takes the back seat by this chrt. */
function told(chrt: string, script = TELLS): Promise<unknown> {
  const workerData = { module: builtModule('core/runtime/back-seat.js'), chrt }
  const worker = new Worker(script, { eval: true, workerData })
  return new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
}

t.test('a thread takes the back seat alone', { skip: !existsSync(CHRT) && 'no chrt' }, async t => {
  t.same(await told(CHRT), [0, true, SCHED_IDLE])
})

t.test('a thread keeps its seat where the system refuses the policy, or has no chrt', async t => {
  for (const chrt of ['/bin/false', '/nowhere/chrt']) t.same(await told(chrt), [0, false, 0], chrt)
})

/** A thread on the back seat that works until it has lost its core, or for 30 s. It tells whether it noticed that. */
const NOTICES = `
  const { parentPort, workerData: { module, chrt } } = require('node:worker_threads')
  import(module).then(({ lostCore, takeBackSeat }) => {
    takeBackSeat(chrt)
    const lost = lostCore()
    const at_once = Array.from({ length: 1000 }, lost)
    const end_ms = performance.now() + 30_000
    let noticed = false
    while (!noticed && performance.now() < end_ms) noticed = lost()
    parentPort.postMessage({ noticed, always: at_once.every(Boolean) })
  })
`

t.test(
  'a thread on the back seat notices that others took its core',
  { skip: !existsSync(CHRT) && 'no chrt' },
  async t => {
    const others = Array.from({ length: availableParallelism() }, () => spawn(process.execPath, ['-e', 'for (;;);']))
    try {
      await Promise.all(others.map(other => once(other, 'spawn')))
      t.same(await told(CHRT, NOTICES), { noticed: true, always: false })
    } finally {
      for (const other of others) other.kill('SIGKILL')
    }
  },
)

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { CHRT, coresAreTaken, leavesNoCore } from '../../../../core/runtime/back-seat.ts'
import { giveWay } from '../../../../core/runtime/give-way.ts'
import { builtModule } from '../../../../core/runtime/tree.ts'
import t from '../../../support/harness/index.ts'
import { until } from '../../../support/wait.ts'

const SCHED_IDLE = 5
const GIVEN_MS = 50

/** A thread that takes the back seat and tells its scheduling policy (proc(5), field 41 of stat). */
const TELLS = `
  const { parentPort, workerData } = require('node:worker_threads')
  const { readFileSync } = require('node:fs')
  const policy = () => Number(readFileSync('/proc/thread-self/stat', 'utf8').replace(/^.*\\) /, '').split(' ')[38])
  const { module, chrt } = workerData
  import(module).then(({ takeBackSeat }) => parentPort.postMessage([policy(), takeBackSeat(chrt), policy()]))
`

/** Returns what a thread tells that runs a script, by which it takes the back seat by this chrt. */
function told(chrt: string): Promise<unknown> {
  const workerData = { module: builtModule('core/runtime/back-seat.js'), chrt }
  const worker = new Worker(TELLS, { eval: true, workerData })
  return new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
}

t.test('a thread takes the back seat alone', { skip: !existsSync(CHRT) && 'no chrt' }, async t => {
  t.same(await told(CHRT), [0, true, SCHED_IDLE])
})

t.test('a thread keeps its seat where the system refuses the policy, or has no chrt', async t => {
  for (const chrt of ['/bin/false', '/nowhere/chrt']) t.same(await told(chrt), [0, false, 0], chrt)
})

t.test('a thread knows whether others leave a core free', async t => {
  const cases = [
    { running: 1, cores: 1, taken: false },
    { running: 2, cores: 1, taken: true },
    { running: 1, cores: 2, taken: false },
    { running: 2, cores: 2, taken: true },
    { running: 3, cores: 4, taken: false },
    { running: 4, cores: 4, taken: true },
    { running: 11, cores: 8, taken: true },
  ]
  for (const { running, cores, taken } of cases)
    t.equal(leavesNoCore(`0.20 1.18 20.12 ${running}/280 11206\n`, cores), taken, `${running} run on ${cores} cores`)
  for (const nothing of ['', 'a b c d e\n', '0.20 0.18 0.12\n']) t.notOk(leavesNoCore(nothing, 2), nothing)
})

t.test('work gives way to others, but not forever', { skip: !existsSync('/proc/loadavg') && 'no loadavg' }, async t => {
  const words = ['-e', 'process.stdout.write("works"); for (;;);']
  const others = Array.from({ length: availableParallelism() }, () => spawn(process.execPath, words))
  try {
    // A loop that still loads may wait for a core. Other tests could take all cores then, and rest later.
    await Promise.all(others.map(({ stdout }) => once(stdout, 'data')))
    await until('others work on all cores', coresAreTaken)
    const begun_ms = performance.now()
    await giveWay(GIVEN_MS)
    t.ok(performance.now() - begun_ms >= GIVEN_MS)
  } finally {
    for (const other of others) other.kill('SIGKILL')
  }
})

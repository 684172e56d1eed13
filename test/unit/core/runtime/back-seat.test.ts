import { existsSync } from 'node:fs'
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

/** Returns what a thread tells that takes the back seat by this chrt. */
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

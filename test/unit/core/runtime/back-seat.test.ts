import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { builtModule } from '../../../../core/runtime/tree.ts'
import t from '../../../support/harness/index.ts'

const SCHED_IDLE = 5

/** A thread that takes the back seat and tells its scheduling policy (proc(5), field 41 of stat). */
const TELLS = `
  const { parentPort, workerData } = require('node:worker_threads')
  const { readFileSync } = require('node:fs')
  const policy = () => Number(readFileSync('/proc/thread-self/stat', 'utf8').replace(/^.*\\) /, '').split(' ')[38])
  import(workerData).then(({ takeBackSeat }) => parentPort.postMessage([policy(), takeBackSeat(), policy()]))
`

t.test('a thread takes the back seat alone', { skip: !existsSync('/usr/bin/chrt') && 'no chrt' }, async t => {
  const worker = new Worker(TELLS, { eval: true, workerData: builtModule('core/runtime/back-seat.js') })
  const told = await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
  t.same(told, [0, true, SCHED_IDLE])
})

import { once } from 'node:events'
import { Script } from 'node:vm'
import { Worker } from 'node:worker_threads'
import { giveBackMemory } from '../../../../core/runtime/give-back.ts'
import { builtModule } from '../../../../core/runtime/tree.ts'
import t from '../../../support/harness/index.ts'

const MIB = 1024 * 1024
const ROOMY = { used: 20 * MIB, total: 40 * MIB }

/** Runs periods in which the event loop worked for so many milliseconds. Returns those after which it collected. */
function collectedAfter(periods: readonly number[], heap: typeof ROOMY | (() => typeof ROOMY) = ROOMY): number[] {
  const collected: number[] = []
  let at = 0
  let worked_ms = 0
  let end = (): void => undefined
  giveBackMemory(
    {
      every(_period_ms, run) {
        end = run
        return { cancel: () => undefined }
      },
    },
    {
      worked_ms: () => worked_ms,
      heap: () => (typeof heap === 'function' ? heap() : heap),
      collect: () => collected.push(at),
    },
  )
  for (const ms of periods) {
    worked_ms += ms
    end()
    at++
  }
  return collected
}

t.test('an idle process gives memory back once after its start', async t => {
  t.same(collectedAfter([0, 10, 0, 20]), [0])
})

t.test('a process that works gives nothing back; it does so once when the burst is over', async t => {
  t.same(collectedAfter([5000, 5000, 400, 10, 10, 5000, 0, 0]), [3, 6])
})

t.test('a heap without spare room, or one whose collection would disturb calls, is left alone', async t => {
  t.same(collectedAfter([0, 0], { used: 20 * MIB, total: 22 * MIB }), [])
  t.same(collectedAfter([0, 0], { used: 65 * MIB, total: 120 * MIB }), [])
})

t.test('a resting process whose heap has grown by its own small work gives it back', async t => {
  let used = 18 * MIB
  const grows = () => {
    used += MIB
    return { used, total: 40 * MIB }
  }
  const collected = collectedAfter([0, 10, 10, 10, 10, 10, 10, 10, 10, 10], grows)
  t.equal(collected[0], 0)
  t.equal(collected.length, 2, 'once after its start, and once when it had grown')
})

/** A thread that has left garbage in its heap, and rests. Tells the bytes of its heap before and after. */
const RESTS = `
const { parentPort, workerData } = require('node:worker_threads')
const { getHeapStatistics } = require('node:v8')
const total = () => getHeapStatistics().total_heap_size
let garbage = Array.from({ length: 300_000 }, (_, at) => ({ at }))
garbage = null
const before = total()
import(workerData).then(({ giveBackMemory }) => {
  let look = () => undefined
  giveBackMemory({ every: (_period_ms, run) => { look = run } })
  look()
  const timer = setInterval(() => {
    if (total() > before / 2) return
    clearInterval(timer)
    parentPort.postMessage({ before, after: total() })
  }, 10)
})`

t.test('a thread that rests after a burst has a smaller heap', async t => {
  const thread = new Worker(RESTS, { eval: true, workerData: builtModule('core/runtime/give-back.js') })
  const [{ before, after }] = await once(thread, 'message')
  t.ok(before > 12 * MIB, `the burst left ${before} bytes`)
  t.ok(after < before / 2, `${after} bytes of ${before} are left`)
  await thread.terminate()
})

t.test('V8 still takes code that it compiled before: what is loaded later has it too', async t => {
  // V8 knows a text by its length; one that is equal is not compiled again.
  const cachedData = new Script('(() => 1)').createCachedData()
  giveBackMemory({ every: () => ({ cancel: () => undefined }) })
  t.equal(new Script('(() => 2)', { cachedData }).cachedDataRejected, false)
})

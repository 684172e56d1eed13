import pino from 'pino'
import type { Clock } from '../../../core/runtime/clock.ts'
import { Drain } from '../../../signaling/drain.ts'
import t from '../../support/harness/index.ts'

/** A node with a call, whose storage answers when the test says so, and whose timers end when the test says so. */
function node() {
  let save = (): void => undefined
  const saved = new Promise<void>(resolve => {
    save = resolve
  })
  const statement = { set: () => statement, where: () => statement, execute: () => saved }
  const timers: (() => void)[] = []
  const timer = (_ms: number, run: () => void) => {
    timers.push(run)
    return { cancel: () => undefined }
  }
  const clock: Clock = { now: () => 0, monotonic_ms: () => 0, after: timer, every: () => ({ cancel: () => undefined }) }
  const drain = new Drain(
    {
      ...{ node_id: 'node_1', clock, log: pino({ level: 'silent' }), least_ms: 0 },
      state: { db: { updateTable: () => statement } } as never,
      bus: { on: () => () => undefined } as never,
      calls: { size: 1, whenIdle: () => new Promise(() => undefined) } as never,
    },
    1000,
  )
  return {
    drain,
    save: () => save(),
    late(): void {
      for (const run of timers.splice(0)) run()
    },
  }
}

const turn = () => new Promise(resolve => setImmediate(resolve))

t.test('a node refuses calls when its row tells the APIs so, not before', async t => {
  const { drain, save } = node()
  const begun = drain.begin()
  await turn()
  t.equal(drain.on, false, 'the APIs still accept calls')
  save()
  await begun
  t.equal(drain.on, true)
})

t.test('a storage that stalls keeps no node from draining', async t => {
  const { drain, late } = node()
  void drain.begin()
  await turn()
  late()
  await turn()
  t.equal(drain.on, true)
})

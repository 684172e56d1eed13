import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { type Bus, connectBus, createBusHub } from '../../../../core/runtime/bus.ts'
import { createLog } from '../../../../core/runtime/log.ts'
import { Counter, collectMetrics, createMetrics, serveMetrics } from '../../../../core/runtime/metrics.ts'
import { until } from '../../../support/wait.ts'

const folder = mkdtempSync(join(tmpdir(), 'strowger-bus-'))
t.teardown(() => rmSync(folder, { recursive: true }))
const log = createLog('test', { log_level: 'silent' })

/** Resolves when this key is heard: one that was rung several times may come late. */
const heard = (bus: Bus, wanted: string): Promise<void> =>
  new Promise(resolve => {
    const off = bus.on('calls', key => {
      if (key !== wanted) return
      off()
      resolve()
    })
  })

/** Rings until the other side hears: a member may still be connecting. */
async function ringUntilHeard(from: Bus, to: Bus, key: string): Promise<void> {
  const answer = heard(to, key)
  const again = setInterval(() => from.ring('calls', key), 20)
  try {
    await answer
  } finally {
    clearInterval(again)
  }
}

t.test('what one process rings, the others hear, also after the hub was gone', async t => {
  const hub = await createBusHub(folder, log)
  const [a, b] = [connectBus(folder), connectBus(folder)]
  await ringUntilHeard(a, b, 'CA1')
  await ringUntilHeard(b, a, 'CA2')
  hub.close()
  const next = await createBusHub(folder, log)
  await ringUntilHeard(a, b, 'CA3')
  t.pass('each was heard')
  await Promise.all([a.close(), b.close()])
  next.close()
})

t.test('what is said before the connection stands, and just before the end, arrives', async t => {
  const hub = await createBusHub(folder, log)
  const listener = connectBus(folder)
  const other = connectBus(folder)
  await ringUntilHeard(other, listener, 'CA5')
  const answer = heard(listener, 'CA6')
  const brief = connectBus(folder)
  brief.ring('calls', 'CA6')
  await brief.close()
  await answer
  t.pass('it was heard')
  await Promise.all([listener.close(), other.close()])
  hub.close()
})

t.test('without a hub a process still hears itself', async t => {
  const alone = connectBus(join(folder, 'nobody'))
  await ringUntilHeard(alone, alone, 'CA4')
  t.throws(() => alone.ring('calls', 'two\nlines'))
  await alone.close()
})

t.test('the metrics of all processes come as one text with each family once', async t => {
  const served = await Promise.all(
    ['one', 'two'].map(name => {
      const registry = createMetrics(name)
      new Counter({ name: 'strowger_test_total', help: 'x', registers: [registry] }).inc(name === 'one' ? 1 : 2)
      return serveMetrics(folder, name, registry)
    }),
  )
  // Who does not answer within a second is left out: what both of them tell.
  const text = await until('both are told', async () => {
    const told = await collectMetrics(folder)
    return /process="one"/.test(told) && /process="two"/.test(told) && told
  })
  t.equal(text.match(/^# TYPE strowger_test_total counter$/gm)?.length, 1)
  t.match(text, /^strowger_test_total\{process="one"\} 1$/m)
  t.match(text, /^strowger_test_total\{process="two"\} 2$/m)
  for (const name of ['one', 'two'])
    t.match(text, new RegExp(`^strowger_event_loop_delay_seconds\\{quantile="1",process="${name}"\\} [0-9.e-]+$`, 'm'))
  for (const one of served) one.close()
})

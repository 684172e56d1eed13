import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { type Bus, connectBus, createBusHub } from '../../../../core/runtime/bus.ts'
import { createLog } from '../../../../core/runtime/log.ts'
import { Counter, collectMetrics, createMetrics, serveMetrics } from '../../../../core/runtime/metrics.ts'

const folder = mkdtempSync(join(tmpdir(), 'strowger-bus-'))
t.teardown(() => rmSync(folder, { recursive: true }))
const log = createLog('test', { log_level: 'silent' })

const heard = (bus: Bus): Promise<string> =>
  new Promise(resolve => {
    const off = bus.on('calls', key => {
      off()
      resolve(key)
    })
  })

/** Rings until the other side hears: a member may still be connecting. */
async function ringUntilHeard(from: Bus, to: Bus, key: string): Promise<string> {
  const answer = heard(to)
  const again = setInterval(() => from.ring('calls', key), 20)
  try {
    return await answer
  } finally {
    clearInterval(again)
  }
}

t.test('what one process rings, the others hear, also after the hub was gone', async t => {
  const hub = await createBusHub(folder, log)
  const [a, b] = [connectBus(folder), connectBus(folder)]
  t.equal(await ringUntilHeard(a, b, 'CA1'), 'CA1')
  t.equal(await ringUntilHeard(b, a, 'CA2'), 'CA2')
  hub.close()
  const next = await createBusHub(folder, log)
  t.equal(await ringUntilHeard(a, b, 'CA3'), 'CA3')
  await Promise.all([a.close(), b.close()])
  next.close()
})

t.test('what is said before the connection stands, and just before the end, arrives', async t => {
  const hub = await createBusHub(folder, log)
  const listener = connectBus(folder)
  const other = connectBus(folder)
  await ringUntilHeard(other, listener, 'CA5')
  const answer = heard(listener)
  const brief = connectBus(folder)
  brief.ring('calls', 'CA6')
  await brief.close()
  t.equal(await answer, 'CA6')
  await Promise.all([listener.close(), other.close()])
  hub.close()
})

t.test('without a hub a process still hears itself', async t => {
  const alone = connectBus(join(folder, 'nobody'))
  t.equal(await ringUntilHeard(alone, alone, 'CA4'), 'CA4')
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
  const text = await collectMetrics(folder)
  t.equal(text.match(/^# TYPE strowger_test_total counter$/gm)?.length, 1)
  t.match(text, /^strowger_test_total\{process="one"\} 1$/m)
  t.match(text, /^strowger_test_total\{process="two"\} 2$/m)
  for (const one of served) one.close()
})

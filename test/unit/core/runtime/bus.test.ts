import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Bus, connectBus, createBusHub, type Topic } from '../../../../core/runtime/bus.ts'
import { systemClock, type Timer } from '../../../../core/runtime/clock.ts'
import { createLog } from '../../../../core/runtime/log.ts'
import { Counter, collectMetrics, createMetrics, serveMetrics } from '../../../../core/runtime/metrics.ts'
import t from '../../../support/harness/index.ts'
import { until } from '../../../support/wait.ts'

const folder = mkdtempSync(join(tmpdir(), 'strowger-bus-'))
t.teardown(() => rmSync(folder, { recursive: true }))
const log = createLog('test', { log_level: 'silent' })

/** Resolves at the next ring of the topic. */
const heard = (bus: Bus, topic: Topic): Promise<void> =>
  new Promise(resolve => {
    const off = bus.on(topic, () => {
      off()
      resolve()
    })
  })

/** Rings until the other side hears, because a member may still be connecting. Each use needs a separate topic. */
async function ringUntilHeard(from: Bus, to: Bus, topic: Topic): Promise<void> {
  const answer = heard(to, topic)
  const again = setInterval(() => from.ring(topic), 20)
  try {
    await answer
  } finally {
    clearInterval(again)
  }
}

t.test('a ring reaches the other processes, also after the hub has restarted', async t => {
  const hub = await createBusHub(folder, log)
  const [a, b] = [connectBus(folder), connectBus(folder)]
  await ringUntilHeard(a, b, 'calls')
  await ringUntilHeard(b, a, 'commands')
  hub.close()
  const next = await createBusHub(folder, log)
  await ringUntilHeard(a, b, 'outbox')
  t.pass('each ring was heard')
  await Promise.all([a.close(), b.close()])
  next.close()
})

t.test('rings sent before the connection is up, and just before close, arrive', async t => {
  const hub = await createBusHub(folder, log)
  const listener = connectBus(folder)
  const other = connectBus(folder)
  await ringUntilHeard(other, listener, 'jobs')
  const answer = heard(listener, 'nodes')
  const brief = connectBus(folder)
  brief.ring('nodes')
  await brief.close()
  await answer
  t.pass('the ring was heard')
  await Promise.all([listener.close(), other.close()])
  hub.close()
})

t.test('without a hub a process hears its own rings', async () => {
  const alone = connectBus(join(folder, 'nobody'))
  await ringUntilHeard(alone, alone, 'calls')
  await alone.close()
})

t.test('sends the first ring at once, joins those of the next 25 ms into one, and keeps the last at close', async t => {
  const hub = await createBusHub(folder, log)
  t.teardown(() => hub.close())
  let held: (() => void)[] | undefined
  const after = (delay_ms: number, run: () => void): Timer => {
    if (!held) return systemClock.after(delay_ms, run)
    held.push(run)
    return { cancel: () => undefined }
  }
  const runTimers = (): void => {
    const due = held ?? []
    held = []
    for (const run of due) run()
  }
  const clock = { ...systemClock, after }
  const [a, b] = [connectBus(folder, clock), connectBus(folder)]
  await ringUntilHeard(a, b, 'jobs')
  held = []
  let rings = 0
  b.on('calls', () => {
    rings += 1
  })
  // Rings of one process arrive in order, so all rings before this one have arrived.
  const arrived = async (topic: Topic): Promise<number> => {
    const answer = heard(b, topic)
    a.ring(topic)
    await answer
    return rings
  }
  for (let ring = 0; ring < 50; ring += 1) a.ring('calls')
  t.equal(await arrived('commands'), 1)
  runTimers()
  t.equal(await arrived('outbox'), 2)
  runTimers()
  a.ring('calls')
  a.ring('calls')
  const last = heard(b, 'nodes')
  a.ring('nodes')
  await Promise.all([a.close(), last])
  t.equal(
    await until('the last ring', async () => rings === 4 && rings),
    4,
    'a closing process sends its pending rings',
  )
  await b.close()
})

t.test('collects the metrics of all processes as one text with each family once', async t => {
  const served = await Promise.all(
    ['one', 'two'].map(name => {
      const registry = createMetrics(name)
      new Counter({ name: 'strowger_test_total', help: 'x', registers: [registry] }).inc(name === 'one' ? 1 : 2)
      return serveMetrics(folder, name, registry)
    }),
  )
  // A process that does not answer within a second is omitted, so wait until both are in the text.
  const text = await until('both are in the text', async () => {
    const told = await collectMetrics(folder)
    return /process="one"/.test(told) && /process="two"/.test(told) && told
  })
  t.equal(text.match(/^# TYPE strowger_test_total counter$/gm)?.length, 1)
  t.match(text, /^strowger_test_total\{process="one"\} 1$/m)
  t.match(text, /^strowger_test_total\{process="two"\} 2$/m)
  for (const name of ['one', 'two'])
    t.match(
      text,
      new RegExp(`^strowger_event_loop_delay_seconds\\{percentile="100",process="${name}"\\} [0-9.e-]+$`, 'm'),
    )
  for (const one of served) one.close()
})

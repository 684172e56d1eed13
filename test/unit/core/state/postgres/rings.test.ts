import type { Bus, BusBridge, Topic } from '../../../../../core/runtime/bus.ts'
import { systemClock } from '../../../../../core/runtime/clock.ts'
import { hostsOf } from '../../../../../core/runtime/database-url.ts'
import { createLog } from '../../../../../core/runtime/log.ts'
import { Link } from '../../../../../core/state/postgres/link.ts'
import { PostgresRings } from '../../../../../core/state/postgres/rings.ts'
import t, { type Test } from '../../../../support/harness/index.ts'
import { freePort } from '../../../../support/ports.ts'
import { postgresDatabase } from '../../../../support/postgres.ts'
import { busOfMachine, ringUntilHeard } from '../../../../support/rings.ts'
import { PATIENCE_MS, until } from '../../../../support/wait.ts'

// Rings of one machine reach another one over the database that both share.

const log = createLog('test', { log_level: 'silent' })

const hosts = (url: string) => hostsOf(url) ?? []

/** A process on the bus of a machine whose bridge is the database. */
const machine = (t: Test, url: string): Promise<Bus> =>
  busOfMachine(t, log, new PostgresRings({ hosts: hosts(url), log }))

async function admin(t: Test, url: string): Promise<Link> {
  const [host] = hosts(url)
  if (!host) throw new Error('no host')
  const patient = { connect_ms: PATIENCE_MS, statement_ms: PATIENCE_MS }
  const link = await Link.open(host, patient, { statements: 0, messages: 0, commits: 0 })
  t.teardown(() => link.close())
  return link
}

t.test('a ring reaches the processes of other machines, also after the database cut the connections', async t => {
  const url = await postgresDatabase()
  const [a, b] = [await machine(t, url), await machine(t, url)]
  await ringUntilHeard(a, b, 'configuration')
  await ringUntilHeard(b, a, 'commands')
  const link = await admin(t, url)
  const cut = () =>
    link.run(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'strowger rings' " +
        'and datname = current_database()',
    )
  let missed = 0
  b.on('nodes', () => missed++)
  t.equal((await cut()).rows.length, 2)
  await until('what it may have missed rings', () => missed > 0)
  await ringUntilHeard(a, b, 'jobs')
})

t.test('rings of one machine alone stay there, and nothing that a stranger notifies rings twice or fails', async t => {
  const url = await postgresDatabase()
  const [a, b] = [await machine(t, url), await machine(t, url)]
  // The last topic that rings after a connection.
  await ringUntilHeard(a, b, 'nodes')
  await ringUntilHeard(b, a, 'nodes')
  const heard: string[] = []
  for (const topic of ['outbox', 'exports', 'jobs'] as const) b.on(topic, () => heard.push(topic))
  const link = await admin(t, url)
  await link.run("notify strowger_rings, 'outbox rings nodes2 constructor'")
  a.ring('outbox')
  a.ring('exports')
  a.ring('jobs')
  await until('the last one is heard', () => heard.includes('jobs'))
  t.same(heard, ['jobs'])
})

t.test('rings wait for a server that is a standby or away, and pass one that was not reached', async t => {
  const url = await postgresDatabase()
  const away = `postgres://strowger@127.0.0.1:${await freePort()}/x`
  const [near, other] = [hosts(away), hosts(url)]
  const bridge: BusBridge = new PostgresRings({ hosts: [...near, ...other], log })
  t.teardown(() => bridge.close())
  const b = await machine(t, url)
  let heard = 0
  b.on('nodes', () => heard++)
  // What rings while it connects leaves when it has connected.
  bridge.ring('nodes')
  await until('heard by way of the second server', () => heard > 0)
})

t.test('fifty rings cost two notifications: the first at once, the others 50 ms later', async t => {
  const url = await postgresDatabase()
  const due: (() => void)[] = []
  const clock = {
    ...systemClock,
    after(delay_ms: number, run: () => void) {
      if (delay_ms !== 50) return systemClock.after(delay_ms, run)
      due.push(run)
      return { cancel: () => undefined }
    },
  }
  const bridge = new PostgresRings({ hosts: hosts(url), log, clock })
  const heard: Topic[] = []
  const listener = new PostgresRings({ hosts: hosts(url), log })
  t.teardown(() => Promise.all([bridge.close(), listener.close()]))
  listener.onRing(topic => void heard.push(topic))
  let connected = false
  bridge.onRing(() => {
    connected = true
  })
  await until('both listen', () => connected && heard.length > 0)
  heard.length = 0
  const until_heard = (topic: Topic) => until(`${topic} is heard`, () => heard.includes(topic))
  for (let ring = 0; ring < 50; ring++) bridge.ring('calls')
  await until_heard('calls')
  bridge.ring('jobs')
  t.same(heard, ['calls'])
  t.equal(due.length, 1)
  due[0]?.()
  await until_heard('jobs')
  t.same(heard, ['calls', 'calls', 'jobs'])
})

import { join } from 'node:path'
import Database from 'better-sqlite3'
import { pino } from 'pino'
import type { Machine } from '../../../core/runtime/machine.ts'
import { neighboursOf, saveEdgeLink } from '../../../core/state/nodes/edge-links.ts'
import { announceEdge } from '../../../signaling/lone-edge.ts'
import { Presence, registerOwnNode } from '../../../signaling/presence.ts'
import { admissionWorld, NOW_MS } from '../../support/admission-world.ts'
import { standingClock } from '../../support/clock.ts'
import t from '../../support/harness/index.ts'
import { until } from '../../support/wait.ts'

const HERE: Machine = { machine_id: 'mac_1', boot_id: 'boot_1' }

t.test('a node that was declared lost while its writes were blocked registers once and logs it once', async t => {
  const { state, data_dir, close } = await admissionWorld()
  t.teardown(close)
  let beat = (): void => undefined
  let told_lost = 0
  const clock = {
    ...standingClock(new Date(NOW_MS).toISOString()),
    every: (_period_ms: number, run: () => void) => {
      beat = run
      return { cancel: () => undefined }
    },
  }
  const lines: { level: number; msg: string }[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  await registerOwnNode(state, 'node_1', HERE, clock)
  const presence = new Presence({
    ...{ node_id: 'node_1', machine: HERE, state, clock, log },
    sip: { connected: true, onLink: () => () => undefined },
    media: { connected: true, on: () => undefined },
    reached: () => undefined,
    wasLost: () => {
      told_lost++
    },
  })

  // Another process locks the database for several heartbeats, and removes this node meanwhile.
  const other = new Database(join(data_dir, 'strowger.sqlite'))
  t.teardown(() => other.close())
  other.exec('begin immediate')
  for (let missed = 0; missed < 5; missed++) beat()
  other.exec("delete from node where id = 'node_1'")
  other.exec('commit')

  const nodes = () => state.db.selectFrom('node').select('id').orderBy('id').execute()
  await until('the node and its links have rows', async () => (await nodes()).length === 3)
  await presence.stop()
  t.same(
    lines.map(({ msg }) => msg),
    ['other nodes considered this node lost'],
  )
  t.equal(told_lost, 1, 'it can end the calls that others ended')
  t.same(await nodes(), [], 'stop removes all of its rows')
})

t.test('an edge alone on its machine stays known while it starts again, and not for longer', async t => {
  const { state, close } = await admissionWorld()
  t.teardown(close)
  let beat = (): void => undefined
  const standing = standingClock(new Date(NOW_MS).toISOString())
  const clock = {
    ...standing,
    every: (_period_ms: number, run: () => void) => {
      beat = run
      return { cancel: () => undefined }
    },
  }
  await saveEdgeLink(state.db, HERE.machine_id, { host: '127.0.0.2', port: 5090 })
  const edge = { connected: true }
  const announced = announceEdge(edge, { state, machine: HERE, clock, log: pino({ level: 'silent' }) })
  const known = async () => (await neighboursOf(state.db, 'mac_2', clock.now())).others.length === 1
  const rows = () => state.db.selectFrom('node').select(['started_at', 'heartbeat_at']).execute()
  const after = (ms: number): void => {
    standing.move(ms)
    beat()
  }
  after(0)
  await until('other machines know it', known)
  const [first] = await rows()
  edge.connected = false
  after(2000)
  after(12_000)
  t.same(await rows(), [first], 'while it is away, nobody is told that it works')
  edge.connected = true
  const heartbeat_at = new Date(clock.now()).toISOString()
  await until('it is back', async () => {
    after(0)
    return (await rows())[0]?.heartbeat_at === heartbeat_at
  })
  t.same(await rows(), [{ ...first, heartbeat_at }], 'nobody was told that it had left: its links and calls go on')
  edge.connected = false
  await until('it is lost', async () => {
    after(16_000)
    return !(await known())
  })
  await announced.stop()
  t.same(await rows(), [])
})

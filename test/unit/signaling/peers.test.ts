import pino from 'pino'
import type { Beat } from '../../../core/runtime/edge-link.ts'
import type { Machine } from '../../../core/runtime/machine.ts'
import { heartbeat } from '../../../core/state/nodes/nodes.ts'
import { Peers } from '../../../signaling/peers.ts'
import { registerOwnNode } from '../../../signaling/presence.ts'
import { admissionWorld } from '../../support/admission-world.ts'
import { standingClock } from '../../support/clock.ts'
import t, { type Test } from '../../support/harness/index.ts'
import { until } from '../../support/wait.ts'

const OWN: Machine = { machine_id: 'mac_1', boot_id: 'boot_1' }
const OTHER: Machine = { machine_id: 'mac_2', boot_id: 'boot_1' }

/** A node between its peers and a database, which the test plays. */
async function node(t: Test) {
  const { state, close } = await admissionWorld()
  t.teardown(close)
  let tick = (): void => undefined
  let times_alone = 0
  const clock = {
    ...standingClock(),
    every: (_period_ms: number, run: () => void) => {
      tick = run
      return { cancel: () => undefined }
    },
  }
  const said: Beat[] = []
  const line = { beat: (beat: Beat) => void said.push(beat), onBeat: (_beat: Beat): void => undefined }
  await registerOwnNode(state, 'node_1', OWN, clock)
  await registerOwnNode(state, 'node_2', OTHER, clock)
  const alone = () => {
    times_alone++
  }
  const log = pino({ level: 'silent' })
  const peers = new Peers({ ...{ node_id: 'node_1', state, clock, log, line, alone } })
  return {
    ...{ state, clock, peers, said, line },
    timesAlone: () => times_alone,
    /** Two seconds pass, in which it reaches these. */
    pass: (reaches: { readonly state?: boolean; readonly peer?: Partial<Beat> }, seconds = 2) => {
      for (let at = 0; at < seconds; at += 2) {
        clock.move(2000)
        if (reaches.state) peers.reached()
        if (reaches.peer) line.onBeat({ node_id: 'node_2', has_state: true, hears: [], ...reaches.peer })
        tick()
      }
      return said.at(-1)
    },
  }
}

t.test('a node reports whether it reaches the database and which machines it hears', async t => {
  const { pass, peers } = await node(t)
  t.same(pass({ state: true }), { node_id: 'node_1', has_state: true, hears: [] })
  t.same(pass({ state: true, peer: {} }), { node_id: 'node_1', has_state: true, hears: ['node_2'] })
  t.same(pass({ peer: { has_state: false } }, 8), { node_id: 'node_1', has_state: false, hears: ['node_2'] })
  t.equal(peers.whole, false)
  t.same(pass({ state: true }, 8), { node_id: 'node_1', has_state: true, hears: [] })
  t.equal(peers.whole, true)
})

t.test('it ends its calls once when it reaches neither, and not after it stood still itself', async t => {
  const { pass, clock, timesAlone } = await node(t)
  pass({ state: true, peer: {} })
  clock.move(60_000)
  pass({})
  t.equal(timesAlone(), 0, 'nobody could reach it meanwhile')
  pass({}, 8)
  t.equal(timesAlone(), 0)
  pass({}, 6)
  t.equal(timesAlone(), 1)
  pass({}, 60)
  t.equal(timesAlone(), 1)
  pass({ state: true, peer: {} })
  pass({}, 20)
  t.equal(timesAlone(), 2, 'and again the next time')
})

t.test('it does not miss a peer that left in order, and says so when it leaves itself', async t => {
  const { pass, timesAlone, peers, said } = await node(t)
  pass({ state: true, peer: {} })
  pass({ state: true, peer: { leaves: true } })
  pass({}, 60)
  t.equal(timesAlone(), 0, 'its database is away, as for a machine alone')
  peers.stop()
  t.match(said.at(-1), { node_id: 'node_1', leaves: true })
})

t.test('it attests a peer that it hears and that writes no heartbeats, and no other', async t => {
  const { state, pass, clock } = await node(t)
  const attested = async () =>
    (await state.db.selectFrom('node').select(['id', 'attested_at']).orderBy('id').execute()).map(
      ({ attested_at }) => attested_at !== null,
    )
  pass({ state: true }, 20)
  pass({ state: true, peer: {} })
  const [was] = await until('the peer is attested', async () => {
    const rows = await attested()
    return rows[1] && rows
  })
  t.equal(was, false, 'it does not speak for itself')
  await state.db.updateTable('node').set({ attested_at: null }).execute()
  await heartbeat(state.db, 'node_2', clock.now())
  pass({ state: true, peer: {} }, 4)
  pass({ peer: {} }, 10)
  // What it began to read before is over.
  await state.transaction(async () => undefined)
  t.same(await attested(), [false, false], 'the peer lives, and then this node does not reach the database')
})

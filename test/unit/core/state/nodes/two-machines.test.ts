import { join } from 'node:path'
import Database from 'better-sqlite3'
import { newId } from '../../../../../core/runtime/ids.ts'
import type { Machine } from '../../../../../core/runtime/machine.ts'
import { insertMessages, messagesOfLostCalls } from '../../../../../core/state/calls/ladder.ts'
import { unfinishedRecordings } from '../../../../../core/state/calls/recordings.ts'
import { endCallsOfLostNode, insertCall } from '../../../../../core/state/calls/running-calls.ts'
import { ownSandbox, putSandboxCarrier } from '../../../../../core/state/configuration/bootstrap.ts'
import {
  listCarrierRegistrations,
  saveRegistrationState,
} from '../../../../../core/state/configuration/carrier-registrations.ts'
import { DATABASE_FILE } from '../../../../../core/state/index.ts'
import { edgeAt, putMachine, seeMachine } from '../../../../../core/state/nodes/machines.ts'
import {
  askToDrain,
  endCallsOfLostNodes,
  heartbeat,
  isAskedToDrain,
  NodeWatch,
  registerAgain,
  removeNode,
  signalingNodes,
} from '../../../../../core/state/nodes/nodes.ts'
import { isDead, registerOwnNode } from '../../../../../signaling/presence.ts'
import { type AdmissionWorld, admissionWorld, NOW_MS } from '../../../../support/admission-world.ts'
import { onPostgres } from '../../../../support/engine.ts'
import t, { type Test } from '../../../../support/harness/index.ts'

// Two machines share one state: a start, stop or crash on one does not affect the other's work.

const HERE: Machine = { machine_id: 'mac_1', boot_id: 'boot_1' }
const THERE: Machine = { machine_id: 'mac_2', boot_id: 'boot_1' }
const at = new Date(NOW_MS).toISOString()
const clock = {
  ...{ now: () => NOW_MS, monotonic_ms: () => 0 },
  ...{ after: () => ({ cancel: () => undefined }), every: () => ({ cancel: () => undefined }) },
}

async function twoNodes(test: Test) {
  const w = await admissionWorld()
  test.teardown(() => w.close())
  const { state } = w
  // Both have this process's pid, which means nothing for a node of another machine.
  await registerOwnNode(state, 'node_before', HERE, clock)
  await registerOwnNode(state, 'node_there', THERE, clock)
  await callOf(w, 'node_before')
  await callOf(w, 'node_there')
  return w
}

const callOf = ({ state, project_id }: AdmissionWorld, node_id: string, ended_at: string | null = null) =>
  insertCall(
    state.db,
    {
      ...{ sid: `CA-${node_id}`, project_id, origin: 'trunk', direction: 'inbound', status: 'in-progress', node_id },
      ...{ from_number: '+2348030000001', to_number: '+2342010000001', queued_at: at, ended_at },
      sip_call_id: `${node_id}@test`,
    },
    NOW_MS,
  )

t.test('a starting node ends the calls of its predecessor, not those of another machine', async t => {
  const { state } = await twoNodes(t)
  await registerOwnNode(state, 'node_here', HERE, clock)
  const ended = await endCallsOfLostNodes(state, clock, new NodeWatch(), {
    dead: row => isDead(row, 'node_here', HERE),
  })
  t.same(ended, ['CA-node_before'])
  const nodes = await state.db.selectFrom('node').select('id').orderBy('id').execute()
  t.same(nodes, [{ id: 'node_here' }, { id: 'node_there' }])
})

const IN_BETWEEN = { skip: onPostgres() && 'needs a write between two statements, from outside' }

t.test('an observer that was suspended after its judgement ends no call of a node that lives', IN_BETWEEN, async t => {
  const { state, data_dir } = await twoNodes(t)
  const other = new Database(join(data_dir, DATABASE_FILE))
  t.teardown(() => other.close())
  const later = new Date(NOW_MS + 60_000).toISOString()
  const dead = ({ id }: { id: string }) => {
    other.prepare('update node set heartbeat_at = ? where id = ?').run(later, id)
    return true
  }
  t.same(await endCallsOfLostNodes(state, clock, new NodeWatch(), { dead }), [])
  const open = await state.db.selectFrom('call').select('sid').where('ended_at', 'is', null).execute()
  t.equal(open.length, 2)
})

t.test(
  'another observer finishes what one that died began; a node that registers again keeps its new calls',
  async t => {
    const w = await twoNodes(t)
    const { state } = w
    const mark = (id: string) => state.db.updateTable('node').set({ lost_at: at }).where('id', '=', id).execute()
    await mark('node_there')
    t.equal(await heartbeat(state.db, 'node_there', NOW_MS), false, 'it is told at its next heartbeat')
    t.same(await endCallsOfLostNodes(state, clock, new NodeWatch()), ['CA-node_there'])
    const cdrs = await state.db.selectFrom('cdr').select(['call_sid', 'reason']).execute()
    t.same(cdrs, [{ call_sid: 'CA-node_there', reason: 'node_lost' }])
    t.equal((await state.db.selectFrom('node').select('id').execute()).length, 1)

    await mark('node_before')
    const again = { id: 'node_before', kind: 'signaling', ...HERE, pid: 1 } as const
    await state.transaction(trx => registerAgain(trx, again, NOW_MS))
    const [row] = await signalingNodes(state.db)
    t.match(row, { id: 'node_before', lost_at: null })
    t.same(await endCallsOfLostNode(state, { id: 'node_before', heartbeat_at: at }, NOW_MS), [], 'it ends them itself')
    t.equal(await heartbeat(state.db, 'node_before', NOW_MS), true)
  },
)

t.test('a carrier is registered with while any machine is, whatever the others report', async t => {
  const { state } = await twoNodes(t)
  const settings = { registrar: 'sip:carrier.example', transport: 'udp', username: 'us', contact_user: 'us' } as const
  await state.db
    .insertInto('carrier_registration')
    .values({ ...settings, carrier_id: 'car_1', password_sealed: '', expires_seconds: 300, enabled: 1 })
    .execute()
  const none = { last_code: null, detail: null, registered_at: null, expires_at: null, next_try_at: null, failures: 0 }
  const save = (node_id: string, told: 'registered' | 'unregistered' | 'failed', seconds: number) =>
    saveRegistrationState(state.db, {
      ...{ carrier_id: 'car_1', node_id, state: told },
      ...{ ...none, changed_at: new Date(NOW_MS + seconds * 1000).toISOString() },
    })
  const shown = async () => {
    const [registration] = await listCarrierRegistrations(state.db)
    return `${registration?.state?.node_id} ${registration?.state?.state}`
  }
  await save('node_there', 'registered', 0)
  await save('node_before', 'failed', 1)
  t.equal(await shown(), 'node_there registered')
  await save('node_before', 'unregistered', 2)
  t.equal(await shown(), 'node_there registered', 'another machine has stopped')
  await state.transaction(trx => removeNode(trx, 'node_there'))
  t.equal(await shown(), 'node_before unregistered', 'the machine that was registered is lost')
  await save('node_before', 'registered', 3)
  const rows = await state.db.selectFrom('carrier_registration_state').select('node_id').execute()
  t.same(rows, [{ node_id: 'node_before' }], 'an ended node leaves no row')
})

t.test('each machine calls its own sandbox carrier; one without calls that of another', async t => {
  const { state } = await twoNodes(t)
  const put = (machine_id: string, port: number | null) =>
    putSandboxCarrier(state, { machine_id, host: '127.0.0.1', port, now: at })
  const targets = () => state.db.selectFrom('carrier_target').select(['id', 'carrier_id', 'sip_uri']).execute()
  const calledBy = async (machine_id: string) =>
    ownSandbox(await targets(), machine_id).map(({ sip_uri }) => sip_uri.slice(-4))
  await put('mac_1', 7001)
  await put('mac_2', 7002)
  t.same([await calledBy('mac_1'), await calledBy('mac_2')], [['7001'], ['7002']])
  t.same((await calledBy('mac_3')).sort(), ['7001', '7002'])
  await put('mac_1', 7003)
  t.same(await calledBy('mac_1'), ['7003'], 'a start replaces the target of this machine alone')
  await put('mac_2', null)
  t.same(await calledBy('mac_2'), ['7003'])
  await put('mac_1', null)
  t.same(await state.db.selectFrom('carrier').select('id').execute(), [], 'the last one takes the carrier with it')
})

t.test('a drain and its end apply only to the requested machine', async t => {
  const { db } = (await twoNodes(t)).state
  const drains = async () => [await isAskedToDrain(db, 'node_before'), await isAskedToDrain(db, 'node_there')]
  t.equal(await askToDrain(db, HERE.machine_id, NOW_MS), 1)
  t.same(await drains(), [true, false])
  await askToDrain(db, THERE.machine_id, NOW_MS)
  await askToDrain(db, HERE.machine_id, null)
  t.same(await drains(), [false, true])
})

t.test('a starting edge finds the calls that crossed it, not those of another edge', async t => {
  const { state } = await twoNodes(t)
  const message = { at_ms: NOW_MS, direction: 'in', protocol: 'udp', retransmission: 0, text: 'INVITE' } as const
  const crossed = (call: string) => ({ ...message, local: 'a:1', remote: 'b:2', sip_call_id: `${call}@test` })
  await insertMessages(state.db, { edge_id: HERE.machine_id, messages: [crossed('node_before')] })
  await insertMessages(state.db, { edge_id: THERE.machine_id, messages: [crossed('node_there')] })
  const lost = (edge_id: string) => messagesOfLostCalls(state.db, { edge_id, since: at, further: [] })
  t.match(await lost(HERE.machine_id), [{ sip_call_id: 'node_before@test' }])
  t.match(await lost(THERE.machine_id), [{ sip_call_id: 'node_there@test' }])
})

t.test(
  'a recording is finished by the machine that has its file, and by nobody while its node may close it',
  async t => {
    const w = await twoNodes(t)
    const { db } = w.state
    await callOf(w, 'node_gone', at)
    await db.updateTable('call').set({ ended_at: at }).execute()
    const machine = {
      host: '',
      base_url: '',
      sip_port: 5060,
      takes_calls: 1,
      version: '',
      contracts: '',
      settings: '{}',
    } as const
    for (const { machine_id: id } of [HERE, THERE]) await putMachine(db, { ...machine, id }, NOW_MS)
    for (const node of ['node_before', 'node_there', 'node_gone'])
      for (const machine_id of ['', 'mac_1', 'mac_2', 'mac_gone'])
        await db
          .insertInto('recording')
          .values({
            ...{ sid: newId.recording(), call_sid: `CA-${node}`, project_id: w.project_id, machine_id },
            ...{ source: 'DialVerb', channels: 1, track: 'both', status: 'in-progress', file: `${node} ${machine_id}` },
            ...{ started_at: at, created_at: at, updated_at: at },
          })
          .execute()
    const left = await unfinishedRecordings(db, { node_id: 'node_before', machine_id: 'mac_1' })
    t.same(left.map(({ file }) => file).sort(), [
      ...['node_before ', 'node_before mac_1', 'node_before mac_gone'],
      ...['node_gone ', 'node_gone mac_1', 'node_gone mac_gone'],
      // A conference of this machine is recorded for a caller of the other one.
      'node_there mac_1',
    ])
  },
)

t.test('an address is that of the machine which was seen there last, not of its predecessor', async t => {
  const { state } = await twoNodes(t)
  const put = (id: string, host: string, now_ms: number) =>
    putMachine(
      state.db,
      {
        ...{ id, host, hosts: `${host} 2001:db8::7`, base_url: '', sip_port: 5060, takes_calls: 1 },
        ...{ roles: 'edge signaling media control', version: '', contracts: '', settings: '{}' },
      },
      now_ms,
    )
  await put('mac_0', '203.0.113.7', NOW_MS)
  await put('mac_1', '203.0.113.8', NOW_MS)
  await put('mac_9', '203.0.113.7', NOW_MS + 1)
  const at = (host: string) => edgeAt(state.db, host, 'mac_1')
  t.same([await at('203.0.113.7'), await at('2001:db8::7'), await at('203.0.113.8')], ['mac_9', 'mac_9', undefined])
  await seeMachine(state.db, 'mac_0', '', NOW_MS + 2)
  t.equal(await at('203.0.113.7'), 'mac_0', 'it has come back')
})

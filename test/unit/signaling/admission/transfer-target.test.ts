import pino from 'pino'
import { trunkRow } from '../../../../bench/admission/rows.ts'
import { systemClock } from '../../../../core/runtime/clock.ts'
import { takeAdmission } from '../../../../core/state/calls/leases.ts'
import { StateError } from '../../../../core/state/index.ts'
import type { AdmissionContext } from '../../../../signaling/admission/context.ts'
import type { Ask } from '../../../../signaling/admission/gate.ts'
import { placeTransferred } from '../../../../signaling/admission/transfer-target.ts'
import type { TransferRequest } from '../../../../signaling/b2bua/transfer-placing.ts'
import { EMPTY_SNAPSHOT, type NumberConfig, type TrunkConfig } from '../../../../signaling/trunks/snapshot.ts'
import { addProject, addTrunk, admissionNode, placed } from '../../../support/admission-node.ts'
import { admissionWorld } from '../../../support/admission-world.ts'
import { addCarrier } from '../../../support/carriers.ts'
import t, { type Test } from '../../../support/harness/index.ts'

// Whom the target of a transfer sees, and what a transferor is told when the store fails. The placing is real; the
// store is a fake that fails, and keeps what it was asked.

const OF_TRUNK = '+2342010000001'
const OF_OTHER_TRUNK = '+2342010000002'

function place(error: Error, asks: Omit<Ask, 'call_sid'>[] = [], row: object = {}) {
  const trunk = { id: 'trk_1', project_id: 'prj_1', subaccount_id: null, targets: [] } as unknown as TrunkConfig
  const numberOf = (e164: string, route_id: string) => [
    e164,
    { e164, project_id: 'prj_1', status: 'held', route_kind: 'trunk', route_id } as unknown as NumberConfig,
  ]
  const numbers = new Map([numberOf(OF_TRUNK, trunk.id), numberOf(OF_OTHER_TRUNK, 'trk_2')] as [string, NumberConfig][])
  const fails = (_db: unknown, _name: string, input: { readonly requests: readonly Ask[] }) => {
    asks.push(...input.requests)
    return Promise.reject(error)
  }
  const ctx = {
    node_id: 'node',
    clock: systemClock,
    log: pino({ level: 'silent' }),
    state: { db: { getExecutor: () => ({ adapter: { engine: { call: fails } } }) } },
    snapshot: () => ({ ...EMPTY_SNAPSHOT, trunks: new Map([[trunk.id, trunk]]), numbers }),
    gate: { stamped: (requests: readonly Ask[]) => ({ requests, now_ms: 0 }) },
  } as unknown as AdmissionContext
  const row_now = { from_number: OF_OTHER_TRUNK, to_number: OF_TRUNK, request: null, direction: 'inbound', ...row }
  const call = { project_id: 'prj_1', sid: 'CA1', row_now }
  const asked = {
    target: { number: '+2348030004711', headers: {} },
    trunk_id: trunk.id,
    transferor: { call, leg: {} },
    transferee: { call, leg: {} },
  } as unknown as TransferRequest
  return placeTransferred(ctx, asked)
}

const BUSY = new StateError('the lock was not had in time', { code: 'SQLITE_BUSY', failure: 'busy' })

t.test(
  'a called number of one trunk transfers a caller with a number of another, and is the caller itself',
  async t => {
    const w = await admissionWorld()
    t.teardown(() => w.close())
    const { db } = w.state
    await db.updateTable('number').set({ route_kind: 'trunk', route_id: w.trunk_id }).execute()
    const other = { id: 'trk_2', project_id: w.project_id, subaccount_id: null, name: 'Other' }
    await db
      .insertInto('trunk')
      .values(trunkRow({ ...other, signaling_fqdn: '2.sip.localhost', concurrency: 10, cps: 10 }))
      .execute()
    await w.number(OF_OTHER_TRUNK, { route_kind: 'trunk', route_id: 'trk_2' })
    const asks: Omit<Ask, 'call_sid'>[] = []
    await place(BUSY, asks)
    const [ask] = asks
    t.match(ask, { way: 'transfer', service: { id: w.trunk_id }, caller: OF_TRUNK, forwarded_caller: false })
    const outcome = (caller: string) => takeAdmission(db, w.request({ ...ask, caller, own_targets: 1 }))
    t.match(await outcome(ask?.caller ?? ''), { admitted: true })
    t.match(
      await outcome(OF_OTHER_TRUNK),
      { admitted: false, reason: 'caller_not_owned' },
      'its caller would be refused',
    )
  },
)

t.test('a subtrunk whose caller came from the network transfers under its own ceilings and policy', async t => {
  const w = await admissionWorld()
  t.teardown(() => w.close())
  const { db } = w.state
  const id = await w.subtrunk({ concurrency: 1 })
  await db.updateTable('number').set({ route_kind: 'subtrunk', route_id: id }).execute()
  const asks: Omit<Ask, 'call_sid'>[] = []
  const caller = '+12025550123'
  await place(BUSY, asks, { from_number: caller, origin: 'carrier' })
  const [ask] = asks
  t.match(ask, { caller, forwarded_caller: true, service: { type: 'trunk' } })
  const transfer = () => takeAdmission(db, w.request({ ...ask, own_targets: 1 }))
  t.match(await transfer(), { admitted: true, subtrunk_id: id })
  t.match(await transfer(), { admitted: false, reason: 'concurrency_exceeded' })
  const policy = await w.policy({}, { type: 'subtrunk', id })
  await w.rule(policy, 'deny', '234803')
  t.match(await transfer(), { admitted: false, reason: 'destination_denied' })
})

t.test('a transfer that the store is too busy to admit is refused with 503, as a call is', async t => {
  t.same(await place(BUSY), { kind: 'refused', sip_code: 503, reason: 'state_unavailable' })
})

t.test('a fault of our own is not taken for a busy store', async t => {
  await t.rejects(place(new Error('a fault')), { message: 'a fault' })
})

const WORLD = '+2348030004711'
const DESK = '+2342010000003'
const THEIRS = '+2342010000004'
const ROW = {
  ...{ sid: 'CA1', project_id: 'prj_1', from_number: OF_TRUNK, to_number: WORLD, origin: 'trunk' },
  ...{ direction: 'outbound', request: null },
}

/** The transferor's trunk has no target: its calls leave by a carrier. Another customer's number has two trunks. */
async function town(t: Test) {
  const w = await admissionWorld()
  t.teardown(() => w.close())
  const { project_id } = w
  await addProject(w, 'prj_2')
  await addTrunk(w, { id: 'trk_a', project_id, host: null })
  await addTrunk(w, { id: 'trk_desk', project_id, host: 2 })
  for (const [id, host] of [['trk_b', 3] as const, ['trk_c', 4] as const])
    await addTrunk(w, { id, project_id: 'prj_2', host })
  const trunk = (route_id: string) => ({ route_kind: 'trunk', route_id }) as const
  await w.state.db.updateTable('number').set(trunk('trk_a')).execute()
  await w.number(DESK, trunk('trk_desk'))
  const second = { fallback_kind: 'trunk', fallback_id: 'trk_c' } as const
  await w.number(THEIRS, { project_id: 'prj_2', ...trunk('trk_b'), ...second })
  const target = { sip_uri: 'sip:127.0.0.5', transport: 'udp', priority: 1, weight: 1 } as const
  const ways = { sources: [], targets: [target], routes: [{ prefix: '', priority: 1, cost_minor: 0 }] }
  await addCarrier(w.state, { name: 'Telco', codecs: ['PCMA'], ...ways }, new Date(0).toISOString())
  const node = await admissionNode(w)
  return {
    refer: (to: string, row: object = {}) =>
      node.refer('trk_a', { row: { ...ROW, ...row } as unknown as Parameters<typeof node.refer>[1]['row'] }, to),
  }
}

t.test(
  'X- headers of a REFER reach the tenant’s own trunk, and neither trunk of another customer’s number',
  async t => {
    const { refer } = await town(t)
    const of = async (number: string) => placed(await refer(`<sip:${number}@pbx.example?X-Ticket=77>`))
    t.match((await of(DESK)).hops, [{ uri: `sip:${DESK}@127.0.0.2`, headers: { 'X-Ticket': '77' } }])
    const { row, hops, second } = await of(THEIRS)
    t.match(row, { project_id: 'prj_2', trunk_id: 'trk_b' })
    const after = await second?.()
    const all = [...hops, ...(after?.kind === 'hops' ? after.hops : [])]
    t.match(all, [{ uri: `sip:${THEIRS}@127.0.0.3` }, { uri: `sip:${THEIRS}@127.0.0.4` }])
    t.notMatch(JSON.stringify(all), /X-Ticket/i)
  },
)

t.test('a transfer hides a caller who withholds the number, also one of the transferor’s own', async t => {
  const { refer } = await town(t)
  const withheld = { from_number: OF_TRUNK, to_number: DESK, request: JSON.stringify({ restricted: true }) }
  const { row, hops } = placed(await refer(`<sip:${DESK}@pbx.example>`, withheld))
  const headers = hops.map(hop => hop.headers)
  t.match(headers, [{ From: /^"Anonymous" <sip:anonymous@anonymous\.invalid>/ }])
  t.notMatch(JSON.stringify(headers), OF_TRUNK.slice(1))
  t.match(JSON.parse(row.request ?? ''), { restricted: true }, 'the new call withholds it, too')
  const shown = placed(
    await refer(`<sip:${DESK}@pbx.example>`, { ...withheld, to_number: OF_TRUNK, from_number: WORLD }),
  )
  t.match(shown.hops, [{ headers: { From: new RegExp(`\\${OF_TRUNK}`) } }], 'not the number that it called')
})

t.test('Max-Forwards goes down from a call to its transfer, and ends it at 0', async t => {
  const { refer } = await town(t)
  const leaves = async (max_forwards: number) => {
    const call = await refer(`<sip:${DESK}@pbx.example>`, { request: JSON.stringify({ max_forwards }) })
    return typeof call === 'string' ? call : [call.hops[0]?.headers['Max-Forwards'], call.row.request]
  }
  t.same(await leaves(5), ['4', '{"max_forwards":4}'])
  t.equal(await leaves(1), 'too_many_hops')
})

t.test(
  'a transfer to a carrier is signed: A for an own number, B for a forwarded caller, C when it was forged',
  async t => {
    const { refer } = await town(t)
    const signed = async (row: object) =>
      placed(await refer(`<sip:${WORLD}@x>`, row)).hops.map(hop => hop.headers['Identity'])
    const forwarded = { direction: 'inbound', origin: 'carrier', from_number: '+12025550123', to_number: OF_TRUNK }
    const verstat = (result: string) => ({ request: JSON.stringify({ sip: { verstat: { result, attest: 'A' } } }) })
    t.same(await signed({}), ['A'])
    t.same(await signed(forwarded), ['B'])
    t.same(await signed({ ...forwarded, ...verstat('passed') }), ['B'])
    t.same(await signed({ ...forwarded, ...verstat('failed') }), ['C'])
  },
)

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
import { admissionWorld } from '../../../support/admission-world.ts'
import t from '../../../support/harness/index.ts'

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

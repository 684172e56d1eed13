import pino from 'pino'
import { systemClock } from '../../../../core/runtime/clock.ts'
import { StateError } from '../../../../core/state/index.ts'
import type { AdmissionContext } from '../../../../signaling/admission/context.ts'
import { placeTransferred } from '../../../../signaling/admission/transfer-target.ts'
import type { TransferAsked } from '../../../../signaling/b2bua/transfer-placing.ts'
import { EMPTY_SNAPSHOT, type TrunkConfig } from '../../../../signaling/trunks/snapshot.ts'
import t from '../../../support/harness/index.ts'

// What a transferor is told when the store fails. The placing is real; the store is a fake that fails.

function place(error: Error) {
  const trunk = { id: 'trk_a', project_id: 'prj_a', subaccount_id: null, targets: [] } as unknown as TrunkConfig
  const ctx = {
    node_id: 'node',
    clock: systemClock,
    log: pino({ level: 'silent' }),
    state: { db: null },
    snapshot: () => ({ ...EMPTY_SNAPSHOT, trunks: new Map([[trunk.id, trunk]]) }),
    gate: { admitCall: () => Promise.reject(error) },
  } as unknown as AdmissionContext
  const row_now = { from_number: '+2342010001001', to_number: '+2342010001002', request: null }
  const call = { project_id: 'prj_a', sid: 'CA1', row_now }
  const asked = {
    target: { number: '+2348030004711', headers: {} },
    trunk_id: trunk.id,
    transferor: { call, leg: {} },
    transferee: { call, leg: {} },
  } as unknown as TransferAsked
  return placeTransferred(ctx, asked)
}

t.test('a transfer that the store is too busy to admit is refused with 503, as a call is', async t => {
  const busy = new StateError('the lock was not had in time', { code: 'SQLITE_BUSY', failure: 'busy' })
  t.same(await place(busy), { kind: 'refused', sip_code: 503, reason: 'state_unavailable' })
})

t.test('a fault of our own is not taken for a busy store', async t => {
  await t.rejects(place(new Error('a fault')), { message: 'a fault' })
})

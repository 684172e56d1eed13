import { takeAdmission } from '../../../../core/state/calls/leases.ts'
import { insertCall } from '../../../../core/state/calls/running-calls.ts'
import type { AdmissionContext } from '../../../../signaling/admission/context.ts'
import { createAdmissionGate, StateStalled } from '../../../../signaling/admission/gate.ts'
import { UnownedCalls } from '../../../../signaling/unowned-calls.ts'
import { admissionWorld, NOW_MS } from '../../../support/admission-world.ts'
import t from '../../../support/harness/index.ts'

const timer = () => ({ cancel: () => undefined })

/** A clock whose time and timers only the test advances. */
function standing() {
  const timers = new Set<() => void>()
  const clock = {
    now_ms: 0,
    now: () => NOW_MS,
    monotonic_ms: () => clock.now_ms,
    after(_delay_ms: number, run: () => void) {
      timers.add(run)
      return { cancel: () => void timers.delete(run) }
    },
    every: timer,
    timers,
  }
  return clock
}

const nothing = async () => undefined

t.test('an admission that times out is rejected, and undone when it completes later', async t => {
  const clock = standing()
  const gate = createAdmissionGate('node_1', clock)
  let decide = (_value: string): void => undefined
  let undone: string | undefined
  const first = gate.decide(
    () => new Promise<string>(resolve => (decide = resolve)),
    async late => {
      undone = late
    },
  )
  clock.now_ms = 1500
  for (const run of clock.timers) run()
  await t.rejects(first, StateStalled)
  t.equal(undone, undefined)
  decide('admitted')
  await gate.decide(async () => 'next', nothing)
  t.equal(undone, 'admitted')
  t.equal(clock.timers.size, 0, 'no timer remains')
})

t.test('an admission that completes in time is not undone', async t => {
  const clock = standing()
  const gate = createAdmissionGate('node_1', clock)
  let undone = false
  const decided = await gate.decide(
    async () => 'admitted',
    async () => {
      undone = true
    },
  )
  t.equal(decided, 'admitted')
  t.equal(clock.timers.size, 0)
  t.notOk(undone)
})

t.test('while an admission is overdue, new ones are rejected without a query', async t => {
  const clock = standing()
  const gate = createAdmissionGate('node_1', clock)
  let finish = (): void => undefined
  const first = gate.decide(() => new Promise<string>(resolve => (finish = () => resolve('first'))), nothing)
  clock.now_ms = 1499
  t.equal(await gate.decide(async () => 'soon after', nothing), 'soon after')
  clock.now_ms = 1501
  let asked = false
  const second = gate.decide(async () => {
    asked = true
  }, nothing)
  await t.rejects(second, StateStalled)
  t.notOk(asked, 'the transaction does not start')
  finish()
  t.equal(await first, 'first')
  t.equal(await gate.decide(async () => 'afterwards', nothing), 'afterwards')
  const failing = gate.decide(() => Promise.reject(new Error('locked')), nothing)
  await t.rejects(failing, /locked/)
  clock.now_ms = 19_000
  t.equal(await gate.decide(async () => 'next', nothing), 'next', 'a failed admission does not count as overdue')
})

t.test('the third sweep ends an unowned call with its slot and money, and leaves other calls alone', async t => {
  const w = await admissionWorld()
  t.teardown(() => w.close())
  const { state } = w
  const gate = createAdmissionGate('node_1', { now: () => NOW_MS, monotonic_ms: () => 0, after: timer, every: timer })
  const at = new Date(NOW_MS).toISOString()
  const rows = ['owned', 'held', 'forgotten', 'elsewhere'] as const
  const sids = new Map<string, string>()
  for (const name of rows) {
    const request = w.request()
    sids.set(name, request.call_sid)
    await state.transaction(async trx => {
      await insertCall(
        trx,
        {
          ...{ sid: request.call_sid, project_id: w.project_id, account_sid: null, parent_call_sid: null },
          ...{ origin: 'trunk', direction: 'outbound', from_number: request.caller, to_number: request.called },
          ...{ status: 'ringing', trunk_id: w.trunk_id, carrier_id: null, number_id: null, application_id: null },
          ...{ sip_call_id: null, request: '{}', node_id: name === 'elsewhere' ? 'node_2' : 'node_1' },
          ...{ queued_at: at, initiated_at: at, ringing_at: null, answered_at: null, ended_at: null },
          ...{ duration_seconds: null, sip_code: null, reason: null, ended_by: null, decision_trace: null },
        },
        NOW_MS,
      )
      await takeAdmission(trx, request)
    })
  }
  const ctx = {
    ...{ state, gate, node_id: 'node_1', log: { error: () => undefined }, clock: { now: () => NOW_MS } },
    calls: { get: (sid: string) => (sid === sids.get('owned') ? {} : undefined) },
  } as unknown as AdmissionContext
  const unowned = new UnownedCalls()
  const sweep = () => unowned.sweep(ctx, sid => sid === sids.get('held'))
  t.same([await sweep(), await sweep(), await sweep(), await sweep()], [0, 0, 1, 0], 'only the third sweep ends it')
  const cdrs = await state.db.selectFrom('cdr').selectAll().execute()
  t.match(cdrs, [{ call_sid: sids.get('forgotten'), status: 'failed', reason: 'internal' }])
  const left = await state.db.selectFrom('lease').select('call_sid').where('ended_at', 'is', null).execute()
  t.equal(left.length, 3)
  const reserved = await state.db.selectFrom('reservation').selectAll().where('settled_at', 'is not', null).execute()
  t.match(reserved, [{ call_sid: sids.get('forgotten'), charge_minor: 0 }])
})

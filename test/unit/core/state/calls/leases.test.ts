import { ending } from '../../../../../core/domain/calls/endings.ts'
import { dayOf } from '../../../../../core/domain/rating/index.ts'
import { countLiveCalls, spentOn, wrongCounters } from '../../../../../core/state/calls/counters.ts'
import {
  type AdmissionOutcome,
  type AdmissionRequest,
  holdersOf,
  pruneAdmission,
  releaseAdmission,
  sweepLeases,
  takeAdmission,
} from '../../../../../core/state/calls/leases.ts'
import { admitQueuedCall, insertCall, writeCall } from '../../../../../core/state/calls/running-calls.ts'
import { putSandboxCarrier } from '../../../../../core/state/configuration/bootstrap.ts'
import { openState } from '../../../../../core/state/index.ts'
import { marginsBy } from '../../../../../core/state/money/margins.ts'
import { costOfCall, extendReservation, findReservation } from '../../../../../core/state/money/reservations.ts'
import { type AdmissionWorld, admissionWorld, NOW_MS } from '../../../../support/admission-world.ts'
import { addCarrier } from '../../../../support/carriers.ts'
import { onPostgres } from '../../../../support/engine.ts'
import t, { type Test } from '../../../../support/harness/index.ts'
import { fc } from '../../../../support/properties.ts'
import { importPriceBook } from '../../../../support/rated.ts'

async function world(test: Test, options: Parameters<typeof admissionWorld>[0] = {}): Promise<AdmissionWorld> {
  const made = await admissionWorld(options)
  test.teardown(() => made.close())
  return made
}

const reasonOf = (outcome: AdmissionOutcome): string | null => (outcome.admitted ? null : outcome.reason)
const admittedOf = (outcomes: readonly AdmissionOutcome[]): number => outcomes.filter(({ admitted }) => admitted).length
const DAY = dayOf(NOW_MS, 'Africa/Lagos')

// Hundreds of calls of one rule. Random histories run it on both stores (postgres/histories.test.ts).
const ON_SQLITE = { skip: onPostgres() && 'takes long' }

// The answer to a commit may be lost, and the call is decided on again (decision 1053).
t.test('a queued call that is admitted again finds its own slots free, and holds them once', async t => {
  const w = await world(t)
  const { db } = w.state
  await w.prepaid(1000)
  await w.trunk({ concurrency: 1 })
  const queued = async () => {
    const request = { ...w.request(), transport: null }
    const row = {
      ...{ sid: request.call_sid, project_id: w.project_id, account_sid: 'AC1', origin: 'rest' as const },
      ...{ direction: 'outbound-api' as const, from_number: request.caller, to_number: request.called },
      ...{ status: 'queued' as const, queued_at: new Date(NOW_MS).toISOString(), trunk_id: w.trunk_id },
    }
    await insertCall(db, row, NOW_MS)
    return request
  }
  const decide = async (request: AdmissionRequest) =>
    (await admitQueuedCall(db, { requests: [request], waits_for: 'cps_exceeded', now_ms: NOW_MS })).decided
  const held = async () => ({
    uses: await db.selectFrom('level_use').select(['level', 'live']).orderBy('level').execute(),
    money: await db.selectFrom('billing_account').select(['balance_minor', 'held_minor']).execute(),
    spent: await db.selectFrom('spend_day').select(['level', 'spent_minor']).orderBy('level').execute(),
    leases: await db.selectFrom('lease').select(['call_sid', 'ended_at']).execute(),
    reserved: await db.selectFrom('reservation').select(['call_sid', 'held_minor', 'settled_at']).execute(),
    ledger: (await db.selectFrom('ledger').select('call_sid').where('kind', '=', 'charge').execute()).length,
  })
  const first = await queued()
  t.match(await decide(first), { admitted: true, paid_until_seconds: 10 })
  const once = await held()
  t.match(await decide(first), { admitted: true, paid_until_seconds: 10 })
  t.same(await held(), once)
  t.same(await wrongCounters(db), [])
  const other = await queued()
  t.match(await decide(other), { admitted: false, reason: 'concurrency_exceeded' })
  const facts = { ending: ending({ cause: 'api', answered: false }), ended_ms: NOW_MS, pdd_ms: null, media: null }
  await writeCall(db, first.call_sid, [{ step: 'end', facts }])
  t.match(
    await decide(other),
    { admitted: false, reason: 'concurrency_exceeded' },
    'it has ended, though there is room',
  )
  t.notOk(
    (await held()).uses.some(({ live }) => live > 0),
    'and holds nothing',
  )
})

t.test('an admitted call holds money and slots at every level, and releases all of it', async t => {
  const w = await world(t)
  await w.prepaid(1000)
  const subaccount = await w.subaccount()
  const subtrunk = await w.subtrunk()
  const policy = await w.policy()
  const own = await w.policy({}, { type: 'subtrunk', id: subtrunk })
  await w.number('+2342010000002', { route_kind: 'subtrunk', route_id: subtrunk })
  const request = w.request({ service: { type: 'subtrunk', id: subtrunk }, caller: '+2342010000002' })
  const outcome = await takeAdmission(w.state.db, request)
  t.equal(outcome.admitted, true)
  t.equal(outcome.paid_until_seconds, 10)
  t.match(outcome, { trunk_id: w.trunk_id, subtrunk_id: subtrunk, subaccount_id: subaccount, policy_id: own })
  for (const id of [w.trunk_id, 'pbk_1', policy, own, subtrunk, subaccount]) t.equal(outcome.revisions[id], 1, id)
  const uses = await w.state.db.selectFrom('level_use').select(['level', 'subject_id', 'live']).execute()
  t.same(
    new Set(uses.map(use => `${use.level} ${use.subject_id} ${use.live}`)),
    new Set([
      `subtrunk ${subtrunk} 1`,
      `trunk ${w.trunk_id} 1`,
      `policy ${own} 1`,
      `policy ${policy} 1`,
      `subaccount ${subaccount} 1`,
      `project ${w.project_id} 1`,
    ]),
  )
  t.equal(await spentOn(w.state.db, 'policy', policy, DAY), 10)
  t.match(await w.state.db.selectFrom('billing_account').selectAll().execute(), [
    { held_minor: 10, balance_minor: 1000 },
  ])
  const { call_sid } = request
  t.match(await holdersOf(w.state.db, 'policy', policy), [{ call_sid, ended_at: null }])

  const end = { call_sid: request.call_sid, answered: true, duration_seconds: 25, now_ms: NOW_MS + 30_000 }
  t.match(await releaseAdmission(w.state.db, end), { released: 1, price: { amount_minor: 30, billed_seconds: 30 } })
  t.match(await releaseAdmission(w.state.db, end), { released: 0, price: { amount_minor: 30 } }, 'settled once')
  t.same(await wrongCounters(w.state.db), [])
  t.equal((await countLiveCalls(w.state.db, 'trunk', [w.trunk_id])).get(w.trunk_id), 0)
  t.equal(await spentOn(w.state.db, 'project', w.project_id, DAY), 30)
  t.match(await w.state.db.selectFrom('billing_account').selectAll().execute(), [{ held_minor: 0, balance_minor: 970 }])
  t.match(await w.state.db.selectFrom('ledger').selectAll().execute(), [
    { amount_minor: -30, balance_after_minor: 970 },
  ])
  t.equal((await costOfCall(w.state.db, request.call_sid))?.price.sentence, '25 s, billed as 30 s, × ₦0.60/min = ₦0.30')
  t.same(await holdersOf(w.state.db, 'policy', policy), [])
  t.equal((await holdersOf(w.state.db, 'policy', policy, new Date(NOW_MS + 10_000).toISOString())).length, 1)
  t.equal((await holdersOf(w.state.db, 'policy', policy, new Date(NOW_MS + 31_000).toISOString())).length, 0)
})

t.test('an unanswered call costs nothing', async t => {
  const w = await world(t)
  const request = w.request()
  await takeAdmission(w.state.db, request)
  const release = { call_sid: request.call_sid, answered: false, duration_seconds: 0, now_ms: NOW_MS }
  t.match(await releaseAdmission(w.state.db, release), { price: { amount_minor: 0, billed_seconds: 0 } })
  t.equal(await spentOn(w.state.db, 'trunk', w.trunk_id, DAY), 0)
  t.same(await w.state.db.selectFrom('ledger').selectAll().execute(), [])
})

t.test('of 5 N concurrent calls exactly N get the slots, at each level', async t => {
  const w = await world(t)
  const N = 7
  const burst = async (request: Parameters<AdmissionWorld['request']>[0] = {}) => {
    const outcomes = await Promise.all(
      Array.from({ length: 5 * N }, () => takeAdmission(w.state.db, w.request(request))),
    )
    for (const outcome of outcomes) if (!outcome.admitted) t.equal(outcome.reason, 'concurrency_exceeded')
    const leases = await w.state.db.selectFrom('lease').select('call_sid').where('ended_at', 'is', null).execute()
    for (const { call_sid } of leases)
      await releaseAdmission(w.state.db, { call_sid, answered: false, duration_seconds: 0, now_ms: NOW_MS })
    t.same(await wrongCounters(w.state.db), [])
    return admittedOf(outcomes)
  }
  await w.trunk({ concurrency: N })
  t.equal(await burst(), N, 'trunk')
  await w.trunk({ concurrency: 1000 })
  const policy = await w.policy({ concurrency: N })
  t.equal(await burst(), N, 'policy')
  await w.state.db.updateTable('outbound_policy').set({ concurrency: null }).where('id', '=', policy).execute()
  const subaccount = await w.subaccount({ max_concurrent: N })
  t.equal(await burst(), N, 'subaccount')
  await w.state.db.updateTable('subaccount').set({ max_concurrent: null }).where('id', '=', subaccount).execute()
  const subtrunk = await w.subtrunk({ concurrency: N })
  await w.number('+2342010000002', { route_kind: 'subtrunk', route_id: subtrunk })
  t.equal(await burst({ service: { type: 'subtrunk', id: subtrunk }, caller: '+2342010000002' }), N, 'subtrunk')
  await w.state.db
    .insertInto('project_ceiling')
    .values({
      project_id: w.project_id,
      concurrency: N,
      cps: null,
      daily_spend_cap_minor: null,
      velocity_cap_minor: null,
      max_call_duration_seconds: null,
      max_destination_rate_minor: null,
      revision: 1,
      updated_at: new Date(NOW_MS).toISOString(),
    })
    .execute()
  t.equal(await burst(), N, 'project')
})

t.test('a lowered ceiling applies to the next call and does not end running ones', async t => {
  const w = await world(t)
  const running = w.request()
  await takeAdmission(w.state.db, running)
  await takeAdmission(w.state.db, w.request())
  await w.trunk({ concurrency: 1 })
  t.equal(reasonOf(await takeAdmission(w.state.db, w.request())), 'concurrency_exceeded')
  const extension = await extendReservation(w.state.db, { call_sid: running.call_sid, elapsed_seconds: 9 })
  t.equal(extension.exhausted, false)
  const policy = await w.policy({ daily_spend_limit_minor: 5 })
  await extendReservation(w.state.db, { call_sid: running.call_sid, elapsed_seconds: 29 })
  t.equal((await findReservation(w.state.db, running.call_sid))?.paid_until_seconds, 50, 'admission caps still hold')
  t.ok(policy)
})

t.test('admits at most N calls in any sliding second, despite wall clock jumps', ON_SQLITE, async t => {
  const w = await world(t)
  const N = 5
  await w.trunk({ cps: N })
  const admitted: number[] = []
  let store_ms = 50_000_000
  // Arrivals follow a fixed pattern. The wall clock jumps an hour back and forth between them.
  for (let call = 0; call < 400; call++) {
    store_ms += [0, 7, 31, 90, 3, 250, 1][call % 7] ?? 1
    const now_ms = NOW_MS + ((call * 37) % 3) * 3_600_000 - 3_600_000
    const outcome = await takeAdmission(w.state.db, w.request({ store_ms, now_ms }))
    if (outcome.admitted) admitted.push(store_ms)
    else if (outcome.reason !== 'cps_exceeded') t.fail(outcome.reason)
  }
  for (const at of admitted) {
    const within = admitted.filter(other => other > at - 1000 && other <= at).length
    if (within > N) t.fail(`${within} within the second before ${at}`)
  }
  t.ok(admitted.length > 80, `${admitted.length} of 400 got through`)
  const first = admitted[0] ?? 0
  t.equal(admitted.filter(at => at < first + 1000).length, N, 'all N of the first second are admitted')
})

t.test('after a CPS ceiling changes, the calls of the last second decide and are reported', ON_SQLITE, async t => {
  const w = await world(t)
  const admitted: number[] = []
  let store_ms = 50_000_000
  for (let call = 0; call < 300; call++) {
    store_ms += [0, 40, 3, 120, 0, 310, 11][call % 7] ?? 1
    const cps = [5, 2, 9, 1, 7][Math.floor(call / 4) % 5] ?? 5
    if (call % 4 === 0) await w.trunk({ cps })
    const used = admitted.filter(at => at > store_ms - 1000).length
    const outcome = await takeAdmission(w.state.db, w.request({ store_ms }))
    const check = outcome.trace.find(({ check }) => check === 'cps')
    t.match(check, { result: used < cps ? 'passed' : 'refused', limit: cps, used }, `call ${call}`)
    if (outcome.admitted) admitted.push(store_ms)
  }
  const [use] = await w.state.db.selectFrom('level_use').select('takes').where('level', '=', 'trunk').execute()
  t.ok((use?.takes.length ?? 0) <= 13 * 10, 'times that left the second are cut off')
})

t.test('a reboot resets the monotonic clock and locks nobody out', async t => {
  const w = await world(t)
  await w.trunk({ cps: 1 })
  t.equal((await takeAdmission(w.state.db, w.request({ store_ms: 90_000_000 }))).admitted, true)
  t.equal((await takeAdmission(w.state.db, w.request({ store_ms: 5_000 }))).admitted, true)
  t.equal(reasonOf(await takeAdmission(w.state.db, w.request({ store_ms: 5_500 }))), 'cps_exceeded')
})

t.test('the spend of a day stays within its cap with 200 calls that extend concurrently', async t => {
  const w = await world(t)
  const cap = 3_333
  await w.policy({ daily_spend_limit_minor: cap })
  const requests = Array.from({ length: 200 }, () => w.request())
  const outcomes = await Promise.all(requests.map(request => takeAdmission(w.state.db, request)))
  const running = requests.filter((_, index) => outcomes[index]?.admitted)
  t.equal(running.length, 200)
  const ends = new Map<string, number>()
  for (let elapsed = 5; ends.size < running.length; elapsed += 10)
    await Promise.all(
      running.map(async ({ call_sid }) => {
        if (ends.has(call_sid)) return
        const { paid_until_seconds, exhausted } = await extendReservation(w.state.db, {
          call_sid,
          elapsed_seconds: elapsed,
        })
        if (exhausted) ends.set(call_sid, paid_until_seconds ?? 0)
      }),
    )
  let settled = 0
  for (const [call_sid, seconds] of ends) {
    const { price } = await releaseAdmission(w.state.db, {
      call_sid,
      answered: true,
      duration_seconds: seconds,
      now_ms: NOW_MS,
    })
    settled += price?.amount_minor ?? 0
  }
  t.ok(settled <= cap && settled > cap - 10, `${settled} of ${cap}`)
  t.equal(await spentOn(w.state.db, 'project', w.project_id, DAY), settled, 'the window holds the sum of the charges')
  const ledger = await w.state.db.selectFrom('ledger').select('amount_minor').execute()
  t.equal(
    ledger.reduce((sum, row) => sum - row.amount_minor, 0),
    settled,
    'and so has the ledger',
  )
  t.equal(reasonOf(await takeAdmission(w.state.db, w.request())), 'daily_spend_exceeded')
})

t.test('of two calls that race for the last money of a balance, one gets it', async t => {
  const w = await world(t)
  await w.prepaid(15)
  const outcomes = await Promise.all([1, 2].map(() => takeAdmission(w.state.db, w.request())))
  t.equal(admittedOf(outcomes), 1)
  t.ok(outcomes.some(outcome => reasonOf(outcome) === 'balance_exhausted'))
  const won = outcomes.find(({ admitted }) => admitted)
  t.match(won, { max_duration_seconds: 10, max_duration_reason: 'spend_exhausted' })
})

t.test('the day changes at the organization’s midnight, and an earlier day keeps its spend', async t => {
  const w = await world(t)
  await w.policy({ daily_spend_limit_minor: 10 })
  const evening = Date.parse('2026-03-02T22:59:59Z')
  t.equal((await takeAdmission(w.state.db, w.request({ now_ms: evening }))).admitted, true)
  t.equal(reasonOf(await takeAdmission(w.state.db, w.request({ now_ms: evening }))), 'daily_spend_exceeded')
  t.equal((await takeAdmission(w.state.db, w.request({ now_ms: evening + 1000 }))).admitted, true, 'midnight in Lagos')
  t.equal(reasonOf(await takeAdmission(w.state.db, w.request({ now_ms: evening + 2000 }))), 'daily_spend_exceeded')
  t.equal(
    reasonOf(await takeAdmission(w.state.db, w.request({ now_ms: evening }))),
    'daily_spend_exceeded',
    'clock put back',
  )
})

t.test('the velocity cap counts a rolling hour of the store’s clock', async t => {
  const w = await world(t)
  const subtrunk = await w.subtrunk({ velocity_cap_minor: 20 })
  await w.number('+2342010000002', { route_kind: 'subtrunk', route_id: subtrunk })
  const at = (minutes: number, jump = 0) =>
    takeAdmission(
      w.state.db,
      w.request({
        service: { type: 'subtrunk', id: subtrunk },
        caller: '+2342010000002',
        store_ms: 600_000_000 + minutes * 60_000,
        now_ms: NOW_MS + minutes * 60_000 + jump,
      }),
    )
  t.equal((await at(0)).admitted, true)
  t.equal((await at(30)).admitted, true)
  t.equal(reasonOf(await at(59)), 'velocity_exceeded')
  t.equal(reasonOf(await at(59, 3_600_000)), 'velocity_exceeded', 'a wall clock jump of an hour frees nothing')
  t.equal((await at(61)).admitted, true)
  t.equal(reasonOf(await at(62)), 'velocity_exceeded')
})

t.test('a ceiling of null in a row admits, and one of 0 refuses', async t => {
  const w = await world(t)
  await w.policy({ concurrency: 0 })
  t.equal(reasonOf(await takeAdmission(w.state.db, w.request())), 'concurrency_exceeded')
})

t.test('policies, containments and number ownership in the state decide calls', async t => {
  const w = await world(t)
  const policy = await w.policy()
  await w.rule(policy, 'allow', '234')
  await w.rule(policy, 'deny', '234809')
  t.equal((await takeAdmission(w.state.db, w.request())).admitted, true)
  t.equal(reasonOf(await takeAdmission(w.state.db, w.request({ called: '08091234567' }))), 'destination_denied')
  t.equal(reasonOf(await takeAdmission(w.state.db, w.request({ called: '+12025550123' }))), 'destination_denied')
  t.equal(reasonOf(await takeAdmission(w.state.db, w.request({ caller: '+12025550123' }))), 'caller_not_owned')
  t.equal(
    (await takeAdmission(w.state.db, w.request({ caller: '+12025550123', forwarded_caller: true }))).admitted,
    true,
  )
  const row = {
    project_id: w.project_id,
    trunk_id: w.trunk_id,
    reason_category: 'destination_risk' as const,
    reason_detail: 'test',
    rejection_count: 0,
    source_alert_id: null,
    released_at: null,
    released_by: null,
    notified_at: null,
    notified_event: null,
  }
  const hour = (hours: number) => new Date(NOW_MS + hours * 3_600_000).toISOString()
  await w.state.db
    .insertInto('containment')
    .values([
      { ...row, id: 'c1', prefix: '234803', case_ref: 'CASE-1', starts_at: hour(-1), expires_at: hour(1) },
      { ...row, id: 'c2', prefix: '234805', case_ref: 'CASE-2', starts_at: hour(-2), expires_at: hour(-1) },
    ])
    .execute()
  const contained = await takeAdmission(w.state.db, w.request())
  t.equal(reasonOf(contained), 'DESTINATION_CONTAINED')
  t.match(contained.admitted ? '' : contained.sentence, /\+234803, case CASE-1/)
  t.equal((await takeAdmission(w.state.db, w.request({ called: '+2348051234567' }))).admitted, true, 'expired')
  await takeAdmission(w.state.db, w.request(), { dry_run: true })
  const counts = await w.state.db.selectFrom('containment').select(['id', 'rejection_count']).orderBy('id').execute()
  t.same(counts, [
    { id: 'c1', rejection_count: 1 },
    { id: 'c2', rejection_count: 0 },
  ])
})

t.test('a trunk with its own numbers presents only those, a subtrunk only its delegated ones', async t => {
  const w = await world(t)
  await w.number('+2342010000005', { route_kind: 'trunk', route_id: w.trunk_id })
  t.equal((await takeAdmission(w.state.db, w.request({ caller: '02010000005' }))).admitted, true)
  const other = await takeAdmission(w.state.db, w.request())
  t.equal(reasonOf(other), 'caller_not_owned')
  t.match(other.admitted ? '' : other.sentence, /but not of this service/)
  await w.state.db
    .insertInto('trunk_setting')
    .values({ trunk_id: w.trunk_id, country: 'NG', default_caller: '+2342010000005' })
    .execute()
  t.match(await takeAdmission(w.state.db, w.request()), { admitted: true, caller_e164: '+2342010000005' })
  await w.state.db.deleteFrom('trunk_setting').execute()
  const subtrunk = await w.subtrunk()
  const service = { type: 'subtrunk', id: subtrunk } as const
  t.equal(reasonOf(await takeAdmission(w.state.db, w.request({ service }))), 'caller_not_owned')
  await w.state.db
    .insertInto('delegation')
    .values({
      id: 'del_1',
      block_id: 'blk_1',
      subtrunk_id: subtrunk,
      start: '+2342010000000',
      end: '+2342010000003',
      size: 4,
      status: 'applied',
      assigned_at: new Date(NOW_MS).toISOString(),
      assigned_by: 'test',
    })
    .execute()
  t.equal((await takeAdmission(w.state.db, w.request({ service }))).admitted, true)
})

t.test('a trunk’s call with a delegated number belongs to the subtrunk, in both directions', async t => {
  const w = await world(t)
  const subtrunk = await w.subtrunk({ concurrency: 1 })
  await w.number('+2342010000077')
  await w.state.db
    .insertInto('delegation')
    .values({
      id: 'del_1',
      block_id: 'blk_1',
      subtrunk_id: subtrunk,
      start: '+2342010000070',
      end: '+2342010000079',
      size: 10,
      status: 'applied',
      assigned_at: new Date(NOW_MS).toISOString(),
      assigned_by: 'test',
    })
    .execute()
  t.match(await takeAdmission(w.state.db, w.request({ caller: '02010000077' })), {
    admitted: true,
    subtrunk_id: subtrunk,
  })
  t.equal(reasonOf(await takeAdmission(w.state.db, w.request({ caller: '+2342010000077' }))), 'concurrency_exceeded')
  const inbound = { part: 'inbound', called: '+2342010000077', caller: '+2348031234567', offer: null } as const
  t.equal(reasonOf(await takeAdmission(w.state.db, w.request(inbound))), 'concurrency_exceeded')
  t.match(await takeAdmission(w.state.db, w.request()), { admitted: true, subtrunk_id: null }, 'others are the trunk’s')
  await w.state.db.updateTable('subtrunk').set({ status: 'disabled', concurrency: null }).execute()
  t.equal(reasonOf(await takeAdmission(w.state.db, w.request(inbound))), 'subtrunk_disabled')
})

t.test('a dry run decides alike and changes nothing in the state', async t => {
  const w = await world(t)
  await w.trunk({ concurrency: 1 })
  for (let run = 0; run < 3; run++)
    t.equal((await takeAdmission(w.state.db, w.request(), { dry_run: true })).admitted, true)
  for (const table of ['lease', 'level_use', 'reservation', 'spend_day'] as const)
    t.same(await w.state.db.selectFrom(table).selectAll().execute(), [], table)
})

t.test('a sandbox project needs no rate and pays nothing', async t => {
  const w = await world(t)
  await w.state.db.updateTable('project').set({ sandbox: 1 }).execute()
  await w.state.db.deleteFrom('rate').execute()
  const request = w.request({ called: '+12025550123' })
  t.match(await takeAdmission(w.state.db, request), { admitted: true, reserve_minor: 0, paid_until_seconds: null })
  const end = { call_sid: request.call_sid, answered: true, duration_seconds: 600, now_ms: NOW_MS }
  t.match(await releaseAdmission(w.state.db, end), { price: { amount_minor: 0 } })
  t.same(await w.state.db.selectFrom('ledger').selectAll().execute(), [])
})

t.test('the sandbox carrier takes no call of a live project, and a real one none of a sandbox', async t => {
  const w = await world(t)
  const { state } = w
  const now = new Date(NOW_MS).toISOString()
  const service = { type: 'automation', id: w.project_id } as const
  const verdict = async (sandbox: 0 | 1) => {
    await state.db.updateTable('project').set({ sandbox }).execute()
    const outcome = await takeAdmission(state.db, w.request({ service, way: 'create' }), { dry_run: true })
    return outcome.admitted ? 'admitted' : outcome.reason
  }
  await state.db.deleteFrom('carrier').execute()
  await putSandboxCarrier(state, { machine_id: 'mac_1', host: '127.0.0.1', port: 9, now })
  t.same([await verdict(0), await verdict(1)], ['no_route', 'admitted'])
  await putSandboxCarrier(state, { machine_id: 'mac_1', host: '127.0.0.1', port: null, now })
  const target = { sip_uri: 'sip:192.0.2.9', transport: 'udp', priority: 1, weight: 1 } as const
  const route = { prefix: '', priority: 1, cost_minor: 0 }
  await addCarrier(state, { name: 'Telco', codecs: ['PCMU'], sources: [], targets: [target], routes: [route] }, now)
  t.same([await verdict(0), await verdict(1)], ['admitted', 'no_route'])
})

t.test('recording follows the policy, and only with consent', async t => {
  const w = await world(t)
  await w.policy({ recording_mode: 'all', recording_retention_days: 90 })
  t.match(await takeAdmission(w.state.db, w.request()), { recording: { mode: 'all', consented: false } })
  await w.state.db
    .insertInto('recording_consent')
    .values({ project_id: w.project_id, accepted_at: 'x', accepted_by: 'x', terms_version: '1' })
    .execute()
  t.match(await takeAdmission(w.state.db, w.request()), {
    recording: { mode: 'all', consented: true, channels: 2, retention_days: 90 },
  })
})

t.test('releases the slots of a lost node and keeps those of a live one', async t => {
  const w = await world(t)
  const at = (ms: number) => new Date(NOW_MS + ms).toISOString()
  await w.state.db
    .insertInto('node')
    .values([
      { id: 'node_1', kind: 'signaling', pid: 1, started_at: at(-60_000), heartbeat_at: at(-16_000) },
      { id: 'node_2', kind: 'signaling', pid: 2, started_at: at(-60_000), heartbeat_at: at(-2_000) },
    ])
    .execute()
  await takeAdmission(w.state.db, w.request({ node_id: 'node_1' }))
  await takeAdmission(w.state.db, w.request({ node_id: 'node_2' }))
  await takeAdmission(w.state.db, w.request({ node_id: 'node_gone' }))
  t.equal(await sweepLeases(w.state, { now_ms: NOW_MS }), 2)
  t.equal((await countLiveCalls(w.state.db, 'trunk', [w.trunk_id])).get(w.trunk_id), 1)
  t.equal(await spentOn(w.state.db, 'trunk', w.trunk_id, DAY), 10)
  t.same(await wrongCounters(w.state.db), [])
  t.equal(await sweepLeases(w.state, { now_ms: NOW_MS }), 0)
})

t.test('rolls back the take of a transaction that fails later', async t => {
  const w = await world(t)
  await t.rejects(
    w.state.transaction(async trx => {
      t.equal((await takeAdmission(trx, w.request())).admitted, true)
      throw new Error('the disk is full')
    }),
    /disk is full/,
  )
  for (const table of ['lease', 'level_use', 'reservation', 'spend_day'] as const)
    t.same(await w.state.db.selectFrom(table).selectAll().execute(), [], table)
  const request = w.request()
  await takeAdmission(w.state.db, request)
  await t.rejects(takeAdmission(w.state.db, request), { failure: 'unique' }, 'a call takes its slots only once')
  t.same(await wrongCounters(w.state.db), [])
})

t.test(
  'a full disk or a locked database refuses calls and leaves nothing half-written, and admission recovers afterwards',
  { skip: onPostgres() && 'limits the pages of SQLite' },
  async t => {
    const w = await world(t)
    const running = w.request()
    await takeAdmission(w.state.db, running)
    const [pages] = (await w.pragma('page_count')) as { page_count: number }[]
    await w.pragma(`max_page_count = ${pages?.page_count ?? 1}`)
    let refused = 0
    for (let call = 0; call < 400 && refused < 3; call++)
      await takeAdmission(w.state.db, w.request()).catch(error => {
        t.match(error, { code: 'SQLITE_FULL' })
        refused++
      })
    t.equal(refused, 3)
    t.same(await wrongCounters(w.state.db), [])
    await w.pragma('max_page_count = 1000000')
    t.equal((await takeAdmission(w.state.db, w.request())).admitted, true)
    const other = await openState({ data_dir: w.data_dir })
    // Only this one meets its limit: any call may take 50 ms on a busy machine.
    const impatient = await openState({ data_dir: w.data_dir, busy_timeout_ms: 50 })
    await other.transaction(async trx => {
      // The first statement begins the transaction.
      await trx.selectFrom('node').select('id').execute()
      await t.rejects(takeAdmission(impatient.db, w.request()), { code: 'SQLITE_BUSY' })
    })
    await impatient.close()
    await other.close()
    t.equal((await takeAdmission(w.state.db, w.request())).admitted, true)
    t.same(await wrongCounters(w.state.db), [])
  },
)

t.test('deletes leases older than thirty days, but never those of running calls', async t => {
  const w = await world(t)
  const old = w.request({ now_ms: NOW_MS - 40 * 86_400_000 })
  const long = w.request({ now_ms: NOW_MS - 40 * 86_400_000 })
  await takeAdmission(w.state.db, old)
  await takeAdmission(w.state.db, long)
  await releaseAdmission(w.state.db, { call_sid: old.call_sid, answered: false, duration_seconds: 0, now_ms: NOW_MS })
  t.ok((await pruneAdmission(w.state, NOW_MS)) >= 1)
  t.match(await w.state.db.selectFrom('lease').select('call_sid').execute(), [{ call_sid: long.call_sid }])
  t.same(await wrongCounters(w.state.db), [])
})

t.test('over any history counters equal the leases, never fall below zero, and charges add up', async t => {
  const step = fc.oneof(
    { weight: 3, arbitrary: fc.constant({ kind: 'take' as const }) },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant('extend' as const), which: fc.nat(), seconds: fc.nat(300) }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant('end' as const),
        which: fc.nat(),
        seconds: fc.nat(400),
        answered: fc.boolean(),
      }),
    },
  )
  const w = await world(t)
  await w.prepaid(100_000)
  await w.policy({ concurrency: 4, daily_spend_limit_minor: 5_000 })
  const sids: string[] = []
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async steps => {
      for (const each of steps) {
        if (each.kind === 'take') {
          const request = w.request()
          if ((await takeAdmission(w.state.db, request)).admitted) sids.push(request.call_sid)
          continue
        }
        const call_sid = sids[each.which % Math.max(1, sids.length)]
        if (!call_sid) continue
        if (each.kind === 'extend') await extendReservation(w.state.db, { call_sid, elapsed_seconds: each.seconds })
        else
          await releaseAdmission(w.state.db, {
            call_sid,
            answered: each.answered,
            duration_seconds: each.seconds,
            now_ms: NOW_MS,
          })
      }
      const { db } = w.state
      if ((await wrongCounters(db)).length > 0) return false
      const live = await db.selectFrom('level_use').select('live').execute()
      const spent = await db.selectFrom('spend_day').select('spent_minor').execute()
      if ([...live.map(row => row.live), ...spent.map(row => row.spent_minor)].some(value => value < 0)) return false
      const rows = await db.selectFrom('reservation').select(['charge_minor', 'held_minor']).execute()
      const charged = rows.reduce((sum, row) => sum + (row.charge_minor ?? 0), 0)
      const held = rows.reduce((sum, row) => sum + row.held_minor, 0)
      const account = await db.selectFrom('billing_account').selectAll().executeTakeFirstOrThrow()
      const day = await spentOn(db, 'project', w.project_id, DAY)
      return account.balance_minor === 100_000 - charged && account.held_minor === held && day === charged + held
    }),
    // On PostgreSQL each step takes some twenty round trips.
    { numRuns: onPostgres() ? 3 : 40 },
  )
})

t.test(
  'a leg to a SIP URI is admitted like any other: slots, calls per second, rules on its number, and a price',
  async t => {
    const w = await world(t)
    const { db } = w.state
    const service = { type: 'automation', id: w.project_id } as const
    const policy = await w.policy({ cps: 5 }, service)
    await w.rule(policy, 'deny', '23490')
    const leg = (called: string, more: Partial<AdmissionRequest> = {}) =>
      w.request({ way: 'dial_sip', service, called, caller: 'anybody', transport: null, offer: null, ...more })

    const outcomes: AdmissionOutcome[] = []
    for (let count = 0; count < 200; count++)
      outcomes.push(await takeAdmission(db, leg('victim', { store_ms: 50_000 })))
    t.equal(admittedOf(outcomes), 5, 'of 200 within a second')
    t.equal(reasonOf(outcomes[199] as AdmissionOutcome), 'cps_exceeded')
    t.equal((await db.selectFrom('lease').selectAll().execute()).length, 5, 'each holds a lease')

    const at = (second: number) => ({ store_ms: 60_000 + second * 2000 })
    const denied = ['+2349012345678', '002349012345678', '09012345678', '+234-901-234-5678']
    for (const [second, number] of denied.entries())
      t.equal(reasonOf(await takeAdmission(db, leg(number, at(second)))), 'destination_denied', number)
    for (const [second, user] of ['agent', '', '1001', '+2348012345678'].entries())
      t.ok((await takeAdmission(db, leg(user, at(10 + second)))).admitted, user)
    t.ok((await takeAdmission(db, leg('', { way: 'dial_client', ...at(20) }))).admitted, 'a client')

    const [known] = await db.selectFrom('rate').selectAll().limit(1).execute()
    if (!known) throw new Error('no rate')
    await db
      .insertInto('rate')
      .values({ ...known, id: 'rat_sip', prefix: 'sip', label: 'SIP legs' })
      .execute()
    const priced = leg('agent', at(30))
    t.match(await takeAdmission(db, priced), { price: { rate_prefix: 'sip', label: 'SIP legs' } })
    const ended = { call_sid: priced.call_sid, answered: true, duration_seconds: 60, now_ms: NOW_MS + 60_000 }
    const { price } = await releaseAdmission(db, ended)
    t.ok((price?.amount_minor ?? 0) > 0, 'the SIP class has a price')
    t.equal((await takeAdmission(db, leg('', { way: 'dial_client', ...at(40) }))).price, null, 'a client costs nothing')
    t.notMatch(await takeAdmission(db, w.request({ store_ms: 200_000 })), { price: { rate_prefix: 'sip' } })

    await db.updateTable('project').set({ status: 'disabled' }).execute()
    t.equal(reasonOf(await takeAdmission(db, leg('agent', at(50)))), 'project_disabled')
  },
)

/** Puts an inbound book in force: ₦3.00 a minute, billed by whole minutes. */
async function inboundBook(w: AdmissionWorld, prefix = '234'): Promise<void> {
  const [book] = await w.state.db.selectFrom('price_book').selectAll().execute()
  const [rate] = await w.state.db.selectFrom('rate').selectAll().execute()
  if (!book || !rate) throw new Error('no price book')
  const tariff = { rate_micro: 300_000_000, increment_initial_seconds: 60, increment_additional_seconds: 60 }
  await w.state.db
    .insertInto('price_book')
    .values({ ...book, id: 'pbk_in', name: 'Inbound', direction: 'inbound' })
    .execute()
  await w.state.db
    .insertInto('rate')
    .values({ ...rate, ...tariff, id: 'rat_in', price_book_id: 'pbk_in', prefix, label: 'Received' })
    .execute()
}

const brought = (w: AdmissionWorld): AdmissionRequest =>
  w.request({ part: 'inbound', from_carrier: true, called: '+2342010000001', caller: '+2348031234567' })

t.test('an inbound call that a carrier brings is charged by the inbound book', async t => {
  const w = await world(t)
  await inboundBook(w)
  await w.prepaid(1000)
  const account = () => w.state.db.selectFrom('billing_account').selectAll().executeTakeFirstOrThrow()
  const request = brought(w)
  const outcome = await takeAdmission(w.state.db, request)
  t.match(outcome, { admitted: true, max_duration_seconds: 180, max_duration_reason: 'spend_exhausted' })
  t.match(outcome, { paid_until_seconds: 60, price: { price_book_id: 'pbk_in', rate_minor: 300 } })
  t.match(await account(), { balance_minor: 1000, held_minor: 300 })
  t.match(await extendReservation(w.state.db, { call_sid: request.call_sid, elapsed_seconds: 50 }), {
    paid_until_seconds: 120,
  })
  t.match(await account(), { balance_minor: 1000, held_minor: 600 })
  const end = { call_sid: request.call_sid, answered: true, duration_seconds: 61, now_ms: NOW_MS + 61_000 }
  const price = { amount_minor: 600, billed_seconds: 120, currency: 'NGN', direction: 'inbound' as const }
  t.same(await releaseAdmission(w.state.db, end), { released: 1, price })
  t.same(await releaseAdmission(w.state.db, end), { released: 0, price }, 'settled once')
  const sentence = '61 s, billed as 120 s, × ₦3.00/min = ₦6.00'
  t.same((await costOfCall(w.state.db, request.call_sid))?.price, { ...price, sentence })
  t.match(await account(), { balance_minor: 400, held_minor: 0 })
  const lines = () => w.state.db.selectFrom('ledger').select(['kind', 'amount_minor', 'balance_after_minor']).execute()
  t.same(await lines(), [{ kind: 'charge', amount_minor: -600, balance_after_minor: 400 }])
  t.equal(await spentOn(w.state.db, 'project', w.project_id, DAY), 600)

  const missed = brought(w)
  t.ok((await takeAdmission(w.state.db, missed)).admitted)
  await releaseAdmission(w.state.db, { ...end, call_sid: missed.call_sid, answered: false, duration_seconds: 0 })
  t.match(await account(), { balance_minor: 400, held_minor: 0 }, 'a call that nobody answers costs nothing')
  const last = brought(w)
  t.ok((await takeAdmission(w.state.db, last)).admitted)
  t.equal(reasonOf(await takeAdmission(w.state.db, brought(w))), 'balance_exhausted', '100 are left')
  await releaseAdmission(w.state.db, { ...end, call_sid: last.call_sid, duration_seconds: 60 })
  t.match(await account(), { balance_minor: 100, held_minor: 0 })
  t.equal((await lines()).length, 2)
  t.same(await wrongCounters(w.state.db), [])
})

t.test('an inbound call costs nothing when it stays on the platform, without a price, and in the sandbox', async t => {
  const w = await world(t)
  await inboundBook(w, '234201')
  await w.prepaid(1000)
  const end = { answered: true, duration_seconds: 100, now_ms: NOW_MS + 100_000 }
  const balance = async () => {
    const { balance_minor, held_minor } = await w.state.db
      .selectFrom('billing_account')
      .selectAll()
      .executeTakeFirstOrThrow()
    return [balance_minor, held_minor]
  }
  const run = async (request: AdmissionRequest) => {
    t.match(await takeAdmission(w.state.db, request), { admitted: true, paid_until_seconds: null })
    return (await releaseAdmission(w.state.db, { ...end, call_sid: request.call_sid })).price
  }
  t.equal(await run({ ...brought(w), from_carrier: false }), null, 'from another trunk of the platform')
  t.equal(await run(w.request({ part: 'on_net', called: '+2342010000001' })), null, 'the caller of such a call')
  t.equal(await run({ ...brought(w), called: '+2347001234567' }), null, 'a number that the book does not price')
  await w.state.db.updateTable('project').set({ sandbox: 1 }).execute()
  t.match(await run(brought(w)), { amount_minor: 0, billed_seconds: 120 }, 'in the sandbox')
  t.same(await balance(), [1000, 0])
  t.same(await w.state.db.selectFrom('ledger').selectAll().execute(), [])
})

t.test('an ended call tells its price, and is set against what its carrier takes', async t => {
  const w = await world(t)
  const { db } = w.state
  await w.prepaid(10_000)
  const [route] = [{ id: 'cro_1', carrier_id: 'car_1', priority: 1 }]
  await db
    .insertInto('carrier_route')
    .values([
      { ...route, id: 'cro_any', prefix: '', cost_minor: 500 },
      { ...route, prefix: '234', cost_minor: 40 },
    ])
    .execute()
  await db
    .insertInto('webhook_endpoint')
    .values({
      ...{ id: 'whe_1', project_id: w.project_id, url: 'https://app.example.com', description: null, enabled: 1 },
      ...{ event_kinds: '["call.ended"]', secret_sealed: 'x', revision: 1, deleted_at: null },
      ...{ created_at: new Date(NOW_MS).toISOString(), updated_at: new Date(NOW_MS).toISOString() },
    } as never)
    .execute()
  const request = w.request()
  const sid = request.call_sid
  const at = new Date(NOW_MS).toISOString()
  await insertCall(
    db,
    {
      ...{ sid, project_id: w.project_id, origin: 'trunk', direction: 'outbound', status: 'queued' },
      ...{ from_number: request.caller, to_number: request.called, trunk_id: w.trunk_id, request: '{}', queued_at: at },
    },
    NOW_MS,
  )
  t.ok((await takeAdmission(db, request)).admitted)
  const facts = { ending: ending({ cause: 'caller_hung_up', answered: true }), pdd_ms: null, media: null }
  const end = { step: 'end' as const, facts: { ...facts, ended_ms: NOW_MS + 25_000, duration_seconds: 25 } }
  await writeCall(db, sid, [
    { step: 'initiated', at_ms: NOW_MS, changes: { carrier_id: 'car_1' } },
    { step: 'answered', at_ms: NOW_MS },
    end,
  ])
  await writeCall(db, sid, [end])
  const [told, ...others] = await db.selectFrom('webhook_delivery').select('payload').execute()
  t.same(others, [])
  t.match(JSON.parse(told?.payload ?? '{}').data, {
    ...{ sid, trunk_id: w.trunk_id, reason: null, status: 'completed', ended_by: 'caller', duration_seconds: 25 },
    price: {
      amount_minor: 30,
      billed_seconds: 30,
      currency: 'NGN',
      sentence: '25 s, billed as 30 s, × ₦0.60/min = ₦0.30',
    },
  })
  const placed = await db.selectFrom('reservation').select('call_position').where('call_sid', '=', sid).execute()
  t.same(placed, await db.selectFrom('call').select('position as call_position').where('sid', '=', sid).execute())
  // 25 s at 40 a minute are 16.67.
  const figures = { calls: 1, charge_minor: 30, cost_minor: 17 }
  const by = (group: Parameters<typeof marginsBy>[1]) => marginsBy(db, group, { from: DAY, to: DAY }, 10)
  t.same(await by('call'), [{ key: sid, ...figures }])
  t.same(await by('carrier'), [{ key: 'car_1', ...figures }])
  t.same(await by('day'), [{ key: DAY, ...figures }])
  t.same(await db.selectFrom('ledger').select('amount_minor').execute(), [{ amount_minor: -30 }], 'charged once')
})

t.test('a call costs what the cost book of its carrier said when it began, whatever customers pay', async t => {
  const w = await world(t)
  const { state } = w
  await w.prepaid(10_000)
  await inboundBook(w)
  const tariff = { rate_unit: 'minute', increment_initial_seconds: 60, increment_additional_seconds: 60 } as const
  const book = (carrier_id: string, direction: 'outbound' | 'inbound', rate: number, begins_ms: number) => {
    const at = new Date(begins_ms).toISOString()
    const row = { project_id: null, carrier_id, name: 'Costs', direction, currency: 'NGN' }
    const rates = [
      { ...tariff, prefix: '234', label: 'Nigeria', rate_micro: rate * 1_000_000 },
      { ...tariff, prefix: '2348', label: 'Mobile', rate_micro: rate * 2_000_000 },
    ]
    return importPriceBook(state, { ...row, effective_from: at, created_at: at }, rates)
  }
  await book('car_1', 'outbound', 7, NOW_MS - 2000)
  await book('car_1', 'outbound', 10, NOW_MS - 1000)
  await book('car_1', 'outbound', 99, NOW_MS + 10_000)
  await book('car_1', 'inbound', 3, NOW_MS - 1000)
  await book('car_2', 'outbound', 500, NOW_MS - 1000)
  const figures = async (request: AdmissionRequest, carrier_id: string) => {
    t.ok((await takeAdmission(state.db, request)).admitted)
    const { call_sid } = request
    const end = { call_sid, carrier_id, answered: true, duration_seconds: 25, now_ms: NOW_MS + 25_000 }
    await releaseAdmission(state.db, end)
    const { charge_minor, cost_minor } = await state.db
      .selectFrom('reservation')
      .select(['charge_minor', 'cost_minor'])
      .where('call_sid', '=', call_sid)
      .executeTakeFirstOrThrow()
    return [charge_minor, cost_minor]
  }
  t.same(await figures(w.request(), 'car_1'), [30, 20], 'one minute of the longest prefix')
  t.same(await figures(w.request(), 'car_2'), [30, 1000], 'each carrier has its own')
  t.same(await figures(w.request(), 'car_3'), [30, null], 'a carrier without a book or a route')
  t.same(await figures(brought(w), 'car_1'), [300, 3], 'a call that it brings')
  t.same(await figures(brought(w), 'car_2'), [300, null])
  const [least] = await marginsBy(state.db, 'carrier', { from: DAY, to: DAY }, 10)
  t.same(least, { key: 'car_2', calls: 2, charge_minor: 330, cost_minor: 1000 }, 'the loss stands first')
})

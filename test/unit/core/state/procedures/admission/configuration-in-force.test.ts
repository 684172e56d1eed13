import { readFileSync } from 'node:fs'
import { destinationCountries, findCountry } from '../../../../../../core/domain/numbers/countries.ts'
import { readRule } from '../../../../../../core/domain/policies/rules.ts'
import { readRates } from '../../../../../../core/domain/rating/index.ts'
import { breathe } from '../../../../../../core/runtime/breathe.ts'
import {
  decideRelease,
  findContainment,
  insertContainment,
  listContainments,
  listReleaseRequests,
  requestRelease,
} from '../../../../../../core/state/alerts/containments.ts'
import { busiestDay } from '../../../../../../core/state/calls/counters.ts'
import { releaseAdmission, takeAdmission } from '../../../../../../core/state/calls/leases.ts'
import { insertCall } from '../../../../../../core/state/calls/running-calls.ts'
import {
  archivePolicy,
  changeRules,
  findPolicy,
  listRules,
  savePolicy,
  summarizeRules,
} from '../../../../../../core/state/configuration/policies.ts'
import {
  attachPolicy,
  countAttachments,
  detachPolicy,
  findAttachment,
} from '../../../../../../core/state/configuration/policy-attachments.ts'
import {
  findCeilings,
  listShortCodes,
  putCeilings,
  putShortCode,
  putTrunkSetting,
} from '../../../../../../core/state/configuration/settings.ts'
import {
  blockSize,
  delegate,
  insertBlock,
  listDelegations,
} from '../../../../../../core/state/configuration/subtrunks.ts'
import {
  adjustBalance,
  effectivePriceBook,
  listCoverage,
  listLedger,
  lookupRate,
  putBillingAccount,
} from '../../../../../../core/state/money/rates.ts'
import { peakOf, refusalsOf, usageOf } from '../../../../../../core/state/people/subaccounts.ts'
import { type AdmissionWorld, admissionWorld, NOW_MS } from '../../../../../support/admission-world.ts'
import t, { type Test } from '../../../../../support/harness/index.ts'
import { fc } from '../../../../../support/properties.ts'
import { importPriceBook } from '../../../../../support/rated.ts'

const NOW = new Date(NOW_MS).toISOString()
const later = (hours: number): string => new Date(NOW_MS + hours * 3_600_000).toISOString()

async function world(test: Test): Promise<AdmissionWorld> {
  const made = await admissionWorld()
  test.teardown(() => made.close())
  return made
}

t.test('a country has its calling code, its continent, and whether it shares the code', async t => {
  t.ok(destinationCountries().length > 240)
  t.match(findCountry('ng'), { calling_code: '234', continent: 'africa', shared_code: false, name: 'Nigeria' })
  t.match(findCountry('US'), { calling_code: '1', continent: 'americas', shared_code: true })
  t.match(findCountry('FJ'), { continent: 'oceania' })
  t.match(findCountry('DE'), { continent: 'europe', shared_code: false })
  t.match(findCountry('IN'), { continent: 'asia' })
  t.equal(findCountry('XX'), undefined)
})

t.test('reads rules from countries and prefixes, and refuses invalid values by name', async t => {
  const read = (kind: 'country' | 'prefix', value: string) => readRule({ kind, op: 'allow', value, label: null })
  t.match(read('country', 'ng'), { rule: { value: 'NG', prefix: '234', label: 'Nigeria' } })
  t.match(read('prefix', '+234 803'), { rule: { value: '+234803', prefix: '234803' } })
  t.match(read('prefix', '00234'), { rule: { prefix: '234' } })
  t.match(read('country', 'GB'), { refused: 'country_code_shared', facts: { value: 'GB' } })
  t.match(read('country', 'ZZ'), { refused: 'validation_failed' })
  t.match(read('prefix', '12a'), { refused: 'validation_failed', facts: { value: /12a/ } })
})

t.test('a changed rule, ceiling or attachment applies to the next call', async t => {
  const w = await world(t)
  const { db } = w.state
  const id = await w.policy({}, null)
  const policy = await findPolicy(db, w.project_id, id)
  if (!policy) throw new Error('the policy is gone')
  const admitted = async () => {
    const outcome = await takeAdmission(db, w.request(), { dry_run: true })
    return outcome.admitted ? 'admitted' : outcome.reason
  }
  const change = (op: 'allow' | 'deny' | 'remove', value: string) =>
    w.state.transaction(async trx => {
      const reading = readRule({ kind: 'prefix', op, value, label: null })
      if ('rule' in reading) await changeRules(trx, id, [reading.rule], NOW)
    })
  await change('deny', '+23480')
  t.equal(await admitted(), 'admitted', 'not attached yet')
  await w.state.transaction(trx => attachPolicy(trx, policy, { type: 'trunk', id: w.trunk_id }, NOW))
  t.equal(await admitted(), 'destination_denied')
  await change('allow', '+23480')
  t.equal(await admitted(), 'admitted', 'a value’s rule is replaced')
  t.match(await summarizeRules(db, id), { allowed_prefixes: 1, denied_prefixes: 0 })
  await change('remove', '+23480')
  t.same(await listRules(db, id), [])
  const saved = await w.state.transaction(trx => savePolicy(trx, policy, { max_destination_rate_minor: 10 }, NOW))
  t.equal(saved.revision, 2)
  t.equal(await admitted(), 'rate_above_ceiling')
  t.same(await countAttachments(db, [id]), new Map([[id, { attached: 1, applied: 0 }]]), 'no node has it yet')
  t.match(await findAttachment(db, 'trunk', w.trunk_id), { policy_id: id })
  t.equal(await w.state.transaction(trx => detachPolicy(trx, { type: 'trunk', id: w.trunk_id })), true)
  t.equal(await admitted(), 'admitted')
  await w.state.transaction(trx => archivePolicy(trx, saved, NOW))
  t.equal(await findPolicy(db, w.project_id, id), undefined)
})

t.test('a project’s default policy applies to services without one', async t => {
  const w = await world(t)
  await w.policy({ system_default: 1, concurrency: 0 }, null)
  t.match(await takeAdmission(w.state.db, w.request(), { dry_run: true }), { reason: 'concurrency_exceeded' })
  await w.policy()
  t.match(await takeAdmission(w.state.db, w.request(), { dry_run: true }), { admitted: true })
})

t.test('closes a containment once, releases it by decision, and allows one pending request', async t => {
  const w = await world(t)
  const { db } = w.state
  const made = await w.state.transaction(trx =>
    insertContainment(trx, {
      project_id: w.project_id,
      trunk_id: null,
      prefix: '23480',
      case_ref: 'CASE-9',
      reason_category: 'destination_risk',
      reason_detail: 'many short calls',
      source_alert_id: null,
      starts_at: NOW,
      expires_at: later(1),
    }),
  )
  const decide = () => takeAdmission(db, w.request(), { dry_run: true })
  t.match(await decide(), { reason: 'DESTINATION_CONTAINED' })
  const before = await takeAdmission(db, w.request({ now_ms: NOW_MS - 1000 }), { dry_run: true })
  t.match(before, { reason: 'DESTINATION_CONTAINED' }, 'a call that came before it and is decided after it')
  t.equal(await findContainment(db, 'prj_other', made.id), undefined)
  t.equal((await listContainments(db, w.project_id, { trunk_id: w.trunk_id, since: NOW })).length, 1)
  t.equal((await listContainments(db, w.project_id, { since: later(2) })).length, 0)
  const ask = () =>
    w.state.transaction(trx =>
      requestRelease(trx, { containment_id: made.id, note: 'ours', requested_at: NOW, requested_by: 'mem_1' }),
    )
  const request = await ask()
  t.equal(await ask(), undefined)
  const decision = { decision_at: NOW, decision_by: 'operator', decision_reason: null }
  await w.state.transaction(trx => decideRelease(trx, request?.id ?? '', { state: 'approved', ...decision }))
  t.match((await listReleaseRequests(db, [made.id])).get(made.id), { state: 'approved' })
  t.match(await decide(), { admitted: true })
})

t.test('reads a whole rate list and reports every problem with its line', async t => {
  const good = await readRates(readFileSync('fixtures/rates/standard.csv', 'utf8'), breathe)
  t.same(good.problems, [])
  t.same(
    good.rates.map(({ prefix, rate_micro }) => [prefix, rate_micro]),
    [
      ['234', 900_000_000],
      ['234803', 11_500_000],
      ['1', 1_200_000_000],
      ['44', 1_450_250_000],
      ['881', 45_000_000_000],
    ],
  )
  t.equal(good.rates[1]?.label, 'Nigeria, mobile (MTN)')
  const bad = await readRates(readFileSync('fixtures/rates/broken.csv', 'utf8'), breathe)
  t.equal(bad.rates.length, 1)
  t.same(
    bad.problems.map(({ line }) => line),
    [3, 4, 5, 6, 7, 8],
  )
  t.match((await readRates('a,b\n', breathe)).problems, [{ line: 1 }])
  t.match((await readRates('', breathe)).problems, [{ line: 1 }])
  const header = '\ufeff"Label", PREFIX ,rate,unit,initial,additional,note'
  const rows = ['"Lagos, ""the "" island",234,1,minute,1,1', '', 'Abuja, 2349 ,2,second,0,6,x', ',1,1,minute,1,1']
  const quoted = await readRates([header, ...rows, 'a "b" c,2,1,minute,1,1', 'Jos,"23473'].join('\r\n'), breathe)
  t.match(
    quoted.rates.map(({ prefix, label }) => [prefix, label]),
    [
      ['234', 'Lagos, "the " island'],
      ['2349', 'Abuja'],
    ],
  )
  t.match(quoted.problems, [
    { line: 5, message: /label/ },
    { line: 6, message: /^this is not CSV: .* quote / },
  ])
})

t.test('a price book is in force from its date, the project’s own before the operator’s', async t => {
  const w = await world(t)
  const { rates } = await readRates(readFileSync('fixtures/rates/standard.csv', 'utf8'), breathe)
  const book = { direction: 'outbound' as const, currency: 'NGN', created_at: NOW }
  const own = await importPriceBook(
    w.state,
    { ...book, project_id: w.project_id, name: 'Own', effective_from: later(1) },
    rates,
  )
  const { db } = w.state
  t.match(await effectivePriceBook(db, w.project_id, 'outbound', NOW), { id: 'pbk_1' })
  t.match(await effectivePriceBook(db, w.project_id, 'outbound', later(1)), { id: own.id, revision: 1 })
  t.match(await lookupRate(db, own.id, '2348031234567'), { prefix: '234803' })
  t.equal(await lookupRate(db, own.id, '4912345678'), undefined)
  t.equal((await listCoverage(db, w.project_id, own)).length, 5, 'a target of the trunk takes every number')
  await db.updateTable('termination_target').set({ enabled: 0 }).execute()
  t.same(await listCoverage(db, w.project_id, own), [], 'no route, no coverage')
  await db
    .insertInto('carrier')
    .values({ id: 'car_1', name: 'C', codecs: '[]', enabled: 1, sandbox: 0, revision: 1, created_at: NOW })
    .execute()
  await db
    .insertInto('carrier_route')
    .values({ id: 'r', carrier_id: 'car_1', prefix: '2348', priority: 1, cost_minor: 1 })
    .execute()
  t.same(
    (await listCoverage(db, w.project_id, own)).map(({ prefix }) => prefix),
    ['234', '234803'],
    'what holds the route and what lies within it',
  )
  const hour = { now_ms: NOW_MS + 3_600_000 }
  await db.updateTable('termination_target').set({ enabled: 1 }).execute()
  t.match(await takeAdmission(db, w.request({ ...hour, called: '08041234567' })), { reserve_minor: 15 })
  t.match(await takeAdmission(db, w.request(hour)), {
    reserve_minor: 12,
    price: { rate_unit: 'second', rate_minor: 12 },
  })
})

t.test('every change of a balance has a ledger line', async t => {
  const w = await world(t)
  const { db } = w.state
  await w.state.transaction(async trx => {
    await putBillingAccount(trx, { id: 'bil_1', name: 'Payer', currency: 'NGN', prepaid: 1, credit_minor: 0 })
    await adjustBalance(trx, { id: 'bil_1', kind: 'top_up', amount_minor: 50, note: 'cash', now: NOW })
  })
  const request = w.request()
  t.match(await takeAdmission(db, request), { admitted: true, max_duration_seconds: 50 })
  await releaseAdmission(db, { call_sid: request.call_sid, answered: true, duration_seconds: 12, now_ms: NOW_MS })
  t.match(await listLedger(db, 'bil_1', { limit: 10 }), [
    { kind: 'charge', amount_minor: -20, balance_after_minor: 30, call_sid: request.call_sid },
    { kind: 'top_up', amount_minor: 50, balance_after_minor: 50 },
  ])
})

t.test('reports usage, refusals, peak and busiest day from the recorded calls', async t => {
  const w = await world(t)
  const { db } = w.state
  const subaccount = await w.subaccount({ max_concurrent: 2 })
  const requests = [w.request(), w.request(), w.request()]
  for (const request of requests) await takeAdmission(db, request)
  await takeAdmission(db, w.request({ called: '12' }))
  for (const { call_sid } of requests.slice(0, 2))
    await releaseAdmission(db, { call_sid, answered: true, duration_seconds: 20, now_ms: NOW_MS + 20_000 })
  t.same(await refusalsOf(db, 'subaccount', subaccount, '2026-03-02'), [
    { reason: 'concurrency_exceeded', count: 1 },
    { reason: 'number_invalid', count: 1 },
  ])
  t.match(await usageOf(db, 'subaccount', subaccount, NOW), { refused_calls: 2 })
  t.match(await peakOf(db, 'subaccount', subaccount, NOW), { peak_concurrent: 2, peak_concurrent_at: NOW })
  t.match(await busiestDay(db, 'subaccount', subaccount, '2026-03-01'), { date: '2026-03-02', settled_spend_minor: 40 })
})

t.test('a call that took two routes of a subaccount is one call, with one price', async t => {
  const w = await world(t)
  const { db } = w.state
  const subaccount = await w.subaccount()
  const request = w.request()
  const { call_sid, caller, called, project_id } = request
  const call = { sid: call_sid, origin: 'trunk', direction: 'outbound', status: 'queued', request: '{}' } as const
  const parties = { from_number: caller, to_number: called, trunk_id: w.trunk_id, queued_at: NOW, project_id }
  await insertCall(db, { ...call, ...parties }, NOW_MS)
  await takeAdmission(db, request)
  await takeAdmission(db, { ...request, part: 'inbound', way: null, second_route: true })
  const parts = await db.selectFrom('lease').select('part').where('subaccount_id', '=', subaccount).execute()
  t.same(new Set(parts.map(({ part }) => part)), new Set(['outbound', 'fallback']))
  const usage = () => usageOf(db, 'subaccount', subaccount, NOW)
  t.match(await usage(), { call_attempts: 1, answered_calls: 0, pending_spend_minor: 10 })
  await db.updateTable('call').set({ answered_at: NOW }).where('sid', '=', call_sid).execute()
  await releaseAdmission(db, { call_sid, answered: true, duration_seconds: 20, now_ms: NOW_MS + 20_000 })
  t.match(await usage(), { call_attempts: 1, answered_calls: 1, pending_spend_minor: 0, settled_spend_minor: 20 })
})

t.test('the peak is the most slots at a time, and a slot that is free at a moment can be taken at it', async t => {
  const w = await world(t)
  const { db } = w.state
  const subaccount = await w.subaccount()
  const at = (minutes: number): string => new Date(NOW_MS + minutes * 60_000).toISOString()
  const peak = async (window_from: number) => {
    const { peak_concurrent, peak_concurrent_at } = await peakOf(db, 'subaccount', subaccount, at(window_from))
    return [peak_concurrent, peak_concurrent_at]
  }
  t.same(await peak(0), [0, null])
  const times: [number, number | null][] = [
    [0, 9],
    [1, 2],
    [2, 3],
    [4, 6],
    [4, 5],
    [5, 6],
    [7, null],
    [8, null],
  ]
  for (const [begun, ended] of times) {
    const { call_sid } = w.request()
    const of = { call_sid, part: 'outbound', node_id: 'node_1', project_id: w.project_id } as const
    const lease = { ...of, subaccount_id: subaccount, begun_at: at(begun) }
    await db
      .insertInto('lease')
      .values({ ...lease, ended_at: ended === null ? null : at(ended) })
      .execute()
  }
  t.same(await peak(0), [3, at(4)], 'the first of two')
  t.same(await peak(7), [3, at(8)])
  t.same(await peak(60), [2, at(8)], 'slots that are held since before')
})

t.test('delegates a block once, and calls with its numbers find the subtrunk', async t => {
  const w = await world(t)
  t.equal(blockSize('+2342010000000', '+2342010000099'), 100)
  t.equal(blockSize('+2342010000099', '+2342010000000'), null)
  t.equal(blockSize('+23420', '+2342010000099'), null)
  const subtrunk = await w.subtrunk()
  const block = await w.state.transaction(trx =>
    insertBlock(trx, {
      project_id: w.project_id,
      start: '+2342010000000',
      end: '+2342010000099',
      size: 100,
      created_at: NOW,
    }),
  )
  const give = (start: string, end: string) =>
    w.state.transaction(trx =>
      delegate(trx, { block_id: block.id, subtrunk_id: subtrunk, start, end, assigned_at: NOW, assigned_by: 'test' }),
    )
  t.match(await give('+2342010000000', '+2342010000049'), { size: 50, status: 'pending' })
  t.equal(await give('+2342010000049', '+2342010000060'), undefined)
  t.match(await give('+2342010000050', '+2342010000060'), { size: 11 })
  t.strictSame(
    (await listDelegations(w.state.db, subtrunk)).map(({ start, end }) => [start, end]),
    [
      ['+2342010000000', '+2342010000049'],
      ['+2342010000050', '+2342010000060'],
    ],
  )
})

t.test('project ceilings, number formats and short codes apply from the next call on', async t => {
  const w = await world(t)
  const { db } = w.state
  const decide = (changes = {}) => takeAdmission(db, w.request(changes), { dry_run: true })
  const put = (changes: Parameters<typeof putCeilings>[2]) =>
    w.state.transaction(trx => putCeilings(trx, w.project_id, changes, NOW))
  await put({ concurrency: 0, cps: 5 })
  t.match(await decide(), { admitted: false, reason: 'concurrency_exceeded', sentence: /project "Project" is 0/ })
  await put({ concurrency: null })
  t.match(await decide(), { admitted: true })
  t.match(await findCeilings(db, w.project_id), { concurrency: null, cps: 5, revision: 2 })
  await put({ max_destination_rate_minor: 59 })
  t.match(await decide(), { reason: 'rate_above_ceiling' })
  await put({ max_destination_rate_minor: 60 })

  t.match(await decide({ called: '020 7946 0123' }), { called: { country: 'NG' } })
  await w.state.transaction(trx => putTrunkSetting(trx, { trunk_id: w.trunk_id, country: 'GB', default_caller: null }))
  t.match(await decide({ called: '020 7946 0123' }), { called: { e164: '+442079460123' }, reason: 'no_rate' })

  const code = { project_id: null, code: '112' }
  t.match(await decide({ called: '112' }), { reason: 'number_invalid' })
  await w.state.transaction(trx => putShortCode(trx, { ...code, sends_to: '+2342010000112' }))
  t.match(await decide({ called: '112' }), { admitted: true, called: { e164: '+2342010000112' } })
  const own = { ...code, project_id: w.project_id }
  await w.state.transaction(trx => putShortCode(trx, { ...own, sends_to: '+2342010000113' }))
  t.match(await decide({ called: '112' }), { called: { e164: '+2342010000113' } }, 'the project’s own short code')
  await w.state.transaction(trx => putShortCode(trx, { ...own, sends_to: null }))
  t.equal((await listShortCodes(db)).length, 1)
})

t.test('of price books with one time the later import prices calls and is shown', async t => {
  const w = await world(t)
  const book = { project_id: w.project_id, name: 'Own', direction: 'outbound', currency: 'NGN' } as const
  const at = { effective_from: NOW, created_at: NOW }
  const increments = { increment_initial_seconds: 1, increment_additional_seconds: 1 }
  const rate = { prefix: '234', label: 'Nigeria', rate_micro: 1_000_000, rate_unit: 'minute' as const, ...increments }
  for (let imports = 0; imports < 8; imports++) {
    const { id } = await importPriceBook(w.state, { ...book, ...at }, [rate])
    const { price } = await takeAdmission(w.state.db, w.request(), { dry_run: true })
    t.equal(price?.price_book_id, id)
    t.match(await effectivePriceBook(w.state.db, w.project_id, 'outbound', NOW), { id })
  }
})

t.test('a call gets the rate of the longest prefix, whatever other prefixes exist', async t => {
  const w = await world(t)
  const digits = fc.array(fc.constantFrom('0', '1', '2', '8'), { maxLength: 4 }).map(list => list.join(''))
  const book = { project_id: w.project_id, name: 'Own', direction: 'outbound', currency: 'NGN' } as const
  let taken = 0
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(digits, { minLength: 1, maxLength: 12 }), digits, async (tails, called) => {
      const prefixes = tails.map(tail => `23480${tail}`)
      const at = new Date(NOW_MS - 60_000 + taken++).toISOString()
      const increments = { increment_initial_seconds: 1, increment_additional_seconds: 1 }
      const rate = { rate_micro: 1_000_000, rate_unit: 'minute' as const, ...increments }
      const rates = prefixes.map(prefix => ({ ...rate, prefix, label: prefix }))
      await importPriceBook(w.state, { ...book, effective_from: at, created_at: at }, rates)
      const number = `23480${called}31234567`.slice(0, 13)
      const outcome = await takeAdmission(w.state.db, w.request({ called: `+${number}` }), { dry_run: true })
      const longest = prefixes.filter(prefix => number.startsWith(prefix)).sort((a, b) => b.length - a.length)[0]
      t.equal(outcome.price?.rate_prefix, longest, `${number} of ${prefixes}`)
    }),
    { numRuns: 60 },
  )
})

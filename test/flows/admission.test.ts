import { countLiveCalls, wrongCounters } from '../../core/state/calls/counters.ts'
import { newSubtrunkId } from '../../core/state/configuration/subtrunks.ts'
import t from '../support/harness/index.ts'
import { openPhone } from '../support/phone.ts'
import { rated } from '../support/rated.ts'
import { sharedWorld } from '../support/shared-world.ts'
import { until } from '../support/wait.ts'

// The refusals of admission, as a peer sees them. The test changes rows of the running platform. Each decision reads
// them, so every change applies to the next INVITE.

const PEER = '127.0.0.2'
const WORLD = '+2348030004711'
const NOW = '2026-01-01T00:00:00.000Z'
const NO_CEILING = {
  ...{ concurrency: null, cps: null, daily_spend_cap_minor: null, velocity_cap_minor: 0 },
  ...{ max_call_duration_seconds: null, max_destination_rate_minor: null, revision: 1, updated_at: NOW },
}

t.test('admission over SIP', async t => {
  const w = await sharedWorld(t)
  const { db } = w.state
  const trunk_id = await w.addTrunk(PEER)
  const phone = await openPhone(t, { ...w.sip, local_ip: PEER })
  const own = w.numbers[1] ?? ''
  const invite = (over: { called?: string; caller?: string } = {}, as = phone.anew()) =>
    as.invite({ called: WORLD, caller: own, cseq: 1, ...over })
  const trunk = (changes: object) => db.updateTable('trunk').set(changes).where('id', '=', trunk_id).execute()
  const project = (changes: object) => db.updateTable('project').set(changes).where('id', '=', w.project_id).execute()

  await db
    .insertInto('subaccount')
    .values({
      id: 'sub_1',
      project_id: w.project_id,
      name: 'North',
      status: 'enabled',
      currency: 'NGN',
      max_concurrent: null,
      max_cps: null,
      daily_spend_cap_minor: null,
      max_call_duration_seconds: null,
      max_destination_rate_minor: null,
      revision: 1,
      created_at: NOW,
      updated_at: NOW,
    })
    .execute()
  await trunk({ subaccount_id: 'sub_1' })
  const subaccount = (changes: object) => db.updateTable('subaccount').set(changes).execute()
  await db
    .insertInto('containment')
    .values({
      id: 'con_1',
      project_id: w.project_id,
      trunk_id,
      prefix: '234803',
      case_ref: 'CASE-7',
      reason_category: 'destination_risk',
      reason_detail: 'test',
      rejection_count: 0,
      source_alert_id: null,
      starts_at: NOW,
      expires_at: NOW,
      released_at: null,
      released_by: null,
      notified_at: null,
      notified_event: null,
    })
    .execute()

  interface Refusal {
    readonly reason: string
    readonly code: number
    /** A part of the offending value, as in the Warning. */
    readonly shows: string
    readonly check: string
    readonly set?: () => Promise<unknown>
    readonly reset?: () => Promise<unknown>
    readonly over?: { called?: string; caller?: string }
  }
  const onTrunk = (name: string, bad: unknown, good: unknown) => ({
    set: () => trunk({ [name]: bad }),
    reset: () => trunk({ [name]: good }),
  })
  const onSubaccount = (name: string, bad: unknown, good: unknown = null) => ({
    set: () => subaccount({ [name]: bad }),
    reset: () => subaccount({ [name]: good }),
  })
  await db
    .insertInto('outbound_policy')
    .values({
      ...{ id: 'pol_1', project_id: w.project_id, name: 'Night', status: 'active', system_default: 0, revision: 1 },
      ...{ billing_group: 'standard', concurrency: null, cps: null, daily_spend_limit_minor: null },
      ...{ max_call_duration_seconds: null, max_destination_rate_minor: null, recording_mode: 'off' },
      ...{ recording_channels: 2, recording_retention_days: 30, created_at: NOW, created_by: null, updated_at: NOW },
    })
    .execute()
  await db
    .insertInto('policy_attachment')
    .values({
      ...{ id: 'pat_1', policy_id: 'pol_1', project_id: w.project_id, service_type: 'trunk', service_id: trunk_id },
      ...{ note: null, outbound_enabled: 1, attached_at: NOW, applied_at: NOW },
    })
    .execute()
  await db
    .insertInto('policy_rule')
    .values({
      ...{ id: 'rul_1', policy_id: 'pol_1', op: 'deny', kind: 'prefix', value: '+0', prefix: '0', label: 'Premium' },
      created_at: NOW,
    })
    .execute()
  const { billing_account_id } = await db
    .selectFrom('project')
    .selectAll()
    .where('id', '=', w.project_id)
    .executeTakeFirstOrThrow()
  await db
    .insertInto('billing_account')
    .values({
      ...{ id: billing_account_id, name: 'Prepaid', currency: 'NGN', prepaid: 0 },
      ...{ balance_minor: 0, credit_minor: 0, held_minor: 0 },
    })
    .onConflict(conflict => conflict.column('id').doUpdateSet({ name: 'Prepaid', prepaid: 0 }))
    .execute()
  const account = (changes: object) =>
    db.updateTable('billing_account').set(changes).where('id', '=', billing_account_id).execute()
  const subtrunk_id = newSubtrunkId()
  const route = (route_kind: 'subtrunk' | null, route_id: string | null) =>
    db.updateTable('number').set({ route_kind, route_id }).where('e164', '=', own).execute()
  const carriers = (enabled: 0 | 1) => db.updateTable('carrier').set({ enabled }).execute()
  const priced = async () => {
    await rated(w)
    await account({ prepaid: 1, balance_minor: 3 })
    await db.updateTable('carrier').set({ sandbox: 0 }).execute()
  }
  const REFUSALS: readonly Refusal[] = [
    {
      ...{ reason: 'project_disabled', code: 403, shows: 'disabled', check: 'enabled' },
      set: () => project({ status: 'disabled' }),
      reset: () => project({ status: 'active' }),
    },
    {
      ...{ reason: 'destination_denied', code: 403, shows: '+234803', check: 'destination' },
      set: () =>
        db.updateTable('policy_rule').set({ value: '+234803', prefix: '234803' }).where('id', '=', 'rul_1').execute(),
      reset: () => db.updateTable('policy_rule').set({ value: '+0', prefix: '0' }).where('id', '=', 'rul_1').execute(),
    },
    {
      ...{ reason: 'no_route', code: 404, shows: '2348030004711', check: 'rate_and_route' },
      set: () => carriers(0),
      reset: () => carriers(1),
    },
    {
      ...{ reason: 'subaccount_suspended', code: 403, shows: 'North', check: 'enabled' },
      ...onSubaccount('status', 'suspended', 'enabled'),
    },
    {
      ...{ reason: 'trunk_disabled', code: 403, shows: 'PBX', check: 'enabled' },
      ...onTrunk('status', 'disabled', 'enabled'),
    },
    {
      ...{ reason: 'subtrunk_disabled', code: 403, shows: 'Night shift', check: 'enabled' },
      set: async () => {
        await db
          .insertInto('subtrunk')
          .values({
            ...{ id: subtrunk_id, project_id: w.project_id, trunk_id, name: 'Night shift', status: 'disabled' },
            ...{ concurrency: null, cps: null, daily_spend_cap_minor: null, velocity_cap_minor: null },
            ...{ max_call_duration_seconds: null, max_destination_rate_minor: null },
            ...{ revision: 1, created_at: NOW, updated_at: NOW },
          })
          .execute()
        await route('subtrunk', subtrunk_id)
      },
      reset: async () => {
        await route(null, null)
        await db.deleteFrom('subtrunk').where('id', '=', subtrunk_id).execute()
      },
    },
    {
      ...{ reason: 'direction_not_allowed', code: 403, shows: 'inbound', check: 'direction' },
      ...onTrunk('direction', 'inbound', 'both'),
    },
    {
      ...{ reason: 'tls_required', code: 403, shows: 'udp', check: 'transport_security' },
      ...onTrunk('require_tls', 1, 0),
    },
    {
      ...{ reason: 'srtp_required', code: 488, shows: 'plain RTP', check: 'media' },
      ...onTrunk('media_security', 'sdes_srtp_required', 'rtp'),
    },
    {
      ...{ reason: 'no_common_codec', code: 488, shows: 'PCMU', check: 'media' },
      ...onTrunk('codecs', '["OPUS"]', '["PCMU","PCMA"]'),
    },
    { reason: 'number_invalid', code: 404, shows: '12', check: 'called_number', over: { called: '12' } },
    {
      ...{ reason: 'caller_not_owned', code: 403, shows: '2348039999999', check: 'caller_number' },
      over: { caller: '+2348039999999' },
    },
    {
      ...{ reason: 'DESTINATION_CONTAINED', code: 403, shows: 'CASE-7', check: 'containment' },
      set: () => db.updateTable('containment').set({ expires_at: '2999-01-01T00:00:00.000Z' }).execute(),
      reset: () => db.updateTable('containment').set({ expires_at: NOW }).execute(),
    },
    {
      ...{ reason: 'no_rate', code: 404, shows: '2348030004711', check: 'rate_and_route' },
      set: () => project({ sandbox: 0 }),
      reset: () => project({ sandbox: 1 }),
    },
    {
      ...{ reason: 'rate_above_ceiling', code: 403, shows: 'North', check: 'rate_ceiling' },
      ...onSubaccount('max_destination_rate_minor', 0),
    },
    {
      ...{ reason: 'concurrency_exceeded', code: 503, shows: 'North', check: 'concurrency' },
      ...onSubaccount('max_concurrent', 0),
    },
    { ...{ reason: 'cps_exceeded', code: 503, shows: 'North', check: 'cps' }, ...onSubaccount('max_cps', 0) },
    {
      ...{ reason: 'daily_spend_exceeded', code: 403, shows: 'North', check: 'spend' },
      ...onSubaccount('daily_spend_cap_minor', 0),
    },
    {
      ...{ reason: 'velocity_exceeded', code: 403, shows: 'project', check: 'spend' },
      set: () =>
        db
          .insertInto('project_ceiling')
          .values({ ...NO_CEILING, project_id: w.project_id })
          .execute(),
      reset: () => db.deleteFrom('project_ceiling').execute(),
    },
    {
      ...{ reason: 'max_duration', code: 403, shows: '0', check: 'spend' },
      set: () => db.updateTable('outbound_policy').set({ max_call_duration_seconds: 0 }).execute(),
      reset: () => db.updateTable('outbound_policy').set({ max_call_duration_seconds: null }).execute(),
    },
    {
      ...{ reason: 'balance_exhausted', code: 403, shows: 'Prepaid', check: 'spend' },
      set: priced,
      reset: () => account({ prepaid: 0 }),
    },
  ]
  for (const { reason, code, shows, check, set, reset, over } of REFUSALS)
    t.test(`${reason} is told with its value, and kept with the call`, async t => {
      await set?.()
      const answer = await invite(over)
      await reset?.()
      t.equal(answer.status, code)
      const header = (name: string) => answer.headers.find(line => line.toLowerCase().startsWith(`${name}:`)) ?? ''
      t.match(header('reason'), `X-Strowger;cause=${code};text="${reason}"`)
      t.match(header('warning'), /399 strowger ".*"/)
      t.ok(header('warning').includes(shows), header('warning'))
      t.equal(/\d+/.exec(header('retry-after'))?.[0], reason === 'cps_exceeded' ? '1' : undefined)
      const call = await db.selectFrom('call').selectAll().orderBy('position', 'desc').executeTakeFirstOrThrow()
      t.match(call, { status: 'failed', reason, sip_code: code })
      const { checks } = JSON.parse(call.decision_trace ?? '{}')
      t.match(checks.at(-1), { check, result: 'refused', reason })
      const { body } = await w.manage('GET', `/calls/${call.sid}/decision`)
      t.match(body.decision, { admitted: false, reason })
      t.ok(body.decision.sentence.includes(shows), body.decision.sentence)
    })

  t.test('admits exactly N calls of a burst of 5 N, and releases every slot', async t => {
    // The sandbox carrier answers. Nodes route by the configuration that they last read, which may be of the time
    // between these writes; they have read all of it when they have applied a later trunk.
    await db.updateTable('carrier').set({ sandbox: 1 }).execute()
    await project({ sandbox: 1 })
    await w.addTrunk('127.0.0.3')
    const N = 3
    await trunk({ concurrency: N })
    const phones = Array.from({ length: 5 * N }, () => phone.anew())
    const answers = await Promise.all(phones.map(each => invite({}, each)))
    const admitted = phones.filter((_, index) => answers[index]?.status === 200)
    t.equal(admitted.length, N)
    const refused = answers.filter(({ status }) => status !== 200)
    t.same(
      refused.map(({ status, headers }) => [status, headers.find(line => /^reason:/i.test(line))]),
      refused.map(() => [503, 'Reason: X-Strowger;cause=503;text="concurrency_exceeded"']),
    )
    t.equal((await invite()).status, 503, 'and none more while they last')
    for (const each of admitted) t.equal((await each.bye(2)).status, 200)
    await until('the slots are back', async () => (await countLiveCalls(db, 'trunk', [trunk_id])).get(trunk_id) === 0)
    const next = phone.anew()
    t.equal((await invite({}, next)).status, 200)
    t.equal((await next.bye(2)).status, 200)
    await until(
      'the last slot is back',
      async () => (await countLiveCalls(db, 'trunk', [trunk_id])).get(trunk_id) === 0,
    )
    t.same(await wrongCounters(db), [])
  })
})

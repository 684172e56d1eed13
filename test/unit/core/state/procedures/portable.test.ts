import { ending } from '../../../../../core/domain/calls/endings.ts'
import { insertContainment } from '../../../../../core/state/alerts/containments.ts'
import { readsOfTaken } from '../../../../../core/state/configuration/sources.ts'
import { callProcedure, inDialect } from '../../../../../core/state/port.ts'
import type { AdmissionRequest } from '../../../../../core/state/procedures/admission/request.ts'
import { mustBy, type Query, type Value } from '../../../../../core/state/procedures/query.ts'
import type { NewCall } from '../../../../../core/state/procedures/running/rows.ts'
import { type In, PROCEDURES, type ProcedureName } from '../../../../../core/state/procedures/table.ts'
import { type AdmissionWorld, admissionWorld, NOW_MS } from '../../../../support/admission-world.ts'
import { addCarrier } from '../../../../support/carriers.ts'
import t from '../../../../support/harness/index.ts'
import { planner } from '../../../../support/postgres.ts'

// The procedures are the rules of the platform, and their SQL runs on more than one engine: SQLite runs every procedure
// here, and PostgreSQL plans every statement that they ran (core/state/README.md).

const NOW = new Date(NOW_MS).toISOString()
const ENDED = ending({ cause: 'caller_hung_up', answered: true })

/** Records the text of each statement that a procedure runs, and the names of the procedures that ran. */
function record() {
  const statements = new Set<string>()
  const ran = new Set<string>()
  const table = PROCEDURES as Record<string, (query: Query, input: never) => unknown>
  for (const [name, procedure] of Object.entries(table))
    table[name] = (query, input) => {
      ran.add(name)
      const changes = (sql: string, ...values: Value[]) => query.changes(statements.add(sql) && sql, ...values)
      const noted = Object.assign(
        (sql: string, ...values: never[]) => query(statements.add(sql) && sql, ...values),
        query,
        { changes, must: mustBy(changes) },
      )
      return procedure(noted as Query, input)
    }
  return { statements, ran }
}

/** On the thread of this test, whatever the procedure. */
const runner =
  ({ state }: AdmissionWorld) =>
  <Name extends ProcedureName>(name: Name, input: In<Name>) =>
    state.shortTransaction(trx => callProcedure(trx, name, input))

const newCall = (w: AdmissionWorld, sid: string): NewCall => ({
  sid,
  project_id: w.project_id,
  account_sid: 'AC1',
  origin: 'rest',
  direction: 'outbound-api',
  from_number: '+2342010000001',
  to_number: '+2348031234567',
  status: 'queued',
  trunk_id: w.trunk_id,
  queued_at: NOW,
  request: JSON.stringify({
    status_callback: 'http://customer.example/status',
    status_callback_events: ['initiated', 'ringing', 'answered', 'completed'],
  }),
})

/** Calls that are admitted and refused, through every kind of service. */
async function admissions(w: AdmissionWorld) {
  const { db } = w.state
  const run = runner(w)
  const take = (changes: Partial<AdmissionRequest> = {}) =>
    run('take_admission', { request: w.request(changes), dry_run: false })
  const admitted = async (changes: Partial<AdmissionRequest> = {}) => {
    const request = w.request(changes)
    const outcome = await run('take_admission', { request, dry_run: false })
    t.equal(outcome.admitted, true, `admitted: ${JSON.stringify(changes)}`)
    return request.call_sid
  }
  await admitted()
  await w.prepaid(1_000_000)
  const longest = await admitted()
  await run('extend_reservation', { call_sid: longest, elapsed_seconds: 60, ahead_seconds: 120 })
  await w.subaccount({ max_cps: 50, daily_spend_cap_minor: 500_000 })
  const policy_id = await w.policy({ daily_spend_limit_minor: 500_000 })
  await admitted()
  await w.rule(policy_id, 'allow', '234')
  await w.rule(policy_id, 'deny', '1')
  const subtrunk_id = await w.subtrunk({ velocity_cap_minor: 400_000, daily_spend_cap_minor: 400_000, cps: 20 })
  await w.number('+2342010000002', { route_kind: 'subtrunk', route_id: subtrunk_id })
  const shared = { caller: '+2342010000002' }
  const dear = await admitted(shared)
  await run('extend_reservation', { call_sid: dear, elapsed_seconds: 60, ahead_seconds: 120 })
  await admitted({ ...shared, service: { type: 'subtrunk', id: subtrunk_id } })
  await admitted({ part: 'inbound', called: '+2342010000002', caller: '+2348031234567' })
  await take({ called: '112' })
  await take({ way: 'target_test', called: 'desk' })
  await take({ way: 'dial_client', called: 'alice', service: { type: 'automation', id: w.project_id } })
  await take({ called: '+12025550123' })
  await db.deleteFrom('termination_target').execute()
  await take()
  const containment = {
    project_id: w.project_id,
    trunk_id: null,
    prefix: '234803',
    case_ref: 'SEC-1',
    reason_category: 'destination_risk',
    reason_detail: 'test',
    source_alert_id: null,
    starts_at: NOW,
    expires_at: new Date(NOW_MS + 3_600_000).toISOString(),
  } as const
  await w.state.transaction(trx => insertContainment(trx, containment))
  t.match(await take(), { admitted: false, reason: 'DESTINATION_CONTAINED' })
  for (const [call_sid, answered] of [
    [longest, true],
    [dear, false],
  ] as const)
    await run('release_admission', {
      call_sid,
      duration_seconds: answered ? 150 : 0,
      answered,
      now_ms: NOW_MS + 150_000,
    })
  await run('prune_hours', null)
}

const CARRIER = {
  name: 'Lagos Telecom',
  codecs: ['PCMA'],
  sources: [],
  targets: [{ sip_uri: 'sip:192.0.2.9:5060', transport: 'udp', priority: 1, weight: 1 }],
  routes: [{ prefix: '', priority: 1, cost_minor: 0 }],
} as const

/** A call of the API from its command to its CDR, one that a peer sends, and one that is refused. */
async function calls(w: AdmissionWorld) {
  const run = runner(w)
  const endpoint = {
    id: 'whe_1',
    project_id: w.project_id,
    url: 'http://customer.example/events',
    event_kinds: '["call.ended"]',
    enabled: 1,
    secret_sealed: '',
    revision: 1,
    created_at: NOW,
    updated_at: NOW,
  } as const
  await w.state.db.insertInto('webhook_endpoint').values(endpoint).execute()
  const admission = { ...w.request(), transport: null }
  const { request = '' } = newCall(w, '')
  await addCarrier(w.state, CARRIER, NOW)
  const numbers = { from_number: '+2342010000001', to_number: '+2348031234567', number_id: 'PN1' }
  const of = { project_id: w.project_id, account_sid: 'AC1', application_id: null, caller_id: null }
  const facts = { sid: admission.call_sid, ...of, request: String(request), now_ms: NOW_MS }
  t.match(await run('place_call', { ...facts, ...numbers }), { row: { status: 'queued' } })
  t.match(await run('would_admit', admission), { admitted: true })
  await run('admit_queued_call', { requests: [admission], waits_for: 'cps_exceeded', now_ms: NOW_MS })
  const at_ms = NOW_MS + 1000
  const ended = { ending: ENDED, ended_ms: NOW_MS + 60_000, pdd_ms: 700, media: null }
  await run('write_call', {
    sid: admission.call_sid,
    steps: [
      { step: 'initiated', at_ms, changes: { sip_call_id: 'a@b' } },
      { step: 'attempt', at_ms, attempt: { sequence: 1, target: 'sip:127.0.0.1:5090', transport: 'udp' } },
      { step: 'attempt_changed', sequence: 1, changes: { sip_code: 200, result: 'answered' } },
      { step: 'ringing', at_ms },
      { step: 'answered', at_ms },
      { step: 'end', facts: ended },
    ],
  })
  const peers = w.request()
  const call = { ...newCall(w, peers.call_sid), origin: 'trunk', direction: 'inbound' } as const
  await run('admit_call', { call, requests: [peers], verstat: null, now_ms: NOW_MS })
  const failed = ending({ cause: 'not_admitted', answered: false, sip_code: 503, reason: 'state_unavailable' })
  await run('finish_call', { sid: peers.call_sid, facts: { ...ended, ending: failed } })
  await run('insert_call', { call: newCall(w, 'CA_plain'), now_ms: NOW_MS })
  // A node that has registered again ends its calls itself.
  const lost = { sid: 'CA_plain', facts: { ...ended, ending: failed }, node_id: 'node_back' }
  t.equal(await run('end_lost_call', lost), false)
  const callback = { kind: 'status_callback', call_sid: 'CA_plain', url: endpoint.url, method: 'POST' } as const
  await run('enqueue_callback', { ...callback, project_id: w.project_id, parameters: {}, now_ms: NOW_MS })
  await run('queue_event', { event: { project_id: w.project_id, kind: 'call.ended', data: {} }, now_ms: NOW_MS })
  const message = { sip_call_id: 'a@b', at_ms, direction: 'in', protocol: 'udp', local: '1', remote: '2' } as const
  await run('insert_messages', {
    edge_id: 'edge_1',
    messages: Array.from({ length: 21 }, () => ({ ...message, retransmission: 0 as const, text: 'x' })),
  })
  await run('append_audit', AUDIT)
}

const AUDIT = {
  id: 'aud_1',
  organization_id: 'org_1',
  project_id: null,
  at: NOW,
  actor_type: 'system',
  actor_id: null,
  actor_name: 'Test',
  actor_detail: null,
  category: 'configuration',
  kind: 'trunks',
  action: 'update',
  summary: 'A test.',
  detail: null,
  resource_type: 'trunk',
  resource_id: 'trk_1',
  resource_name: 'Lagos office',
  resource_href: null,
  trunk_id: null,
  from_revision: null,
  to_revision: null,
  request_id: null,
  changes: '[]',
} as const

t.test('PostgreSQL accepts every statement of the procedures that SQLite runs', async t => {
  const { statements, ran } = record()
  const w = await admissionWorld({ local: true })
  t.teardown(() => w.close())
  await calls(w)
  await admissions(w)
  t.same([...ran].sort(), Object.keys(PROCEDURES).sort(), 'every procedure has run')
  const postgres = await planner()
  t.teardown(() => postgres.close())
  t.not(await postgres.fault('select sum(draining_at is not null) from node'), null, 'and refuses what is not portable')
  const tenant = { project_id: w.project_id, subaccount_id: null }
  for (const { sql } of inDialect(w.state.db, readsOfTaken('192.0.2.0/24', tenant, NOW))) statements.add(sql)
  for (const sql of statements) t.equal(await postgres.fault(sql), null, sql)
})

import { projectRow, trunkRow } from '../../../../../bench/admission/rows.ts'
import { noteSources } from '../../../../../core/state/alerts/traffic-facts.ts'
import { admitCall, insertCall, type NewCall } from '../../../../../core/state/calls/running-calls.ts'
import { brokenInvariants } from '../../../../../core/state/maintenance/invariants.ts'
import { type AdmissionWorld, admissionWorld, NOW_MS } from '../../../../support/admission-world.ts'
import t from '../../../../support/harness/index.ts'

const at = new Date(NOW_MS).toISOString()

/** A second customer with a trunk. */
async function rival({ state: { db } }: AdmissionWorld): Promise<{ project_id: string; trunk_id: string }> {
  const [project_id, trunk_id] = ['prj_2', 'trk_2']
  const organization_id = 'org_1'
  await db
    .insertInto('project')
    .values(projectRow({ id: project_id, organization_id, name: 'Rival', billing_account_id: 'bil_2' }))
    .execute()
  await db
    .insertInto('trunk')
    .values(
      trunkRow({
        id: trunk_id,
        project_id,
        name: 'Rival',
        concurrency: 10,
        cps: 10,
        signaling_fqdn: '2.sip.localhost',
      }),
    )
    .execute()
  return { project_id, trunk_id }
}

const inbound = (sid: string, project_id: string, over: Partial<NewCall> = {}): NewCall => ({
  ...{ sid, project_id, account_sid: 'AC1', origin: 'trunk', direction: 'inbound', status: 'ringing' },
  ...{ from_number: '+2348031234567', to_number: '+2342010000001', node_id: 'node_1', queued_at: at },
  ...over,
})

t.test(
  'a refusal by the caller’s side is recorded only for the caller; one by the called side, for the called tenant',
  async t => {
    const w = await admissionWorld()
    t.teardown(() => w.close())
    const two = await rival(w)
    const callback = { status_callback: 'http://rival.example/status', status_callback_events: ['completed'] }
    const admit = async (call_sid: string) => {
      const called = inbound(call_sid, two.project_id, { trunk_id: two.trunk_id, request: JSON.stringify(callback) })
      const callers = inbound(call_sid, w.project_id, { trunk_id: w.trunk_id, direction: 'outbound' })
      const requests = [
        w.request({ call_sid, part: 'on_net' }),
        w.request({ call_sid, part: 'inbound', ...two, service: { type: 'trunk', id: two.trunk_id } }),
      ]
      const { decided, part, row } = await admitCall(w.state.db, {
        call: called,
        callers,
        requests,
        verstat: null,
        now_ms: NOW_MS,
      })
      const kept = await w.state.db.selectFrom('call').selectAll().where('sid', '=', call_sid).executeTakeFirstOrThrow()
      t.equal(kept.project_id, row.project_id)
      const told = await w.state.db.selectFrom('outbox').select('url').where('call_sid', '=', call_sid).execute()
      return { kept, told: told.length, by: decided.admitted ? null : part }
    }
    t.match(await admit('CA1'), { kept: two, by: null })
    await w.trunk({ status: 'disabled' })
    t.match(await admit('CA2'), { kept: { project_id: w.project_id, trunk_id: w.trunk_id }, told: 0, by: 'on_net' })
    await w.trunk({ status: 'enabled' })
    await w.state.db.updateTable('trunk').set({ status: 'disabled' }).where('id', '=', two.trunk_id).execute()
    const refused = await admit('CA3')
    t.match(refused, { kept: two, told: 1, by: 'inbound' })
    t.notMatch(refused.kept.decision_trace, /trk_1|Lagos office/)
  },
)

t.test('a call delivered to a trunk does not count as a source of that trunk’s peer', async t => {
  const w = await admissionWorld()
  t.teardown(() => w.close())
  const source = { trunk_id: w.trunk_id, source_ip: '198.51.100.7' }
  await insertCall(w.state.db, inbound('CA1', w.project_id, source), NOW_MS)
  await noteSources(w.state)
  t.same(await w.state.db.selectFrom('trunk_source_seen').selectAll().execute(), [])
  await insertCall(w.state.db, inbound('CA2', w.project_id, { ...source, direction: 'outbound' }), NOW_MS)
  await noteSources(w.state)
  t.match(await w.state.db.selectFrom('trunk_source_seen').selectAll().execute(), [
    { trunk_id: w.trunk_id, address: '198.51.100.7', calls: 1 },
  ])
})

t.test('two processes that note the same calls count each call once', async t => {
  const w = await admissionWorld()
  t.teardown(() => w.close())
  const own = { trunk_id: w.trunk_id, source_ip: '198.51.100.7', direction: 'outbound' } as const
  const calls = async () =>
    (await w.state.db.selectFrom('trunk_source_seen').select('calls').execute()).map(row => row.calls)
  for (const [at, sid] of ['CA1', 'CA2'].entries()) {
    await insertCall(w.state.db, inbound(sid, w.project_id, own), NOW_MS)
    await Promise.all([noteSources(w.state), noteSources(w.state)])
    t.same(await calls(), [at + 1])
  }
})

t.test('detects a call or number that refers to another project', async t => {
  const w = await admissionWorld()
  t.teardown(() => w.close())
  const two = await rival(w)
  const { trunk_id } = w
  await insertCall(w.state.db, inbound('CA1', w.project_id, { trunk_id }), NOW_MS)
  await insertCall(w.state.db, inbound('CA2', w.project_id, { parent_call_sid: 'CA1' }), NOW_MS)
  const parents = async () => (await brokenInvariants(w.state.db)).filter(line => line.startsWith('rows of call '))
  t.same(await parents(), [])
  await insertCall(w.state.db, inbound('CA3', two.project_id, { parent_call_sid: 'CA1' }), NOW_MS)
  t.match(await parents(), [/^rows of call whose parent_call_sid is of another project: 1 /])
  await insertCall(w.state.db, inbound('CA4', two.project_id, { trunk_id }), NOW_MS)
  t.match(await parents(), [/parent_call_sid/, /trunk_id/])
  await w.number('+2342019999901', { project_id: two.project_id, route_kind: 'trunk', route_id: trunk_id })
  t.match((await brokenInvariants(w.state.db)).at(-1), /^numbers routed to what is another project’s: \+2342019999901$/)
})

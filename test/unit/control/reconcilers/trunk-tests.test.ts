import { overdueTrunkTests } from '../../../../control/reconcilers/trunk-tests.ts'
import { iso, systemClock } from '../../../../core/runtime/clock.ts'
import { ProjectPlaces } from '../../../../core/runtime/project-places.ts'
import {
  claimTestRuns,
  finishTestRun,
  insertTestRun,
  saveCheck,
  TESTS_A_DAY,
  trunksDueForTest,
} from '../../../../core/state/configuration/trunk-tests.ts'
import { controlPlane, freshKey } from '../../../support/control-plane.ts'
import t from '../../../support/harness/index.ts'

const DAY_MS = 86_400_000

t.test('each enabled trunk is tested automatically once a day, and its history is kept for 30 days', async t => {
  let now_ms = Date.parse('2026-03-11T12:00:00.000Z')
  const w = await controlPlane(t, { clock: { ...systemClock, now: () => now_ms } })
  const trunk = async (name: string, targets: readonly object[]): Promise<string> => {
    const { body } = await w.ask('POST', '/v1/trunks', {
      headers: { 'Idempotency-Key': freshKey() },
      body: {
        ...{ name, direction: 'both', auth_mode: 'digest', sources: [], codecs: ['PCMA'], targets },
        ...{ media_security: 'rtp', require_tls: false, source_validation: 'relaxed' },
      },
    })
    return body.trunk.id
  }
  const target = { sip_uri: 'sip:pbx.example.com', transport: 'udp', priority: 10, weight: 100 }
  const id = await trunk('Checked', [target])
  const bare = await trunk('Without a target', [])
  const history = async (of: string) => (await w.ask('GET', `/v1/trunks/${of}/tests`)).body
  const pass = async (ms: number): Promise<void> => {
    now_ms += ms
    await overdueTrunkTests.run(w)
  }
  const finishAll = async (): Promise<void> => {
    for (const run of await claimTestRuns(w.state, 'node_1', new ProjectPlaces(10))) {
      const outcome = { result: 'passed' as const, finding: 'All is well.', finished_at: iso(now_ms) }
      await w.state.transaction(trx => finishTestRun(trx, run.id, outcome))
    }
  }
  t.match(await history(id), { data: [], scheduled_check: true, retention_days: 30 })
  await pass(DAY_MS / 2)
  t.same((await history(id)).data, [], 'a new trunk is tested after a day')
  await pass(DAY_MS / 2 + 1)
  await pass(1000)
  const [run, ...more] = (await history(id)).data
  t.same(more, [], 'once')
  t.match(run, { scheduled: true, run_by: 'schedule', result: 'running' })
  t.same((await history(bare)).data, [], 'a trunk without a target is not tested')
  await finishAll()
  await pass(DAY_MS - 2000)
  t.equal((await history(id)).data.length, 1)
  await pass(3000)
  t.equal((await history(id)).data.length, 2, 'the trunk is tested again the next day')

  await pass(121_000)
  t.match(
    (await history(id)).data[0],
    { result: 'failed', finding: /signaling node .* is gone/ },
    'a test that no node takes fails',
  )
  await w.state.db.updateTable('trunk').set({ status: 'disabled' }).execute()
  await pass(29 * DAY_MS)
  t.equal((await history(id)).data.length, 1, 'tests older than 30 days are deleted')
  await pass(DAY_MS)
  t.same((await history(id)).data, [])
  t.same(await w.state.db.selectFrom('trunk_test_check').selectAll().execute(), [])
})

t.test('a trunk runs one test at a time, and at most 20 a day', async t => {
  let now_ms = Date.parse('2026-03-11T12:00:00.000Z')
  const w = await controlPlane(t, { clock: { ...systemClock, now: () => now_ms } })
  const post = (path: string, body: object) => w.ask('POST', path, { headers: { 'Idempotency-Key': freshKey() }, body })
  const { body } = await post('/v1/trunks', {
    ...{ name: 'Tested', direction: 'both', auth_mode: 'digest', sources: [], codecs: ['PCMA'], targets: [] },
    ...{ media_security: 'rtp', require_tls: false, source_validation: 'relaxed' },
  })
  const begin = () => post(`/v1/trunks/${body.trunk.id}/tests`, { kind: 'config_validation' })
  for (let at = 0; at < TESTS_A_DAY; at += 1) {
    t.equal((await begin()).status, 201)
    t.equal((await begin()).body.code, 'state_conflict', 'a second test is refused while one runs')
    for (const run of await claimTestRuns(w.state, 'node_1', new ProjectPlaces(10))) {
      const outcome = { result: 'passed' as const, finding: 'All is well.', finished_at: iso(now_ms) }
      await w.state.transaction(trx => finishTestRun(trx, run.id, outcome))
    }
  }
  t.match(await begin(), { status: 429, body: { code: 'rate_limited', detail: /20 tests of a trunk in 24 h/ } })
  now_ms += DAY_MS
  t.equal((await begin()).status, 201, 'a day later tests are allowed again')
})

t.test('a test that takes long is not lost while its checks end', async t => {
  let now_ms = Date.parse('2026-03-11T12:00:00.000Z')
  const w = await controlPlane(t, { clock: { ...systemClock, now: () => now_ms } })
  const post = (path: string, body: object) => w.ask('POST', path, { headers: { 'Idempotency-Key': freshKey() }, body })
  const { body } = await post('/v1/trunks', {
    ...{ name: 'Silent', direction: 'both', auth_mode: 'digest', sources: [], codecs: ['PCMA'], targets: [] },
    ...{ media_security: 'rtp', require_tls: false, source_validation: 'relaxed' },
  })
  const begin = () => post(`/v1/trunks/${body.trunk.id}/tests`, { kind: 'rtp_reachability' })
  const { id } = (await begin()).body.run
  const check = { run_id: id, state: 'failed', summary: 'silent', target_ref: null, node_id: 'node_1' } as const
  const state = async () => (await w.ask('GET', `/v1/trunks/${body.trunk.id}/tests/${id}`)).body.run
  for (let n = 1; n <= 4; n++) {
    now_ms += 60_000
    const ended = { ...check, id: `${id}.${n}`, duration_ms: 60_000, occurred_at: iso(now_ms) }
    await w.state.transaction(trx => saveCheck(trx, ended))
    await overdueTrunkTests.run(w)
    t.equal((await state()).result, 'running', `after ${n} min`)
    t.equal((await begin()).body.code, 'state_conflict', 'and no other begins')
  }
  now_ms += 121_000
  await overdueTrunkTests.run(w)
  t.match(await state(), { result: 'failed', finding: /signaling node .* is gone/ })
  t.equal((await begin()).status, 201)
})

t.test('a project that tests all its trunks leaves places to the tests of others', async t => {
  const w = await controlPlane(t)
  const now_ms = w.clock.now()
  const begin = (project_id: string, subject_id: string, begun_ms: number) =>
    w.state.transaction(trx =>
      insertTestRun(
        trx,
        {
          ...{
            project_id,
            subject_type: 'trunk',
            subject_id,
            requested_kind: 'rtp_reachability',
            requested_revision: 1,
          },
          ...{ destination: null, run_by: 'key', scheduled: 0 },
        },
        iso(begun_ms),
      ),
    )
  for (let n = 0; n < 20; n++) await begin('prj_many', `trk_${n}`, now_ms + n)
  await begin('prj_rival', 'trk_rival', now_ms + 100)
  const places = new ProjectPlaces(8)
  const claimed = async () => {
    const runs = await claimTestRuns(w.state, 'node_1', places)
    for (const { project_id } of runs) places.take(project_id)
    return runs.map(({ subject_id }) => subject_id)
  }
  t.same(await claimed(), ['trk_0', 'trk_1', 'trk_2', 'trk_3'])
  t.same(await claimed(), ['trk_rival'], 'although it began last')
  t.same(await claimed(), [])
  places.give('prj_many')
  t.same(await claimed(), ['trk_4'])
})

t.test('the trunk whose daily test is longest overdue is tested first', async t => {
  const w = await controlPlane(t)
  const now_ms = w.clock.now() + 3 * DAY_MS
  const trunk = async (name: string, tested_ms: number | null): Promise<string> => {
    const { body } = await w.ask('POST', '/v1/trunks', {
      headers: { 'Idempotency-Key': freshKey() },
      body: {
        ...{ name, direction: 'both', auth_mode: 'digest', sources: [], codecs: ['PCMA'] },
        targets: [{ sip_uri: 'sip:pbx.example.com', transport: 'udp', priority: 10, weight: 100 }],
        ...{ media_security: 'rtp', require_tls: false, source_validation: 'relaxed' },
      },
    })
    const { id, project_id } = await w.state.db
      .selectFrom('trunk')
      .select(['id', 'project_id'])
      .where('id', '=', body.trunk.id)
      .executeTakeFirstOrThrow()
    const of = { project_id, subject_type: 'trunk', subject_id: id, requested_revision: 1, destination: null } as const
    const daily = { ...of, requested_kind: 'config_validation', run_by: 'schedule', scheduled: 1 } as const
    if (tested_ms !== null) await w.state.transaction(trx => insertTestRun(trx, daily, iso(tested_ms)))
    return id
  }
  const later = await trunk('Tested later', now_ms - 1.1 * DAY_MS)
  const sooner = await trunk('Tested sooner', now_ms - 1.5 * DAY_MS)
  const never = await trunk('Never tested', null)
  const due = async (limit: number) => (await trunksDueForTest(w.state.db, now_ms, limit)).map(({ id }) => id)
  t.same(await due(3), [never, sooner, later])
  t.same(await due(2), [never, sooner])
})

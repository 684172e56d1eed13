import {
  insertTestRun,
  listChecks,
  listTestRuns,
  TEST_RETENTION_DAYS,
  TESTS_A_DAY,
  type TestCheckRow,
  type TestRunRow,
  testHindrance,
} from '../../core/state/configuration/trunk-tests.ts'
import type { Db, Trx } from '../../core/state/index.ts'
import { invalid, refuse } from '../http/reply.ts'
import {
  Count64,
  E164,
  Flag,
  Instant,
  Int32,
  input,
  list,
  nullable,
  oneOf,
  optional,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'
import { route } from './route.ts'

const Text = Type.String()
const TextOrNull = nullable(Text)
const InstantOrNull = nullable(Instant)
const TestKind = oneOf('config_validation', 'rtp_reachability', 'test_call')

/** A check of a test, of a trunk or of a carrier. */
export const TestCheck = resource('TrunkTestCheck', {
  duration_ms: nullable(Count64),
  id: Text,
  node_id: TextOrNull,
  occurred_at: InstantOrNull,
  sequence: Count64,
  state: oneOf('waiting', 'passed', 'failed', 'skipped'),
  summary: TextOrNull,
  target_ref: TextOrNull,
})

const Run = resource('TrunkTestRun', {
  call_id: TextOrNull,
  call_summary: TextOrNull,
  checks: list(TestCheck),
  configuration_revision: nullable(Count64),
  finding: TextOrNull,
  finished_at: InstantOrNull,
  id: Text,
  result: oneOf('running', 'passed', 'failed'),
  run_by: Text,
  scheduled: Flag,
  started_at: Instant,
})

const Detail = resource('TrunkTestDetail', {
  destination: TextOrNull,
  next_sequence: Count64,
  requested_kind: TestKind,
  requested_revision: Count64,
  run: Run,
})

const History = resource('TrunkTestHistory', {
  as_of: Instant,
  data: list(Run),
  retention_days: Int32,
  scheduled_check: Flag,
})

const MAX_HISTORY = 100

export const presentCheck = ({ run_id: _, ...row }: TestCheckRow): Static<typeof TestCheck> => row

const presentRun = (row: TestRunRow, checks: readonly TestCheckRow[]): Static<typeof Run> => ({
  call_id: row.call_sid,
  call_summary: row.call_summary,
  checks: checks.map(presentCheck),
  configuration_revision: row.configuration_revision,
  finding: row.finding,
  finished_at: row.finished_at,
  id: row.id,
  result: row.result,
  run_by: row.run_by,
  scheduled: row.scheduled === 1,
  started_at: row.started_at,
})

async function presentDetail(db: Db | Trx, row: TestRunRow, after_sequence: number): Promise<Static<typeof Detail>> {
  const checks = (await listChecks(db, [row.id], after_sequence)).get(row.id) ?? []
  return {
    destination: row.destination,
    // Never past what this answer holds: a check that changes meanwhile belongs to the next one.
    next_sequence: checks.at(-1)?.sequence ?? after_sequence,
    requested_kind: row.requested_kind,
    requested_revision: row.requested_revision,
    run: presentRun(row, checks),
  }
}

export const trunkTests = [
  route({
    method: 'post',
    path: '/trunks/{trunk_id}/tests',
    summary: 'Start a test of a trunk; it runs in the background',
    description:
      '`config_validation` looks at DNS, certificates, codecs, sources and digest set-up; `rtp_reachability` makes a short call to each target and measures media both ways; `test_call` calls `destination` (E.164) over the trunk, with a tone. A test call takes slots and costs what any call of the trunk costs; it is left out of the metrics. One test of a trunk runs at a time, 20 a day.',
    scope: 'tests:manage',
    idempotent: true,
    audit: { kind: 'trunks', action: 'trunk.test_started' },
    body: input('TrunkTestStart', { destination: optional(nullable(E164)), kind: TestKind }),
    replies: { 201: Detail },
    refusals: ['state_conflict', 'trunk_releasing', 'rate_limited'],
    async run({ db, trunk, body, caller, now, services }) {
      if (trunk.status === 'releasing' || trunk.status === 'released')
        return refuse('trunk_releasing', { name: trunk.name, value: trunk.status })
      const destination = body.destination ?? null
      if (body.kind === 'test_call' && destination === null)
        return invalid('/destination', 'is the number that test_call calls')
      const hindrance = await testHindrance(db, trunk.id, services.clock.now())
      if (hindrance === 'running')
        return refuse('state_conflict', { name: `trunk ${trunk.name}`, value: 'being tested' })
      if (hindrance === 'used_up') return refuse('rate_limited', { value: `${TESTS_A_DAY} tests of a trunk in 24 h` })
      const row = await insertTestRun(
        db,
        {
          project_id: trunk.project_id,
          subject_type: 'trunk',
          subject_id: trunk.id,
          requested_kind: body.kind,
          requested_revision: trunk.revision,
          destination,
          run_by: caller.actor.name,
          scheduled: 0,
        },
        now,
      )
      return {
        status: 201,
        body: await presentDetail(db, row, 0),
        change: {
          resource: { type: 'trunk', id: trunk.id, name: trunk.name, href: `/v1/trunks/${trunk.id}` },
          summary: `Started ${body.kind} of ${trunk.name}`,
          before: null,
          after: null,
          trunk_id: trunk.id,
        },
        wake: ['commands'] as const,
      }
    },
  }),

  route({
    method: 'get',
    path: '/trunks/{trunk_id}/tests',
    summary: 'Tests of a trunk, newest first',
    scope: 'tests:manage',
    replies: { 200: History },
    async run({ db, trunk, now }) {
      const rows = await listTestRuns(db, trunk.id, MAX_HISTORY)
      const checks = await listChecks(
        db,
        rows.map(row => row.id),
      )
      const data = rows.map(row => presentRun(row, checks.get(row.id) ?? []))
      const scheduled_check = trunk.status === 'enabled'
      return { status: 200, body: { as_of: now, data, retention_days: TEST_RETENTION_DAYS, scheduled_check } }
    },
  }),

  route({
    method: 'get',
    path: '/trunks/{trunk_id}/tests/{run_id}',
    summary: 'One test, with the checks that changed after a sequence',
    description: 'Ask again with `after_sequence` = `next_sequence` until `run.result` is not `running`.',
    scope: 'tests:manage',
    query: Type.Object({ after_sequence: optional(Count64) }, { additionalProperties: false }),
    replies: { 200: Detail },
    async run({ db, run: row, query: { after_sequence = 0 } }) {
      return { status: 200, body: await presentDetail(db, row, after_sequence) }
    },
  }),
]

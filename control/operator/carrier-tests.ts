import {
  findTestRun,
  insertTestRun,
  listChecks,
  listTestRuns,
  TEST_RETENTION_DAYS,
  TESTS_A_DAY,
  type TestCheckRow,
  type TestRunRow,
  testHindrance,
} from '../../core/state/configuration/trunk-tests.ts'
import { INSTALLATION } from '../../core/state/people/audit.ts'
import { notFound, refuse } from '../http/reply.ts'
import {
  Count64,
  described,
  Instant,
  list,
  listOf,
  nullable,
  oneOf,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'
import { presentCheck, TestCheck } from '../v1/trunk-tests.ts'
import { route } from './route.ts'

const MAX_HISTORY = 100

const CarrierTest = resource('OperatorCarrierTest', {
  id: Type.String(),
  result: oneOf('running', 'passed', 'failed'),
  finding: nullable(Type.String(), {
    description: 'The first fault and its remedy, or that all is well; null until then.',
  }),
  checks: described(list(TestCheck), 'In order of their last change.'),
  configuration_revision: nullable(Count64, {
    description: 'The carrier’s revision that the test saw; null before it.',
  }),
  run_by: Type.String(),
  started_at: Instant,
  finished_at: nullable(Instant),
})

const present = (row: TestRunRow, checks: readonly TestCheckRow[]): Static<typeof CarrierTest> => ({
  id: row.id,
  result: row.result,
  finding: row.finding,
  checks: checks.map(presentCheck),
  configuration_revision: row.configuration_revision,
  run_by: row.run_by,
  started_at: row.started_at,
  finished_at: row.finished_at,
})

export const carrierTests = [
  route({
    method: 'post',
    path: '/carriers/{carrier_id}/test',
    summary: 'Start a test of a carrier; it runs in the background and places no call',
    description:
      'A signaling node looks at the registration, and for each target at its name, its certificate, its answer to ' +
      `OPTIONS and its codecs. Read the run until its \`result\` is not \`running\`. One test of a carrier runs at a ` +
      `time, ${TESTS_A_DAY} a day; runs are kept for ${TEST_RETENTION_DAYS} days.`,
    scope: 'operator:network',
    context: 'organization',
    idempotent: true,
    audit: { kind: 'trunks', action: 'carrier.test_started' },
    replies: { 201: CarrierTest },
    refusals: ['state_conflict', 'rate_limited'],
    async run({ db, carrier, caller, now, services }) {
      const hindrance = await testHindrance(db, carrier.id, services.clock.now())
      if (hindrance === 'running')
        return refuse('state_conflict', { name: `carrier ${carrier.name}`, value: 'being tested' })
      if (hindrance === 'used_up') return refuse('rate_limited', { value: `${TESTS_A_DAY} tests of a carrier in 24 h` })
      const row = await insertTestRun(
        db,
        {
          project_id: INSTALLATION,
          subject_type: 'carrier',
          subject_id: carrier.id,
          requested_kind: 'config_validation',
          requested_revision: carrier.revision,
          destination: null,
          run_by: caller.actor.name,
          scheduled: 0,
        },
        now,
      )
      return {
        status: 201,
        body: present(row, []),
        change: {
          resource: {
            type: 'carrier',
            id: carrier.id,
            name: carrier.name,
            href: `/operator/v1/carriers/${carrier.id}`,
          },
          summary: `Started a test of the carrier ${carrier.name}`,
          before: null,
          after: null,
        },
        wake: ['commands'] as const,
      }
    },
  }),

  route({
    method: 'get',
    path: '/carriers/{carrier_id}/tests',
    summary: 'List the last 100 tests of a carrier, newest first',
    scope: 'operator:read',
    context: 'organization',
    replies: { 200: listOf(CarrierTest) },
    async run({ db, carrier }) {
      const rows = await listTestRuns(db, carrier.id, MAX_HISTORY)
      const checks = await listChecks(
        db,
        rows.map(({ id }) => id),
      )
      return { status: 200, body: { data: rows.map(row => present(row, checks.get(row.id) ?? [])) } }
    },
  }),

  route({
    method: 'get',
    path: '/carriers/{carrier_id}/tests/{run_id}',
    summary: 'Read a test of a carrier with its checks so far',
    scope: 'operator:read',
    context: 'organization',
    replies: { 200: CarrierTest },
    async run({ db, carrier, params }) {
      const row = await findTestRun(db, carrier.id, params.run_id)
      if (!row) return notFound(`test ${params.run_id.slice(0, 60)}`)
      return { status: 200, body: present(row, (await listChecks(db, [row.id])).get(row.id) ?? []) }
    },
  }),
]

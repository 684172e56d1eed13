import { Command } from 'commander'
import { iso } from '../core/runtime/clock.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import {
  findTestRun,
  insertTestRun,
  listChecks,
  listTestRuns,
  TESTS_A_DAY,
  type TestCheckRow,
  testHindrance,
} from '../core/state/configuration/trunk-tests.ts'
import type { TrunkTestKind } from '../core/state/index.ts'
import { print } from './operator-print.ts'
import { WORDING } from './service/wording.ts'
import { ring, withState } from './state.ts'
import { fail, tell } from './terminal.ts'

const KINDS: readonly TrunkTestKind[] = ['config_validation', 'rtp_reachability', 'test_call']
const POLL_MS = 300
const LIMIT_MS = 125_000
const MARKS = { waiting: '...', passed: 'ok ', failed: 'BAD', skipped: '-  ' } as const

interface Options {
  readonly destination?: string
  readonly json?: true
}

/** Tests a trunk through the running signaling node and prints each check as it completes. */
export const testCommand = (): Command =>
  new Command('test')
    .argument('<trunk>', 'id or name')
    .argument('[kind]', `${KINDS.join(', ')}; without one: the last tests of the trunk`)
    .option('--destination <number>', 'number that is called, in E.164; test_call needs one')
    .option('--json', 'as JSON: the tests of the trunk, or the one that ran')
    .action((name: string, kind: string | undefined, options: Options) =>
      withState(async (state, config) => {
        const trunks = await state.db
          .selectFrom('trunk')
          .selectAll()
          .where(eb => eb.or([eb('id', '=', name), eb('name', '=', name)]))
          .where('status', 'not in', ['releasing', 'released'])
          .execute()
        const [trunk] = trunks
        if (!trunk || trunks.length > 1)
          throw new StartRefused(
            trunk ? `${name} is the name of several trunks: give the id` : `there is no trunk ${name}`,
          )
        if (kind === undefined) {
          const runs = await listTestRuns(state.db, trunk.id, 20)
          const shown = runs.map(({ started_at, result, requested_kind: test, finding }) => ({
            started_at,
            result,
            test,
            finding,
          }))
          return print(options.json ? runs : shown, options)
        }
        const requested_kind = KINDS.find(known => known === kind)
        if (!requested_kind) throw new StartRefused(`${kind} is no test; there are ${KINDS.join(', ')}`)
        const destination = options.destination ?? null
        if (destination !== null && !/^\+[1-9][0-9]{6,14}$/.test(destination))
          throw new StartRefused(`${destination} is not a number in E.164, such as +2348030000001`)
        if (requested_kind === 'test_call' && destination === null)
          throw new StartRefused('test_call needs --destination, the number that it calls')
        const { id } = await state.transaction(async trx => {
          const hindrance = await testHindrance(trx, trunk.id, state.clock.now())
          if (hindrance === 'running') throw new StartRefused(`${trunk.name} is being tested`)
          if (hindrance === 'used_up') throw new StartRefused(`${trunk.name} had ${TESTS_A_DAY} tests in 24 hours`)
          return insertTestRun(
            trx,
            {
              project_id: trunk.project_id,
              subject_type: 'trunk',
              subject_id: trunk.id,
              requested_kind,
              requested_revision: trunk.revision,
              destination,
              run_by: 'operator (command line)',
              scheduled: 0,
            },
            iso(state.clock.now()),
          )
        })
        await ring(config, 'commands')
        let after = 0
        for (let deadline = Date.now() + LIMIT_MS; ; ) {
          const run = await findTestRun(state.db, trunk.id, id)
          const checks: readonly TestCheckRow[] = (await listChecks(state.db, [id], after)).get(id) ?? []
          if (checks.length > 0) deadline = Date.now() + LIMIT_MS
          for (const check of checks) {
            after = check.sequence
            if (check.state !== 'waiting' && !options.json) tell(`${MARKS[check.state]} ${check.summary ?? ''}\n`)
          }
          if (run && run.result !== 'running') {
            if (run.result === 'failed') fail()
            if (options.json) return print(run, options)
            tell(`${run.result}: ${run.finding ?? ''}\n`)
            if (run.call_sid !== null) tell(`${WORDING.command} ladder ${run.call_sid} shows its messages\n`)
            return
          }
          if (Date.now() > deadline) throw new StartRefused('no signaling node took the test: is the platform running?')
          await new Promise(resolve => setTimeout(resolve, POLL_MS))
        }
      }),
    )

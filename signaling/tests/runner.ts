import { findingOf } from '../../core/domain/trunk-tests/index.ts'
import { iso } from '../../core/runtime/clock.ts'
import { ProjectPlaces } from '../../core/runtime/project-places.ts'
import { Sleeper } from '../../core/runtime/sleeper.ts'
import {
  claimTestRuns,
  finishTestRun,
  type TestRunRow,
  updateTestRun,
} from '../../core/state/configuration/trunk-tests.ts'
import type { AdmissionContext } from '../admission/context.ts'
import type { TrunkConfig } from '../trunks/snapshot.ts'
import { probeTargets, type TestCall, testCall } from './call.ts'
import { validateCarrier, validateConfiguration } from './configuration.ts'
import { TestReport } from './report.ts'

const POLL_MS = 1000
const AT_ONCE = 8

/**
 * Claims waiting tests of trunks and carriers, and runs them in the background, concurrently with the node's calls. A
 * project whose targets are silent leaves places to the others.
 */
export class TestRunner {
  readonly #ctx: AdmissionContext
  readonly #unheard: () => void
  readonly #places = new ProjectPlaces(AT_ONCE)
  readonly #sleeper: Sleeper

  constructor(ctx: AdmissionContext) {
    this.#ctx = ctx
    this.#sleeper = new Sleeper({
      work: () => this.#take(),
      failed: err => ctx.log.error({ err }, 'trunk tests could not be taken'),
      every: { clock: ctx.clock, period_ms: POLL_MS },
    })
    this.#unheard = ctx.bus.on('commands', () => void this.#sleeper.wake())
  }

  async stop(): Promise<void> {
    this.#unheard()
    await this.#sleeper.stop()
  }

  async #take(): Promise<void> {
    const { state, node_id, log, sip, media } = this.#ctx
    if (this.#ctx.draining() || !sip.connected || !media.connected) return
    for (const run of await claimTestRuns(state, node_id, this.#places)) {
      this.#places.take(run.project_id)
      void this.#run(run)
        .catch(async err => {
          log.error({ err, run_id: run.id, subject_id: run.subject_id }, 'a test failed unexpectedly')
          await this.#finish(
            run,
            false,
            'The test could not be carried out: an error of the platform; its log says more.',
          )
        })
        .finally(() => this.#places.give(run.project_id))
    }
  }

  async #run(run: TestRunRow): Promise<void> {
    const { state, clock, node_id, bus } = this.#ctx
    const { trunks, carriers } = this.#ctx.snapshot()
    const [trunk, carrier] = [trunks.get(run.subject_id), carriers.get(run.subject_id)]
    const revision = (trunk ?? carrier)?.revision
    if (revision === undefined)
      return this.#finish(
        run,
        false,
        `The signaling node does not know this ${run.subject_type}. Look at its configuration for an error.`,
      )
    await state.transaction(trx => updateTestRun(trx, run.id, { configuration_revision: revision }))
    const report = new TestReport({ state, clock, run_id: run.id, node_id, changed: () => bus.ring('jobs') })
    if (carrier) await validateCarrier(this.#ctx, carrier, run.requested_revision, report)
    const call = trunk ? await this.#carryOut(trunk, run, report) : null
    if (call)
      await state.transaction(trx => updateTestRun(trx, run.id, { call_sid: call.sid, call_summary: call.summary }))
    if (report.verdicts.length === 0)
      return this.#finish(run, false, 'The trunk has no enabled target to test. Add one, or enable one.')
    const { passed, finding } = findingOf(report.verdicts, carrier ? WELL_CARRIER : WELL[run.requested_kind])
    await this.#finish(run, passed, finding)
  }

  async #carryOut(trunk: TrunkConfig, run: TestRunRow, report: TestReport): Promise<TestCall | null> {
    switch (run.requested_kind) {
      case 'rtp_reachability':
        return probeTargets(this.#ctx, trunk, run, report)
      case 'test_call':
        return testCall(this.#ctx, trunk, run, report)
      case 'config_validation': {
        const row = await this.#ctx.state.db
          .selectFrom('trunk')
          .select('direction')
          .where('id', '=', trunk.id)
          .executeTakeFirst()
        const facts = { wanted_revision: run.requested_revision, direction: row?.direction ?? 'both' }
        await validateConfiguration(this.#ctx, trunk, facts, report)
        return null
      }
    }
  }

  async #finish(run: TestRunRow, passed: boolean, finding: string): Promise<void> {
    const { state, clock, bus } = this.#ctx
    const outcome = { result: passed ? 'passed' : 'failed', finding, finished_at: iso(clock.now()) } as const
    await state.transaction(trx => finishTestRun(trx, run.id, outcome))
    bus.ring('jobs')
  }
}

const WELL_CARRIER = 'The carrier is set up well: every check passed.'

const WELL = {
  config_validation: 'The trunk is set up well: every check passed.',
  rtp_reachability: 'Every target answers, and media comes and goes.',
  test_call: 'The call was answered, and media came and went.',
} as const

import type { Selectable } from 'kysely'
import { iso } from '../../runtime/clock.ts'
import { newId } from '../../runtime/ids.ts'
import type { ProjectPlaces } from '../../runtime/project-places.ts'
import type { Db, TrunkTestCheckTable, TrunkTestRunTable, Trx } from '../db.ts'
import type { State } from '../index.ts'

export type TestRunRow = Selectable<TrunkTestRunTable>
export type TestCheckRow = Selectable<TrunkTestCheckTable>

/** Retention of test runs. */
export const TEST_RETENTION_DAYS = 30
/** A run in which no check has ended for longer counts as lost with its node. */
const RUN_LIMIT_MS = 120_000

export async function insertTestRun(
  trx: Trx,
  run: Pick<
    TestRunRow,
    | 'project_id'
    | 'subject_type'
    | 'subject_id'
    | 'requested_kind'
    | 'requested_revision'
    | 'destination'
    | 'run_by'
    | 'scheduled'
  >,
  now: string,
): Promise<TestRunRow> {
  const row: TestRunRow = {
    ...run,
    id: `ttr_${newId.uuid()}`,
    result: 'running',
    finding: null,
    call_sid: null,
    call_summary: null,
    configuration_revision: null,
    node_id: null,
    started_at: now,
    finished_at: null,
  }
  await trx.insertInto('trunk_test_run').values(row).execute()
  return row
}

/** Finds a run of a trunk or carrier. */
export const findTestRun = (db: Db | Trx, subject_id: string, id: string): Promise<TestRunRow | undefined> =>
  db
    .selectFrom('trunk_test_run')
    .selectAll()
    .where('id', '=', id)
    .where('subject_id', '=', subject_id)
    .executeTakeFirst()

/** Lists the test runs of a trunk or carrier, newest first. */
export const listTestRuns = (db: Db | Trx, subject_id: string, limit: number): Promise<TestRunRow[]> =>
  db
    .selectFrom('trunk_test_run')
    .selectAll()
    .where('subject_id', '=', subject_id)
    .orderBy('started_at', 'desc')
    .orderBy('id')
    .limit(limit)
    .execute()

/** Lists the checks of runs in order of their last change. */
export async function listChecks(
  db: Db | Trx,
  run_ids: readonly string[],
  after_sequence = 0,
): Promise<Map<string, TestCheckRow[]>> {
  const found = new Map<string, TestCheckRow[]>(run_ids.map(id => [id, []]))
  if (run_ids.length === 0) return found
  const rows = await db
    .selectFrom('trunk_test_check')
    .selectAll()
    .where('run_id', 'in', [...run_ids])
    .where('sequence', '>', after_sequence)
    .orderBy('sequence')
    .execute()
  for (const row of rows) found.get(row.run_id)?.push(row)
  return found
}

async function lastSequence(db: Db | Trx, run_id: string): Promise<number> {
  const row = await db
    .selectFrom('trunk_test_check')
    .select(eb => eb.fn.max('sequence').as('sequence'))
    .where('run_id', '=', run_id)
    .executeTakeFirst()
  return Number(row?.sequence ?? 0)
}

/** Limit of manual tests per trunk or carrier and day, because each may ring a phone. */
export const TESTS_A_DAY = 20

/** Returns why no test may begin: one is running, or the day's are used up. Call it in the insert's transaction. */
export async function testHindrance(
  trx: Trx,
  subject_id: string,
  now_ms: number,
): Promise<'running' | 'used_up' | null> {
  const { asked, running } = await trx
    .selectFrom('trunk_test_run')
    .select(({ fn, eb }) => [
      fn.sum<number>(eb.case().when('scheduled', '=', 0).then(1).else(0).end()).as('asked'),
      fn.sum<number>(eb.case().when('result', '=', 'running').then(1).else(0).end()).as('running'),
    ])
    .where('subject_id', '=', subject_id)
    .where('started_at', '>', iso(now_ms - 86_400_000))
    .executeTakeFirstOrThrow()
  if (Number(running) > 0) return 'running'
  return Number(asked) >= TESTS_A_DAY ? 'used_up' : null
}

/** Claims runs that no node has taken and that there are places for, in order of their start. */
export async function claimTestRuns(
  state: State,
  node_id: string,
  places: Pick<ProjectPlaces, 'free' | 'full' | 'fitting'>,
): Promise<TestRunRow[]> {
  const full = places.full()
  const waiting = (db: Db | Trx) =>
    db
      .selectFrom('trunk_test_run')
      .selectAll()
      .where('result', '=', 'running')
      .where('node_id', 'is', null)
      .$if(full.length > 0, query => query.where('project_id', 'not in', full))
      .orderBy('started_at')
      .limit(places.free)
      .execute()
  if (places.free === 0 || (await waiting(state.db)).length === 0) return []
  return state.transaction(async trx => {
    const rows = places.fitting(await waiting(trx))
    for (const { id } of rows) await trx.updateTable('trunk_test_run').set({ node_id }).where('id', '=', id).execute()
    return rows.map(row => ({ ...row, node_id }))
  })
}

/** Saves a check with the run's next sequence number. */
export async function saveCheck(trx: Trx, check: Omit<TestCheckRow, 'sequence'>): Promise<void> {
  const row = { ...check, sequence: (await lastSequence(trx, check.run_id)) + 1 }
  await trx
    .insertInto('trunk_test_check')
    .values(row)
    .onConflict(conflict => conflict.column('id').doUpdateSet(row))
    .execute()
}

export async function updateTestRun(
  trx: Trx,
  id: string,
  changes: Partial<Pick<TestRunRow, 'configuration_revision' | 'call_sid' | 'call_summary'>>,
): Promise<void> {
  await trx.updateTable('trunk_test_run').set(changes).where('id', '=', id).execute()
}

/** Ends a run if it has not ended. */
export async function finishTestRun(
  trx: Trx,
  id: string,
  outcome: { readonly result: 'passed' | 'failed'; readonly finding: string; readonly finished_at: string },
): Promise<boolean> {
  const done = await trx
    .updateTable('trunk_test_run')
    .set(outcome)
    .where('id', '=', id)
    .where('result', '=', 'running')
    .executeTakeFirst()
  return done.numUpdatedRows > 0n
}

/** Ends runs that no node took or whose node is lost. */
export async function endLostTestRuns(db: Db, now_ms: number): Promise<void> {
  await db
    .updateTable('trunk_test_run')
    .set({
      result: 'failed',
      finding:
        'The signaling node that should have run this test is gone. Check that signaling runs, and start it again.',
      finished_at: iso(now_ms),
    })
    .where('result', '=', 'running')
    .where('started_at', '<', iso(now_ms - RUN_LIMIT_MS))
    // A run calls its targets one after the other: ten silent ones take longer than the limit.
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('trunk_test_check')
            .select('trunk_test_check.id')
            .whereRef('trunk_test_check.run_id', '=', 'trunk_test_run.id')
            .where('trunk_test_check.occurred_at', '>', iso(now_ms - RUN_LIMIT_MS)),
        ),
      ),
    )
    .execute()
}

const DAY_MS = 86_400_000

/** Deletes runs past their retention, a bounded number at a time. */
export async function forgetOldTestRuns(state: State, now_ms: number): Promise<void> {
  const old = await state.db
    .selectFrom('trunk_test_run')
    .select('id')
    .where('started_at', '<', iso(now_ms - TEST_RETENTION_DAYS * DAY_MS))
    .limit(500)
    .execute()
  if (old.length === 0) return
  const ids = old.map(row => row.id)
  await state.transaction(async trx => {
    await trx.deleteFrom('trunk_test_check').where('run_id', 'in', ids).execute()
    await trx.deleteFrom('trunk_test_run').where('id', 'in', ids).execute()
  })
}

/**
 * Returns enabled trunks with a target that have had no scheduled test for a day. The one with the oldest comes first,
 * so that none waits for ever where more are due than can be tested.
 */
export const trunksDueForTest = (db: Db, now_ms: number, limit: number) =>
  db
    .selectFrom('trunk')
    .select(['trunk.id', 'trunk.project_id', 'trunk.revision'])
    .where('trunk.status', '=', 'enabled')
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('termination_target')
          .select('termination_target.id')
          .whereRef('termination_target.trunk_id', '=', 'trunk.id')
          .where('termination_target.enabled', '=', 1),
      ),
    )
    .where('trunk.created_at', '<', iso(now_ms - DAY_MS))
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('trunk_test_run')
            .select('trunk_test_run.id')
            .whereRef('trunk_test_run.subject_id', '=', 'trunk.id')
            .where('trunk_test_run.scheduled', '=', 1)
            .where('trunk_test_run.started_at', '>', iso(now_ms - DAY_MS)),
        ),
      ),
    )
    // Without a test in the time that runs are kept, before all others: databases differ in where they put a null.
    .orderBy(({ fn, selectFrom, val }) =>
      fn.coalesce(
        selectFrom('trunk_test_run')
          .select(eb => eb.fn.max('trunk_test_run.started_at').as('last'))
          .whereRef('trunk_test_run.subject_id', '=', 'trunk.id')
          .where('trunk_test_run.scheduled', '=', 1),
        val(''),
      ),
    )
    .orderBy('trunk.id')
    .limit(limit)
    .execute()

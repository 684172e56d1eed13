import { daysOf, periodsBefore, readStored, type Statement } from '../../core/domain/billing/statement.ts'
import { dayOf, daysAnywhere } from '../../core/domain/rating/day.ts'
import { iso } from '../../core/runtime/clock.ts'
import { issueStatement, isUnsettled, listBillingDocuments, readBill } from '../../core/state/money/billing.ts'
import type { Reconciler } from './reconciler.ts'

/** How long a statement waits for unsettled calls. The charge of a later one is in the next month's ledger. */
const PATIENCE_MS = 3 * 86_400_000

/** Issues the statement of every finished month, once its last calls are settled. */
export const statements: Reconciler = {
  name: 'statements',
  period_ms: 600_000,
  runs: 'once',
  async run({ state, clock, log }) {
    const now_ms = clock.now()
    const organizations = await state.db.selectFrom('organization').selectAll().execute()
    for (const project of await state.db.selectFrom('project').selectAll().execute()) {
      const organization = organizations.find(({ id }) => id === project.organization_id)
      if (!organization) continue
      const zone = organization.time_zone
      const created_ms = Date.parse(project.created_at)
      const issued = new Map((await listBillingDocuments(state.db, project.id)).map(row => [row.period, row.body]))
      const may_be_over = periodsBefore(daysAnywhere(created_ms).first, daysAnywhere(now_ms).last)
      if (may_be_over.every(period => issued.has(period))) continue
      let before: Statement | undefined
      for (const period of periodsBefore(dayOf(created_ms, zone), dayOf(now_ms, zone))) {
        const body = issued.get(period)
        if (body !== undefined) {
          before = readStored(body)
          continue
        }
        const late = now_ms > Date.parse(daysOf(period).to) + PATIENCE_MS
        // The next statement begins where this one will end.
        if (!late && (await isUnsettled(state.db, project.id, period))) break
        before = await readBill(state.db, project, organization, period, before)
        const statement = before
        await state.transaction(trx => issueStatement(trx, statement, iso(now_ms)))
        log.info({ project_id: project.id, period }, 'a statement was issued')
      }
    }
  },
}

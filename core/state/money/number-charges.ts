import { sql } from 'kysely'
import { dayOf } from '../../domain/rating/index.ts'
import { iso } from '../../runtime/clock.ts'
import type { Db, Trx } from '../db.ts'
import type { State } from '../index.ts'
import { findOrganization, type ProjectRow } from '../people/organizations.ts'
import { adjustBalance } from './rates.ts'

/** Monthly charges for numbers (docs/http.md). */

/** The most numbers that one run charges. */
const BATCH = 500

/** The numbers of live projects that cost something each month. */
const pricedNumbers = (db: Db | Trx) =>
  db
    .selectFrom('number')
    .innerJoin('project', 'project.id', 'number.project_id')
    .innerJoin('organization', 'organization.id', 'project.organization_id')
    .where('number.status', '=', 'held')
    .where('number.monthly_minor', '>', 0)
    .where('project.sandbox', '=', 0)

/** The numbers of a time zone's live projects whose month has not been charged. */
function dueNumbers(db: Db | Trx, time_zone: string, now_ms: number) {
  const period = dayOf(now_ms, time_zone).slice(0, 7)
  const reference = sql<string>`number.id || ' ' || number.project_id || ' ' || ${period}`
  const due = pricedNumbers(db)
    .innerJoin('billing_account', 'billing_account.id', 'project.billing_account_id')
    .where('organization.time_zone', '=', time_zone)
    .where(eb =>
      eb.not(
        eb.exists(
          eb
            .selectFrom('ledger')
            .select('ledger.position')
            .where('ledger.kind', '=', 'number')
            .where('ledger.reference', '=', reference),
        ),
      ),
    )
  return { due, period, reference }
}

/** Sums what the account of a project owes for the running month of numbers that its projects hold, in minor units. */
export async function dueForNumbersMinor(
  trx: Trx,
  project: Pick<ProjectRow, 'organization_id' | 'billing_account_id'>,
  now_ms: number,
): Promise<number> {
  const organization = await findOrganization(trx, project.organization_id)
  if (!organization) return 0
  const { due } = dueNumbers(trx, organization.time_zone, now_ms)
  const row = await due
    .select(eb => eb.fn.sum<number>('number.monthly_minor').as('sum'))
    .where('project.billing_account_id', '=', project.billing_account_id)
    .executeTakeFirstOrThrow()
  return Number(row.sum ?? 0)
}

/**
 * Charges each number that a live project holds for the running month of its organization's time zone, in a transaction
 * of its own, once. The balance may become negative: the month was used. Returns the number of charges.
 */
export async function chargeNumbers(state: State, now_ms: number): Promise<number> {
  const zones = await pricedNumbers(state.db).select('organization.time_zone').distinct().execute()
  let charged = 0
  for (const { time_zone } of zones) {
    const { due, period, reference } = dueNumbers(state.db, time_zone, now_ms)
    const rows = await due
      .select(['number.e164', 'number.monthly_minor', 'project.id as project_id', 'project.billing_account_id'])
      .select(reference.as('reference'))
      .limit(BATCH)
      .execute()
    for (const { e164, monthly_minor, project_id, billing_account_id: id, reference } of rows)
      if (
        await state.transaction(trx =>
          adjustBalance(trx, {
            id,
            project_id,
            kind: 'number' as const,
            amount_minor: -monthly_minor,
            note: `${e164}, ${period}`,
            reference,
            now: iso(now_ms),
            once: true,
          }),
        )
      )
        charged += 1
  }
  return charged
}

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

/** A number whose month is due, and whose it is. */
interface Due {
  readonly e164: string
  readonly monthly_minor: number
  readonly project_id: string
  readonly billing_account_id: string
  readonly reference: string
}

const charge = (trx: Trx, due: Due, period: string, now_ms: number) =>
  adjustBalance(trx, {
    id: due.billing_account_id,
    project_id: due.project_id,
    kind: 'number' as const,
    amount_minor: -due.monthly_minor,
    note: `${due.e164}, ${period}`,
    reference: due.reference,
    now: iso(now_ms),
    once: true,
  })

/**
 * Charges the months that are due of the numbers of a project, in the transaction that gives it one. A number that was
 * given back before the background task came by would otherwise cost nothing.
 */
export async function chargeNumbersOf(
  trx: Trx,
  project: Pick<ProjectRow, 'id' | 'organization_id'>,
  now_ms: number,
): Promise<void> {
  const organization = await findOrganization(trx, project.organization_id)
  if (!organization) return
  const { due, period, reference } = dueNumbers(trx, organization.time_zone, now_ms)
  const rows = await due
    .where('project.id', '=', project.id)
    .select(['number.e164', 'number.monthly_minor', 'project.id as project_id', 'project.billing_account_id'])
    .select(reference.as('reference'))
    .execute()
  for (const row of rows) await charge(trx, row, period, now_ms)
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
    for (const row of rows) if (await state.transaction(trx => charge(trx, row, period, now_ms))) charged += 1
  }
  return charged
}

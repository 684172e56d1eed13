import { type Selectable, sql } from 'kysely'
import { prefixesOf } from '../../domain/policies/destinations.ts'
import type { ImportedRate } from '../../domain/rating/import.ts'
import { newId } from '../../runtime/ids.ts'
import type { BillingAccountTable, Db, LedgerTable, PriceBookTable, RateTable, Trx } from '../db.ts'

export type PriceBookRow = Selectable<PriceBookTable>
export type RateRow = Selectable<RateTable>
type BillingAccountRow = Selectable<BillingAccountTable>
type LedgerRow = Selectable<LedgerTable>

/** Whose book it is: a project's or, without one, the operator's; with a carrier, what that carrier takes. */
type Owner = Pick<PriceBookRow, 'project_id' | 'carrier_id'>

/**
 * Returns the newest book in force, the project's own before the operator's; of a carrier, its cost book. Of books with
 * one time the later import wins, as in the procedures (admission/destination.ts, ceilings/costs.ts).
 */
export const effectiveBook = (
  db: Db | Trx,
  { project_id, carrier_id }: Owner,
  direction: PriceBookTable['direction'],
  now: string,
): Promise<PriceBookRow | undefined> =>
  db
    .selectFrom('price_book')
    .selectAll()
    .where('carrier_id', carrier_id === null ? 'is' : '=', carrier_id)
    .where(eb => eb.or([eb('project_id', '=', project_id), eb('project_id', 'is', null)]))
    .where('direction', '=', direction)
    .where('effective_from', '<=', now)
    .orderBy(sql`project_id is null`)
    .orderBy('effective_from', 'desc')
    .orderBy('revision', 'desc')
    .limit(1)
    .executeTakeFirst()

/** Returns the book of what a project pays. */
export const effectivePriceBook = (
  db: Db | Trx,
  project_id: string | null,
  direction: PriceBookTable['direction'],
  now: string,
): Promise<PriceBookRow | undefined> => effectiveBook(db, { project_id, carrier_id: null }, direction, now)

/** A book to be. Without a carrier it is a price book. */
export type NewBook = Omit<PriceBookRow, 'id' | 'revision' | 'carrier_id'> & Partial<Pick<PriceBookRow, 'carrier_id'>>

/** Finds the rate of the longest prefix of `digits` (without plus). */
export const lookupRate = (db: Db | Trx, price_book_id: string, digits: string): Promise<RateRow | undefined> =>
  db
    .selectFrom('rate')
    .selectAll()
    .where('price_book_id', '=', price_book_id)
    .where('prefix', 'in', prefixesOf(digits))
    .orderBy(sql`length(prefix)`, 'desc')
    .limit(1)
    .executeTakeFirst()

export const listRates = (db: Db | Trx, price_book_id: string): Promise<RateRow[]> =>
  db.selectFrom('rate').selectAll().where('price_book_id', '=', price_book_id).orderBy('prefix').execute()

/**
 * Lists the rates of a book that also have a route: a carrier route that contains the prefix or lies within it, or any
 * enabled target of a trunk of the project, which takes every number.
 */
export async function listCoverage(db: Db | Trx, project_id: string, book: PriceBookRow): Promise<RateRow[]> {
  const own = await db
    .selectFrom('termination_target')
    .innerJoin('trunk', 'trunk.id', 'termination_target.trunk_id')
    .select('termination_target.id')
    .where('trunk.project_id', '=', project_id)
    .where('trunk.status', '=', 'enabled')
    .where('termination_target.enabled', '=', 1)
    .limit(1)
    .execute()
  const rates = await listRates(db, book.id)
  if (own.length > 0) return rates
  const routes = await db
    .selectFrom('carrier_route')
    .innerJoin('carrier', 'carrier.id', 'carrier_route.carrier_id')
    .innerJoin('project', 'project.sandbox', 'carrier.sandbox')
    .select('carrier_route.prefix')
    .distinct()
    .where('project.id', '=', project_id)
    .where('carrier.enabled', '=', 1)
    .execute()
  const prefixes = new Set(routes.map(({ prefix }) => prefix))
  const within = new Set(routes.flatMap(({ prefix }) => prefixesOf(prefix)))
  return rates.filter(({ prefix }) => within.has(prefix) || prefixesOf(prefix).some(each => prefixes.has(each)))
}

const ROWS_PER_INSERT = 500

/** Writes a new price book with its few rates. Books are immutable: a new price needs a new book. */
export async function insertPriceBook(trx: Trx, book: NewBook, rates: readonly ImportedRate[]): Promise<PriceBookRow> {
  const row = await insertBookOf(trx, `pbk_${newId.uuid()}`, book)
  for (let at = 0; at < rates.length; at += ROWS_PER_INSERT)
    await trx
      .insertInto('rate')
      .values(
        rates
          .slice(at, at + ROWS_PER_INSERT)
          .map(rate => ({ id: `rat_${newId.uuid()}`, price_book_id: row.id, ...rate })),
      )
      .execute()
  return row
}

/** Writes a price book for rates that bear its id. */
export async function insertBookOf(
  trx: Trx,
  id: string,
  { carrier_id = null, ...book }: NewBook,
): Promise<PriceBookRow> {
  const before = await trx
    .selectFrom('price_book')
    .select(eb => eb.fn.max('revision').as('revision'))
    .where('direction', '=', book.direction)
    .where('project_id', book.project_id === null ? 'is' : '=', book.project_id)
    .where('carrier_id', carrier_id === null ? 'is' : '=', carrier_id)
    .executeTakeFirst()
  const row: PriceBookRow = { ...book, carrier_id, id, revision: Number(before?.revision ?? 0) + 1 }
  await trx.insertInto('price_book').values(row).execute()
  return row
}

/** Finds a price book, or with `cost` a cost book. */
export const findBook = (db: Db | Trx, id: string, { cost }: { readonly cost: boolean }) =>
  db
    .selectFrom('price_book')
    .selectAll()
    .where('id', '=', id)
    .where('carrier_id', cost ? 'is not' : 'is', null)
    .executeTakeFirst()

/** Lists the price books, or with `cost` the cost books, after an id, by id. */
export function listBooks(
  db: Db,
  page: { readonly cost: boolean; readonly carrier_id?: string; readonly limit: number; readonly after?: string },
): Promise<PriceBookRow[]> {
  let query = db
    .selectFrom('price_book')
    .selectAll()
    .where('carrier_id', page.cost ? 'is not' : 'is', null)
    .orderBy('id')
    .limit(page.limit)
  if (page.carrier_id !== undefined) query = query.where('carrier_id', '=', page.carrier_id)
  return (page.after === undefined ? query : query.where('id', '>', page.after)).execute()
}

export const countRates = async (db: Db | Trx, price_book_id: string): Promise<number> => {
  const { count } = await db
    .selectFrom('rate')
    .select(eb => eb.fn.countAll<number>().as('count'))
    .where('price_book_id', '=', price_book_id)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Lists the rates of a book after a prefix, by prefix. */
export function pageOfRates(
  db: Db,
  price_book_id: string,
  page: { readonly limit: number; readonly after?: string },
): Promise<RateRow[]> {
  const query = db
    .selectFrom('rate')
    .selectAll()
    .where('price_book_id', '=', price_book_id)
    .orderBy('prefix')
    .limit(page.limit)
  return (page.after === undefined ? query : query.where('prefix', '>', page.after)).execute()
}

export const findBillingAccount = (db: Db | Trx, id: string): Promise<BillingAccountRow | undefined> =>
  db.selectFrom('billing_account').selectAll().where('id', '=', id).executeTakeFirst()

/**
 * Creates the account that pays for a project, or changes its payment terms. Only `adjustBalance` changes the balance.
 */
export async function putBillingAccount(
  trx: Trx,
  account: Pick<BillingAccountRow, 'id' | 'name' | 'currency' | 'prepaid' | 'credit_minor'>,
): Promise<void> {
  const { id, ...set } = account
  await trx
    .insertInto('billing_account')
    .values({ id, ...set, balance_minor: 0, held_minor: 0 })
    .onConflict(conflict => conflict.column('id').doUpdateSet(set))
    .execute()
}

interface Booking {
  readonly id: string
  /** The project that the line is about; null when it is about the account. */
  readonly project_id?: string | null
  readonly kind: 'top_up' | 'adjustment' | 'number'
  readonly amount_minor: number
  readonly note: string | null
  readonly reference?: string | null
  readonly now: string
}

/** Credits or debits an account and writes the ledger line. */
export function adjustBalance(trx: Trx, booking: Booking): Promise<BillingAccountRow>
/** With `once`, does nothing when there is a line of this kind and reference, and returns undefined. */
export function adjustBalance(
  trx: Trx,
  booking: Booking & { readonly once: true },
): Promise<BillingAccountRow | undefined>
export async function adjustBalance(
  trx: Trx,
  { id, project_id = null, kind, amount_minor, note, reference = null, now, once }: Booking & { readonly once?: true },
): Promise<BillingAccountRow | undefined> {
  if (once) {
    const line = trx.selectFrom('ledger').select('position').where('kind', '=', kind).where('reference', '=', reference)
    if (await line.executeTakeFirst()) return undefined
  }
  const account = await trx
    .updateTable('billing_account')
    .set(eb => ({ balance_minor: eb('balance_minor', '+', amount_minor) }))
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
  await trx
    .insertInto('ledger')
    .values({
      billing_account_id: id,
      project_id,
      kind,
      amount_minor,
      balance_after_minor: account.balance_minor,
      call_sid: null,
      note,
      reference,
      at: now,
    })
    .execute()
  return account
}

/** Lists the ledger lines of an account before a position, newest first. */
export function listLedger(
  db: Db | Trx,
  billing_account_id: string,
  page: { limit: number; before?: number },
): Promise<LedgerRow[]> {
  const query = db
    .selectFrom('ledger')
    .selectAll()
    .where('billing_account_id', '=', billing_account_id)
    .orderBy('position', 'desc')
    .limit(page.limit)
  return (page.before === undefined ? query : query.where('position', '<', page.before)).execute()
}

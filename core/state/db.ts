import type { Insertable, Kysely, OrderByItemBuilder, Transaction } from 'kysely'
import type { Schema } from './schema/index.ts'

/** The database, or a transaction on it. Every repository function takes it as its first argument. */
export type Db = Kysely<Schema>
export type Trx = Transaction<Schema>
/** A row of a table as an insert takes it. */
export type NewRow<Table> = Insertable<Table>

// Orders by what may be null, which engines take for the least or for the greatest value. Columns that are never null
// need none: PostgreSQL would not use their index.

export const ascendingFromNull = (order: OrderByItemBuilder): OrderByItemBuilder => order.asc().nullsFirst()
export const descendingToNull = (order: OrderByItemBuilder): OrderByItemBuilder => order.desc().nullsLast()

export type * from './schema/index.ts'

import type { Insertable, Kysely, Transaction } from 'kysely'
import type { Schema } from './schema/index.ts'

/** The database, or a transaction on it. Every repository function takes it as its first argument. */
export type Db = Kysely<Schema>
export type Trx = Transaction<Schema>
/** A row of a table as an insert takes it. */
export type NewRow<Table> = Insertable<Table>

export type * from './schema/index.ts'

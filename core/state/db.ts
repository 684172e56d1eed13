import type { Insertable, Kysely, Transaction } from 'kysely'
import type { Schema } from './schema/index.ts'

/** The database, or a transaction on it: what every repository function takes as its first argument. */
export type Db = Kysely<Schema>
export type Trx = Transaction<Schema>
/** A row of a table as it is put there. */
export type NewRow<Table> = Insertable<Table>

export type * from './schema/index.ts'

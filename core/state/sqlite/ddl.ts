import { sql } from 'kysely'

/** Ends a `create table` statement: the table stores its rows in primary-key order. */
export const CLUSTERED = sql`without rowid`

import { sql } from 'kysely'

/** At the end of `create table`: rows lie in the order of the primary key. */
export const CLUSTERED = sql`without rowid`

import { sql } from 'kysely'
import { queueWrite } from '../port.ts'
import type { AnyDb } from './create-tables.ts'

/**
 * The usage and the peak of a subaccount or subtrunk are read from its leases, among those of all calls of 30 days. The
 * indexes are partial: a call that uses neither writes nothing to them.
 */
export async function up(db: AnyDb): Promise<void> {
  for (const level of ['subaccount', 'subtrunk']) {
    const index = db.schema
      .createIndex(`lease_${level}`)
      .on('lease')
      .columns([`${level}_id`, 'begun_at'])
    await queueWrite(db, index.where(sql<boolean>`${sql.ref(`${level}_id`)} is not null`))
  }
}

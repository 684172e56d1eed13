import { sql } from 'kysely'
import { clusteredIn } from '../port.ts'
import type { AnyDb } from './create-tables.ts'

/** Tables that the procedures of calls read and people change. */
const TABLES = [
  ...['organization', 'project', 'project_ceiling', 'subaccount', 'trunk', 'trunk_setting', 'subtrunk', 'delegation'],
  ...['number', 'policy_attachment', 'outbound_policy', 'policy_rule', 'price_book', 'webhook_endpoint'],
]
/** A refused call counts in its containment, which changes nothing for others. */
const CONTAINMENT = 'insert or delete or update of project_id, trunk_id, prefix, starts_at, expires_at, released_at'

/**
 * On PostgreSQL, triggers record each change of the configuration, also one by psql. A process keeps what it has read
 * until the next change. A transaction records one change, because thousands of versions of one row would be slow. On
 * SQLite, processes tell each other of changes.
 */
export async function up(db: AnyDb): Promise<void> {
  if (clusteredIn(db) !== null) return
  await sql`create table if not exists configuration_change (
    id bigint primary key, version text not null, writer text not null)`.execute(db)
  await sql`insert into configuration_change (id, version, writer) values (1, gen_random_uuid()::text, '')
    on conflict (id) do nothing`.execute(db)
  await sql`create or replace function configuration_changed() returns trigger language plpgsql as
    'declare own text := pg_current_xact_id()::text || now()::text;
    begin
      update configuration_change set version = gen_random_uuid()::text, writer = own where id = 1 and writer <> own;
      return null;
    end'`.execute(db)
  const on = [...TABLES.map(table => [table, 'insert or update or delete']), ['containment', CONTAINMENT]] as const
  for (const [table = '', what = ''] of on) {
    await sql`create or replace trigger configuration_changed after ${sql.raw(what)} on ${sql.table(table)}
      for each statement execute function configuration_changed()`.execute(db)
    await sql`create or replace trigger configuration_emptied after truncate on ${sql.table(table)}
      for each statement execute function configuration_changed()`.execute(db)
  }
}

import { sql } from 'kysely'
import { type AnyDb, createTable } from './columns.ts'

/** Where each organization's audit chain ends: what was cut off at its end is missed. */
export async function up(db: AnyDb): Promise<void> {
  await createTable(db, 'audit_head', { key: 'organization_id', text: 'hash', integer: 'events' })
  await sql`
    insert into audit_head (organization_id, hash, events)
    select last.organization_id, last.hash, ends.events
    from (
      select organization_id, max(position) as position, count(*) as events from audit_event group by organization_id
    ) as ends
    join audit_event as last on last.position = ends.position`.execute(db)
}

import { sql } from 'kysely'
import type { AnyDb } from './columns.ts'

// A call that another tenant's peer made is told as one from the network; it kept that tenant's trunk before.

export async function up(db: AnyDb): Promise<void> {
  await db.schema.alterTable('call').addColumn('foreign_caller', 'integer').execute()
  await sql`update call set foreign_caller = 1, trunk_id = null where direction = 'inbound' and exists (
    select 1 from trunk t where t.id = call.trunk_id and t.project_id <> call.project_id)`.execute(db)
  await sql`update cdr set trunk_id = null where call_sid in (
    select sid from call where foreign_caller = 1)`.execute(db)
}

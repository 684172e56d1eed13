import type { AnyDb } from './columns.ts'
import { frozenRange, frozenRangeKey } from './frozen-ranges.ts'

/** Sources are found by the addresses that they hold: a claim is judged by those that it overlaps, not by all. */
export async function up(db: AnyDb): Promise<void> {
  await db.schema
    .alterTable('trunk_source')
    .addColumn('range_key', 'text', column => column.notNull().defaultTo(''))
    .execute()
  for (const { id, cidr } of await db.selectFrom('trunk_source').select(['id', 'cidr']).execute()) {
    const range = frozenRange(cidr)
    if (!range) continue
    await db
      .updateTable('trunk_source')
      .set({ range_key: frozenRangeKey(range) })
      .where('id', '=', id)
      .execute()
  }
  await db.schema
    .createIndex('trunk_source_range')
    .on('trunk_source')
    .columns(['range_key', 'standing', 'enabled'])
    .execute()
}

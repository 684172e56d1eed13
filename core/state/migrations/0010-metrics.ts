import type { Kysely } from 'kysely'

const FIGURES = [
  'attempts',
  'answered',
  'answered_seconds',
  'pdd_calls',
  'pdd_ms',
  'measured_calls',
  'no_media_calls',
  'one_way_calls',
  'transcoded_calls',
  'packets_received',
  'packets_lost',
  'jitter_legs',
  'jitter_us',
  'mos_legs',
  'mos_thousandths',
]

/** Metrics of trunks by minute and by hour, and the indexes by which call history and recordings are listed. */
// biome-ignore lint/suspicious/noExplicitAny: a migration sees the schema of its own time, not today's.
export async function up(db: Kysely<any>): Promise<void> {
  let steps = db.schema
    .createTable('trunk_step')
    .addColumn('trunk_id', 'text', column => column.notNull())
    .addColumn('step_ms', 'bigint', column => column.notNull())
    .addColumn('begin_ms', 'bigint', column => column.notNull())
  for (const figure of FIGURES) steps = steps.addColumn(figure, 'bigint', column => column.notNull())
  await steps.addPrimaryKeyConstraint('trunk_step_key', ['trunk_id', 'step_ms', 'begin_ms']).execute()
  await db.schema
    .createTable('trunk_step_failure')
    .addColumn('trunk_id', 'text', column => column.notNull())
    .addColumn('step_ms', 'bigint', column => column.notNull())
    .addColumn('begin_ms', 'bigint', column => column.notNull())
    .addColumn('platform_reason', 'text', column => column.notNull())
    .addColumn('sip_code', 'bigint', column => column.notNull())
    .addColumn('calls', 'bigint', column => column.notNull())
    .addPrimaryKeyConstraint('trunk_step_failure_key', [
      'trunk_id',
      'step_ms',
      'begin_ms',
      'platform_reason',
      'sip_code',
    ])
    .execute()
  for (const table of ['trunk_step', 'trunk_step_failure'])
    await db.schema.createIndex(`${table}_age`).on(table).columns(['step_ms', 'begin_ms']).execute()
  await db.schema.createIndex('call_trunk_position').on('call').columns(['trunk_id', 'position']).execute()
  await db.schema
    .createIndex('recording_project_created')
    .on('recording')
    .columns(['project_id', 'created_at', 'sid'])
    .execute()
}

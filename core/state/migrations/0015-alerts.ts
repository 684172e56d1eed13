import { type Kysely, sql } from 'kysely'

// biome-ignore lint/suspicious/noExplicitAny: a migration sees the schema of its own time, not today's.
type AnyDb = Kysely<any>

/** A table whose names end in `?` where they may be null. */
async function createTable(db: AnyDb, name: string, key: readonly string[], text: string, integer = ''): Promise<void> {
  let table = db.schema.createTable(name)
  for (const [names, type] of [
    [text, 'text'],
    [integer, 'bigint'],
  ] as const)
    for (const word of names.split(' ').filter(word => word !== ''))
      table = word.endsWith('?')
        ? table.addColumn(word.slice(0, -1), type)
        : table.addColumn(word, type, column => column.notNull())
  await table.addPrimaryKeyConstraint(`${name}_key`, [...key] as never[]).execute()
}

/** Alerts, their policies and notifications; what is normal for a trunk: destinations and sources. */
export async function up(db: AnyDb): Promise<void> {
  await createTable(
    db,
    'alert_policy',
    ['id', 'revision'],
    'id organization_id kind channels scope threshold resolution updated_at updated_by',
    'revision newest enabled platform_ceiling_minor? platform_ceiling_window_seconds?',
  )
  await sql`create unique index alert_policy_newest on alert_policy (organization_id, kind) where newest = 1`.execute(
    db,
  )

  await createTable(
    db,
    'alert',
    ['id'],
    'id organization_id project_id kind severity state source_state policy_id? dedupe_key reason remediation ' +
      'subject_type subject_id subject_name trunk_id? containment_id? evidence suggested_actions channels fired_at ' +
      'acknowledged_at? acknowledged_by? resolved_at? resolved_why? below_since? updated_at',
    'policy_revision? successes version?',
  )
  await sql`create unique index alert_open on alert (dedupe_key) where resolved_at is null`.execute(db)
  await db.schema.createIndex('alert_project').on('alert').columns(['project_id', 'fired_at']).execute()

  await createTable(
    db,
    'alert_setting',
    ['project_id'],
    'project_id email_recipients? sms_recipients quiet_from? quiet_to? updated_at',
    'revision',
  )
  await createTable(
    db,
    'alert_notification',
    ['id'],
    'id project_id alert_id event channel recipient subject body state next_attempt_at lease_until? last_error? ' +
      'created_at delivered_at?',
    'attempts',
  )
  await sql`create index alert_notification_waiting
    on alert_notification (next_attempt_at) where state = 'pending'`.execute(db)
  await db.schema.createIndex('alert_notification_alert').on('alert_notification').column('alert_id').execute()

  await createTable(
    db,
    'destination_profile',
    ['trunk_id', 'prefix'],
    'trunk_id prefix project_id first_seen_at last_seen_at last_night?',
    'nights',
  )
  await createTable(
    db,
    'trunk_source_seen',
    ['trunk_id', 'address'],
    'trunk_id address project_id first_seen_at last_seen_at',
    'calls',
  )
  await createTable(db, 'alert_cursor', ['name'], 'name', 'position')
  await db.schema.createIndex('reservation_begun').on('reservation').column('begun_at').execute()
}

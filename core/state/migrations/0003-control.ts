import { type Kysely, sql } from 'kysely'

// biome-ignore lint/suspicious/noExplicitAny: a migration sees the schema of its own time, not today's.
type AnyDb = Kysely<any>

/** Columns by type; a name that ends in `?` may be null. */
interface Columns {
  readonly key?: string
  readonly counted?: string
  readonly text?: string
  readonly integer?: string
}

async function createTable(db: AnyDb, name: string, columns: Columns): Promise<void> {
  let table = db.schema.createTable(name)
  if (columns.key) table = table.addColumn(columns.key, 'text', column => column.primaryKey().notNull())
  if (columns.counted)
    table = table.addColumn(columns.counted, 'integer', column => column.primaryKey().autoIncrement())
  for (const [names, type] of [
    [columns.text, 'text'],
    [columns.integer, 'bigint'],
  ] as const)
    for (const word of names?.split(' ') ?? [])
      table = word.endsWith('?')
        ? table.addColumn(word.slice(0, -1), type)
        : table.addColumn(word, type, column => column.notNull())
  await table.execute()
}

export async function up(db: AnyDb): Promise<void> {
  await createTable(db, 'audit_event', {
    counted: 'position',
    text:
      'id organization_id project_id? at actor_type actor_id? actor_name actor_detail? category kind action summary detail? ' +
      'resource_type resource_id resource_name resource_href? trunk_id? request_id? changes previous_hash hash',
    integer: 'from_revision? to_revision?',
  })
  await db.schema.createIndex('audit_event_id').on('audit_event').column('id').unique().execute()
  await db.schema
    .createIndex('audit_event_organization')
    .on('audit_event')
    .columns(['organization_id', 'position'])
    .execute()

  await createTable(db, 'webhook_endpoint', {
    key: 'id',
    text:
      'project_id url description? event_kinds secret_sealed previous_secret_sealed? previous_secret_retires_at? ' +
      'created_at updated_at deleted_at?',
    integer: 'enabled revision',
  })
  await db.schema.createIndex('webhook_endpoint_project').on('webhook_endpoint').column('project_id').execute()
  await createTable(db, 'webhook_delivery', {
    counted: 'position',
    text:
      'id endpoint_id project_id event_id event_kind payload state next_attempt_at lease_until? last_error? ' +
      'last_attempt_at? delivered_at? expires_at created_at',
    integer: 'attempts last_status?',
  })
  await db.schema.createIndex('webhook_delivery_id').on('webhook_delivery').column('id').unique().execute()
  await db.schema
    .createIndex('webhook_delivery_endpoint')
    .on('webhook_delivery')
    .columns(['endpoint_id', 'position'])
    .execute()
  await sql`create index webhook_delivery_waiting
    on webhook_delivery (next_attempt_at) where state = 'pending'`.execute(db)

  await createTable(db, 'console_session', {
    key: 'id_hash',
    text: 'member_id csrf_hash created_at last_seen_at expires_at address',
  })
  await db.schema.createIndex('console_session_member').on('console_session').column('member_id').execute()
  await createTable(db, 'member_security', {
    key: 'member_id',
    text: 'totp_sealed? locked_until?',
    integer: 'totp_enabled totp_last_step failed_attempts',
  })
  await createTable(db, 'recording_consent', { key: 'project_id', text: 'accepted_at accepted_by terms_version' })
  await db.schema.createIndex('idempotency_expiry').on('idempotency').column('expires_at').execute()
}

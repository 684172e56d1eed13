import { type CreateTableBuilder, type Kysely, sql } from 'kysely'

// biome-ignore lint/suspicious/noExplicitAny: a migration sees the schema of its own time, not today's.
type AnyDb = Kysely<any>
type Table = CreateTableBuilder<string, string>

const text = (table: Table, ...names: string[]): Table =>
  names.reduce<Table>((t, name) => t.addColumn(name, 'text', column => column.notNull()), table)
const textOrNull = (table: Table, ...names: string[]): Table =>
  names.reduce<Table>((t, name) => t.addColumn(name, 'text'), table)
const integer = (table: Table, ...names: string[]): Table =>
  names.reduce<Table>((t, name) => t.addColumn(name, 'bigint', column => column.notNull()), table)
const integerOrNull = (table: Table, ...names: string[]): Table =>
  names.reduce<Table>((t, name) => t.addColumn(name, 'bigint'), table)
const keyed = (db: AnyDb, name: string, key = 'id'): Table =>
  db.schema.createTable(name).addColumn(key, 'text', column => column.primaryKey().notNull())
/** A growing integer key: `position` of a list, or the order of a queue. */
const counted = (db: AnyDb, name: string, key = 'id'): Table =>
  db.schema.createTable(name).addColumn(key, 'integer', column => column.primaryKey().autoIncrement())

export async function up(db: AnyDb): Promise<void> {
  await organizations(db)
  await trunks(db)
  await carriers(db)
  await voice(db)
  await calls(db)
  await operations(db)
}

async function organizations(db: AnyDb): Promise<void> {
  await text(keyed(db, 'organization'), 'name', 'time_zone', 'created_at').execute()
  await integer(
    text(
      keyed(db, 'project'),
      'organization_id',
      'name',
      'status',
      'currency',
      'billing_account_id',
      'billing_effective_from',
      'created_at',
    ),
    'sandbox',
    'billing_assignment_revision',
  ).execute()
  await integer(
    text(keyed(db, 'member'), 'organization_id', 'email', 'password_hash', 'role', 'created_at'),
    'operator',
  ).execute()
  await db.schema.createIndex('member_email').on('member').column('email').unique().execute()
  await textOrNull(
    text(keyed(db, 'api_key'), 'project_id', 'public_id', 'secret_hash', 'name', 'role', 'scopes', 'created_at'),
    'subaccount_id',
    'expires_at',
    'retires_at',
    'rotated_from_id',
    'revoked_at',
    'last_used_at',
  ).execute()
  await db.schema.createIndex('api_key_public_id').on('api_key').column('public_id').unique().execute()
}

async function trunks(db: AnyDb): Promise<void> {
  await textOrNull(
    integer(
      text(
        keyed(db, 'trunk'),
        'project_id',
        'name',
        'status',
        'direction',
        'auth_mode',
        'source_validation',
        'media_security',
        'codecs',
        'signaling_fqdn',
        'created_at',
        'updated_at',
      ),
      'require_tls',
      'concurrency',
      'cps',
      'max_call_duration_seconds',
      'revision',
    ),
    'subaccount_id',
  ).execute()
  await db.schema.createIndex('trunk_project').on('trunk').columns(['project_id', 'name']).execute()
  await integer(
    text(keyed(db, 'trunk_source'), 'trunk_id', 'cidr', 'created_at'),
    'enabled',
    'selector_precedence',
  ).execute()
  await db.schema.createIndex('trunk_source_trunk').on('trunk_source').column('trunk_id').execute()
  await textOrNull(
    integer(
      text(keyed(db, 'digest_credential'), 'trunk_id', 'realm', 'username', 'ha1_md5', 'ha1_sha256', 'created_at'),
      'enabled',
    ),
    'new_applied_at',
    'previous_retires_at',
    'revoked_at',
    'rotated_from_id',
    'valid_until',
  ).execute()
  await db.schema.createIndex('digest_credential_trunk').on('digest_credential').column('trunk_id').execute()
  await db.schema.createIndex('digest_credential_user').on('digest_credential').columns(['username', 'realm']).execute()
  await integer(
    text(keyed(db, 'termination_target'), 'trunk_id', 'sip_uri', 'transport', 'created_at', 'updated_at'),
    'priority',
    'weight',
    'enabled',
  ).execute()
  await db.schema.createIndex('termination_target_trunk').on('termination_target').column('trunk_id').execute()
}

async function carriers(db: AnyDb): Promise<void> {
  await integer(text(keyed(db, 'carrier'), 'name', 'codecs', 'created_at'), 'enabled', 'sandbox', 'revision').execute()
  await text(keyed(db, 'carrier_source'), 'carrier_id', 'cidr').execute()
  await integer(
    text(keyed(db, 'carrier_target'), 'carrier_id', 'sip_uri', 'transport'),
    'priority',
    'weight',
    'enabled',
  ).execute()
  await integer(text(keyed(db, 'carrier_route'), 'carrier_id', 'prefix'), 'priority', 'cost_minor').execute()
}

async function voice(db: AnyDb): Promise<void> {
  await integer(
    text(
      keyed(db, 'voice_account', 'project_id'),
      'account_sid',
      'auth_token_sealed',
      'key_id',
      'status',
      'call_event_history',
      'created_at',
    ),
    'revision',
  ).execute()
  await db.schema.createIndex('voice_account_sid').on('voice_account').column('account_sid').unique().execute()
  await integer(
    textOrNull(
      text(
        keyed(db, 'voice_application'),
        'project_id',
        'name',
        'voice_url',
        'voice_method',
        'fallback_method',
        'status_callback_method',
        'created_at',
        'updated_at',
      ),
      'fallback_url',
      'status_callback_url',
      'deleted_at',
    ),
    'revision',
  ).execute()
  await db.schema
    .createIndex('voice_application_project')
    .on('voice_application')
    .columns(['project_id', 'name'])
    .execute()
  await integer(
    textOrNull(
      text(keyed(db, 'number'), 'e164', 'status', 'created_at', 'updated_at'),
      'project_id',
      'route_kind',
      'route_id',
      'quarantined_until',
    ),
    'revision',
  ).execute()
  await db.schema.createIndex('number_e164').on('number').column('e164').unique().execute()
  await db.schema.createIndex('number_project').on('number').column('project_id').execute()
  await db.schema.createIndex('number_route').on('number').columns(['route_kind', 'route_id']).execute()
}

async function calls(db: AnyDb): Promise<void> {
  await integerOrNull(
    textOrNull(
      text(
        counted(db, 'call', 'position').addColumn('sid', 'text', column => column.notNull().unique()),
        'project_id',
        'origin',
        'direction',
        'from_number',
        'to_number',
        'status',
        'queued_at',
        'updated_at',
      ),
      'account_sid',
      'parent_call_sid',
      'trunk_id',
      'carrier_id',
      'number_id',
      'application_id',
      'sip_call_id',
      'request',
      'node_id',
      'initiated_at',
      'ringing_at',
      'answered_at',
      'ended_at',
      'reason',
      'ended_by',
      'decision_trace',
    ),
    'duration_seconds',
    'sip_code',
  ).execute()
  await db.schema.createIndex('call_account').on('call').columns(['account_sid', 'position']).execute()
  await db.schema.createIndex('call_project').on('call').columns(['project_id', 'position']).execute()
  await db.schema.createIndex('call_parent').on('call').column('parent_call_sid').execute()
  await sql`create index call_live on call (node_id) where ended_at is null`.execute(db)
  await integerOrNull(
    integer(
      textOrNull(
        text(
          keyed(db, 'cdr', 'call_sid'),
          'project_id',
          'origin',
          'direction',
          'from_number',
          'to_number',
          'status',
          'started_at',
          'ended_at',
        ),
        'trunk_id',
        'carrier_id',
        'reason',
        'ended_by',
        'answered_at',
        'media',
      ),
      'duration_seconds',
    ),
    'sip_code',
    'pdd_ms',
  ).execute()
  await db.schema.createIndex('cdr_trunk').on('cdr').columns(['trunk_id', 'ended_at']).execute()
  await integerOrNull(
    textOrNull(
      integer(text(counted(db, 'call_attempt'), 'call_sid', 'target', 'transport', 'started_at'), 'sequence'),
      'address',
      'provisional_at',
      'ended_at',
      'result',
      'reason',
    ),
    'sip_code',
  ).execute()
  await db.schema.createIndex('call_attempt_call').on('call_attempt').column('call_sid').execute()
  await integerOrNull(text(counted(db, 'call_event'), 'call_sid', 'at', 'kind', 'detail'), 'number').execute()
  await db.schema.createIndex('call_event_call').on('call_event').column('call_sid').execute()
  await textOrNull(
    text(counted(db, 'call_command'), 'call_sid', 'kind', 'payload', 'created_at'),
    'taken_by',
    'done_at',
    'outcome',
  ).execute()
  await sql`create index call_command_waiting on call_command (id) where done_at is null`.execute(db)
  await textOrNull(
    integerOrNull(
      integer(
        text(
          keyed(db, 'recording', 'sid'),
          'call_sid',
          'project_id',
          'source',
          'track',
          'status',
          'file',
          'started_at',
          'created_at',
          'updated_at',
        ),
        'channels',
      ),
      'duration_ms',
      'bytes',
      'error_number',
    ),
    'sha256',
  ).execute()
  await db.schema.createIndex('recording_call').on('recording').column('call_sid').execute()
}

async function operations(db: AnyDb): Promise<void> {
  await integer(
    db.schema.createTable('configuration').addColumn('id', 'integer', column => column.primaryKey()) as Table,
    'revision',
  ).execute()
  await db.insertInto('configuration').values({ id: 1, revision: 1 }).execute()
  await integer(text(keyed(db, 'node'), 'kind', 'started_at', 'heartbeat_at'), 'pid').execute()
  await textOrNull(
    integer(
      text(db.schema.createTable('apply_report') as Table, 'node_id', 'resource_id', 'state', 'applied_at'),
      'revision',
    ),
    'error',
  )
    .addPrimaryKeyConstraint('apply_report_key', ['node_id', 'resource_id'] as never[])
    .execute()
  await db.schema.createIndex('apply_report_resource').on('apply_report').column('resource_id').execute()
  await integerOrNull(
    textOrNull(
      text(keyed(db, 'idempotency', 'scope_hash'), 'request_hash', 'state', 'created_at', 'expires_at'),
      'body',
      'headers',
    ),
    'status',
  ).execute()
  await textOrNull(
    integerOrNull(
      integer(
        text(
          counted(db, 'outbox'),
          'ordering_key',
          'project_id',
          'kind',
          'url',
          'method',
          'parameters',
          'event_id',
          'next_attempt_at',
          'created_at',
        ),
        'attempts',
        'delivered',
        'given_up',
      ),
      'last_status',
    ),
    'call_sid',
    'lease_until',
    'last_error',
  ).execute()
  await sql`create index outbox_waiting on outbox (ordering_key, id) where delivered = 0 and given_up = 0`.execute(db)
}

import { type Kysely, sql } from 'kysely'

// biome-ignore lint/suspicious/noExplicitAny: a migration sees the schema of its own time, not today's.
type AnyDb = Kysely<any>

/** Columns by type; a name that ends in `?` may be null. */
interface Columns {
  readonly key?: string
  readonly counted?: string
  /** A growing key that may be given again once its row is gone: spares the write of a counter. */
  readonly numbered?: string
  readonly text?: string
  readonly integer?: string
  /** Primary key of several columns. */
  readonly keys?: readonly string[]
}

async function createTable(db: AnyDb, name: string, columns: Columns): Promise<void> {
  let table = db.schema.createTable(name)
  if (columns.key) table = table.addColumn(columns.key, 'text', column => column.primaryKey().notNull())
  if (columns.counted)
    table = table.addColumn(columns.counted, 'integer', column => column.primaryKey().autoIncrement())
  if (columns.numbered) table = table.addColumn(columns.numbered, 'integer', column => column.primaryKey())
  for (const [names, type] of [
    [columns.text, 'text'],
    [columns.integer, 'bigint'],
  ] as const)
    for (const word of names?.split(' ') ?? [])
      table = word.endsWith('?')
        ? table.addColumn(word.slice(0, -1), type)
        : table.addColumn(word, type, column => column.notNull())
  if (columns.keys) table = table.addPrimaryKeyConstraint(`${name}_key`, columns.keys as never[])
  await table.execute()
}

const index = (db: AnyDb, name: string, table: string, ...columns: string[]) =>
  db.schema.createIndex(name).on(table).columns(columns).execute()

const uniqueIndex = (db: AnyDb, name: string, table: string, ...columns: string[]) =>
  db.schema.createIndex(name).on(table).columns(columns).unique().execute()

export async function up(db: AnyDb): Promise<void> {
  await policies(db)
  await shares(db)
  await containments(db)
  await rates(db)
  await slots(db)
}

async function policies(db: AnyDb): Promise<void> {
  await createTable(db, 'outbound_policy', {
    key: 'id',
    text: 'project_id name status billing_group recording_mode created_at created_by? updated_at',
    integer:
      'system_default concurrency? cps? daily_spend_limit_minor? max_call_duration_seconds? ' +
      'max_destination_rate_minor? recording_channels recording_retention_days revision',
  })
  await index(db, 'outbound_policy_project', 'outbound_policy', 'project_id', 'name')
  await createTable(db, 'policy_rule', { key: 'id', text: 'policy_id op kind value prefix label? created_at' })
  await uniqueIndex(db, 'policy_rule_value', 'policy_rule', 'policy_id', 'kind', 'value')
  await index(db, 'policy_rule_prefix', 'policy_rule', 'policy_id', 'prefix')
  await index(db, 'policy_rule_op', 'policy_rule', 'policy_id', 'op')
  await createTable(db, 'policy_attachment', {
    key: 'id',
    text: 'policy_id project_id service_type service_id note? attached_at applied_at?',
    integer: 'outbound_enabled',
  })
  await uniqueIndex(db, 'policy_attachment_service', 'policy_attachment', 'service_id', 'service_type')
  await index(db, 'policy_attachment_policy', 'policy_attachment', 'policy_id')
}

async function shares(db: AnyDb): Promise<void> {
  await createTable(db, 'subaccount', {
    key: 'id',
    text: 'project_id name status currency created_at updated_at',
    integer:
      'max_concurrent? max_cps? daily_spend_cap_minor? max_call_duration_seconds? max_destination_rate_minor? revision',
  })
  await index(db, 'subaccount_project', 'subaccount', 'project_id', 'name')
  await createTable(db, 'subtrunk', {
    key: 'id',
    text: 'project_id trunk_id name status created_at updated_at',
    integer:
      'concurrency? cps? daily_spend_cap_minor? velocity_cap_minor? max_call_duration_seconds? ' +
      'max_destination_rate_minor? revision',
  })
  await index(db, 'subtrunk_trunk', 'subtrunk', 'trunk_id', 'name')
  await createTable(db, 'number_block', { key: 'id', text: 'project_id start end created_at', integer: 'size' })
  await index(db, 'number_block_project', 'number_block', 'project_id', 'start')
  await createTable(db, 'delegation', {
    key: 'id',
    text: 'block_id subtrunk_id start end status assigned_at assigned_by',
    integer: 'size',
  })
  await index(db, 'delegation_subtrunk', 'delegation', 'subtrunk_id')
  await index(db, 'delegation_block', 'delegation', 'block_id')
  await createTable(db, 'project_ceiling', {
    key: 'project_id',
    text: 'updated_at',
    integer:
      'concurrency? cps? daily_spend_cap_minor? velocity_cap_minor? max_call_duration_seconds? ' +
      'max_destination_rate_minor? revision',
  })
  await createTable(db, 'trunk_setting', { key: 'trunk_id', text: 'country default_caller?' })
  await createTable(db, 'short_code', { key: 'id', text: 'project_id? code sends_to' })
  await index(db, 'short_code_code', 'short_code', 'code')
}

async function containments(db: AnyDb): Promise<void> {
  await createTable(db, 'containment', {
    key: 'id',
    text:
      'project_id trunk_id? prefix case_ref reason_category reason_detail source_alert_id? starts_at expires_at ' +
      'released_at? released_by? notified_at? notified_event?',
    integer: 'rejection_count',
  })
  await index(db, 'containment_prefix', 'containment', 'project_id', 'prefix')
  await createTable(db, 'containment_release_request', {
    key: 'id',
    text: 'containment_id state note requested_at requested_by decision_at? decision_by? decision_reason?',
  })
  await index(db, 'containment_release_request_containment', 'containment_release_request', 'containment_id')
}

async function rates(db: AnyDb): Promise<void> {
  await createTable(db, 'price_book', {
    key: 'id',
    text: 'project_id? name direction currency effective_from created_at',
    integer: 'revision',
  })
  await index(db, 'price_book_project', 'price_book', 'project_id', 'direction', 'effective_from')
  await createTable(db, 'rate', {
    key: 'id',
    text: 'price_book_id prefix label rate_unit',
    integer: 'rate_micro increment_initial_seconds increment_additional_seconds',
  })
  await uniqueIndex(db, 'rate_prefix', 'rate', 'price_book_id', 'prefix')
  await createTable(db, 'billing_account', {
    key: 'id',
    text: 'name currency',
    integer: 'prepaid balance_minor credit_minor held_minor',
  })
  await createTable(db, 'ledger', {
    counted: 'position',
    text: 'billing_account_id project_id? kind call_sid? note? at',
    integer: 'amount_minor balance_after_minor',
  })
  await index(db, 'ledger_account', 'ledger', 'billing_account_id', 'position')
  // A call is charged once, whoever settles it and however often.
  await sql`create unique index ledger_call on ledger (call_sid) where kind = 'charge'`.execute(db)
}

async function slots(db: AnyDb): Promise<void> {
  await createTable(db, 'lease', {
    numbered: 'id',
    text:
      'call_sid part node_id subtrunk_id? trunk_id? policy_id? parent_policy_id? subaccount_id? project_id begun_at ' +
      'ended_at?',
  })
  await uniqueIndex(db, 'lease_call', 'lease', 'call_sid', 'part')
  await sql`create index lease_live on lease (node_id) where ended_at is null`.execute(db)
  await createTable(db, 'level_use', {
    text: 'level subject_id recent',
    integer: 'live',
    keys: ['subject_id', 'level'],
  })
  await createTable(db, 'reservation', {
    key: 'call_sid',
    text:
      'project_id billing_account_id billing destination price_book_id? rate_id? rate_prefix? rate_label? rate_unit ' +
      'currency day caps begun_at settled_at?',
    integer:
      'price_book_revision? rate_micro increment_initial_seconds increment_additional_seconds held_minute held_minor ' +
      'paid_until_seconds? duration_seconds? billed_seconds? charge_minor?',
  })
  await createTable(db, 'spend_day', {
    text: 'level subject_id day',
    integer: 'spent_minor',
    keys: ['subject_id', 'level', 'day'],
  })
  await createTable(db, 'refusal_day', {
    text: 'level subject_id day reason',
    integer: 'count',
    keys: ['subject_id', 'level', 'day', 'reason'],
  })
  await createTable(db, 'spend_minute', {
    text: 'level subject_id',
    integer: 'minute spent_minor',
    keys: ['subject_id', 'level', 'minute'],
  })
}

import { queueWrite } from '../port.ts'
import { type AnyDb, createTables } from './create-tables.ts'

/** Conferences, their participants, queues and their members are rows. Recordings know their room and their pauses. */
export async function up(db: AnyDb): Promise<void> {
  await queueWrite(
    db,
    db.schema.alterTable('voice_account').addColumn('voice_api', 'text', c => c.notNull().defaultTo('spec')),
  )
  for (const column of ['conference_sid', 'pauses'])
    await queueWrite(db, db.schema.alterTable('recording').addColumn(column, 'text'))
  await createTables(db, {
    conference: {
      counted: 'position',
      columns:
        'sid project_id account_sid friendly_name node_id? created_at started_at? ended_at? reason_ended? ' +
        'call_sid_ending? updated_at',
      indexes: {
        conference_live: ['project_id friendly_name', 'ended_at is null'],
        conference_project: 'project_id position',
        conference_age: 'created_at',
      },
      unique: { conference_sid: 'sid' },
    },
    conference_participant: {
      key: 'conference_sid call_sid',
      columns:
        'conference_sid call_sid project_id label? muted:int hold:int speaking:int coached_call_sid? ' +
        'start_on_enter:int end_on_exit:int created_at joined_at? left_at? revision:int updated_at',
      indexes: { conference_participant_call: 'call_sid' },
    },
    call_queue: {
      counted: 'position',
      columns: 'sid project_id friendly_name max_size:int revision:int created_at updated_at',
      indexes: { call_queue_project: 'project_id position' },
      unique: { call_queue_sid: 'sid' },
    },
    queue_member: {
      counted: 'position',
      columns: 'call_sid queue_sid project_id enqueued_at',
      indexes: { queue_member_queue: 'queue_sid position' },
      unique: { queue_member_call: 'call_sid' },
    },
  })
}

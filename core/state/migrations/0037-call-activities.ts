import { type AnyDb, createTables } from './create-tables.ts'

/** Streams, recording servers, transcriptions and subscriptions of calls are rows, so that programs can stop them. */
export const up = (db: AnyDb): Promise<void> =>
  createTables(db, {
    call_activity: {
      key: 'sid',
      columns: 'sid call_sid project_id kind name? status created_at updated_at',
      indexes: { call_activity_call: 'call_sid', call_activity_age: 'created_at' },
    },
  })

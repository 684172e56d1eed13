import { type AnyDb, createTables } from './create-tables.ts'

/** Calls are exported by jobs, which write files of the data folder. */
export const up = (db: AnyDb): Promise<void> =>
  createTables(db, {
    call_export: {
      counted: 'position',
      columns:
        'id project_id? subaccount_id? state format filter begun_by created_at finished_at? expires_at? error? ' +
        'first_position:int after_position:int last_position:int rows:int bytes:int failures:int',
      unique: { call_export_id: 'id' },
      indexes: {
        call_export_project: 'project_id position',
        call_export_open: ['position', "state in ('queued', 'running', 'deleted')"],
        call_export_expiry: ['expires_at', "state = 'completed'"],
      },
    },
  })

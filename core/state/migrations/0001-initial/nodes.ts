import type { Tables } from '../create-tables.ts'

/** Signaling nodes, and tasks that one process does for all. */
export const NODES: Tables = {
  node: {
    key: 'id',
    columns: 'id kind started_at heartbeat_at pid:int draining_at? machine_id boot_id',
    defaults: { machine_id: '', boot_id: '' },
  },
  store_clock: {
    key: 'boot_id',
    columns: 'boot_id ahead_ms:int',
  },
  task_lease: {
    key: 'name',
    columns: 'name holder until',
  },
}

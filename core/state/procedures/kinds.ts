import type { ProcedureName } from './table.ts'

/** Procedures without a bound on their rows. They never run on a thread that serves calls or requests. */
export const LONG_PROCEDURES: ReadonlySet<ProcedureName> = new Set(['insert_messages', 'prune_hours'])

/**
 * Procedures that acknowledge nothing to an outside party. A power cut that loses their commit ends the calls too, so
 * their callers do not wait for the disk (decision 0591).
 */
export const SYNCED_SOON: ReadonlySet<ProcedureName> = new Set([
  'take_admission',
  'extend_reservation',
  'release_admission',
  'prune_hours',
  'admit_call',
  'admit_queued_call',
  'insert_call',
  'write_call',
  'insert_messages',
  'enqueue_callback',
  'queue_event',
])

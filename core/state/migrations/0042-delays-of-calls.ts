import { queueWrite } from '../port.ts'
import type { AnyDb } from './create-tables.ts'

/** An ended call says its post-dial delay, so that exports need not look its record up. Older calls have null. */
export const up = (db: AnyDb): Promise<void> =>
  queueWrite(db, db.schema.alterTable('call').addColumn('pdd_ms', 'bigint'))

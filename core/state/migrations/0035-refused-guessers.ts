import { queueWrite } from '../port.ts'
import type { AnyDb } from './create-tables.ts'

/** An address that guessed the password of a trunk, and was blocked, is among the trunk's sources. */
export const up = (db: AnyDb): Promise<void> =>
  queueWrite(db, db.schema.alterTable('trunk_source_seen').addColumn('blocked_at', 'text'))

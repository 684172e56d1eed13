import { queueWrite } from '../port.ts'
import type { AnyDb } from './create-tables.ts'

/** The evidence of a call has the changes of what it used: they are found by the resource. */
export const up = (db: AnyDb): Promise<void> =>
  queueWrite(
    db,
    db.schema
      .createIndex('audit_event_resource')
      .on('audit_event')
      .columns(['resource_id', 'organization_id', 'position']),
  )

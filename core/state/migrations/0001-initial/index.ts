import { type AnyDb, createTables } from '../create-tables.ts'
import { ALERTS } from './alerts.ts'
import { CALLS } from './calls.ts'
import { CONFIGURATION } from './configuration.ts'
import { DELIVERY } from './delivery.ts'
import { MONEY } from './money.ts'
import { NODES } from './nodes.ts'
import { PEOPLE } from './people.ts'

export async function up(db: AnyDb): Promise<void> {
  for (const tables of [PEOPLE, CONFIGURATION, CALLS, MONEY, ALERTS, DELIVERY, NODES]) await createTables(db, tables)
  await db.insertInto('configuration').values({ id: 1, revision: 1 }).execute()
}

import { type Kysely, sql } from 'kysely'
import { iso } from '../../runtime/clock.ts'
import { StartRefused } from '../../runtime/start-refused.ts'
import { migrate, missingMigrations } from '../maintenance/migrate.ts'
import { MIGRATIONS } from '../migrations/index.ts'
import { LOST_AFTER_MS } from '../nodes/nodes.ts'
import type { Schema } from '../schema/index.ts'
import { READ_NOW } from './turns.ts'

/**
 * Who may migrate a database that several machines share: `nobody`, the machine with this id when no other one runs on
 * it, or `anybody`. An empty database is migrated by either of the last two.
 */
export type Migrates = 'nobody' | 'anybody' | { readonly lone_machine: string }

/** Migrates a database that several machines share, or refuses one of another version (decision 1055). */
export async function migrateShared(db: Kysely<Schema>, name: string, migrates: Migrates): Promise<void> {
  const wording = { name: `the database ${name}`, instead: 'name an empty database' }
  const missing = await missingMigrations(db, wording)
  const [first] = missing
  if (first === undefined) return
  const older = `${wording.name} is of an older version of Strowger (it lacks ${first})`
  if (migrates === 'nobody') throw new StartRefused(`${older}: run strowger migrate`)
  if (migrates !== 'anybody' && missing.length < Object.keys(MIGRATIONS).length) {
    const others = await otherMachines(db, migrates.lone_machine)
    if (others.length > 0)
      throw new StartRefused(`${older}, and ${others.join(', ')} run on it: stop them, or run strowger migrate`)
  }
  await migrate(db, wording)
}

/** The other machines with a node whose heartbeat is recent, by the server's clock. */
async function otherMachines(db: Kysely<Schema>, machine_id: string): Promise<readonly string[]> {
  const { rows: times } = await sql<{ now_ms: number }>`${sql.raw(READ_NOW)}`.execute(db)
  const now_ms = Number(times[0]?.now_ms)
  const rows = await db
    .selectFrom('node')
    .select('machine_id')
    .distinct()
    .where('machine_id', '!=', machine_id)
    .where('heartbeat_at', '>', iso(now_ms - LOST_AFTER_MS))
    .orderBy('machine_id')
    .execute()
  return rows.map(row => row.machine_id)
}

import { type Kysely, sql } from 'kysely'
import { iso } from '../../runtime/clock.ts'
import { StartRefused } from '../../runtime/start-refused.ts'
import { type Migrations, missingMigrations, runMigrations } from '../maintenance/migrate.ts'
import { isContract, MIGRATIONS } from '../migrations/index.ts'
import { LOST_AFTER_MS, SILENT_MACHINE_MS } from '../nodes/nodes.ts'
import type { Schema } from '../schema/index.ts'
import { READ_NOW } from './turns.ts'

/**
 * Who may migrate a database that several machines share: `nobody`, the machine with this id when no other one runs on
 * it, or `anybody`. An empty database is migrated by either of the last two. `expand` runs what only adds, while
 * machines of older releases run; `contract` runs the rest, and `both` all, when no such machine does.
 */
export type Migrates = 'nobody' | 'anybody' | 'expand' | 'contract' | 'both' | { readonly lone_machine: string }

/** Migrates a database that several machines share, or refuses one of another version (decisions 1055, 1086). */
export async function migrateShared(
  db: Kysely<Schema>,
  name: string,
  migrates: Migrates,
  migrations: Migrations = MIGRATIONS,
): Promise<void> {
  const wording = { name: `the database ${name}`, instead: 'name an empty database' }
  const missing = await missingMigrations(db, wording, { migrations, additions: true })
  if (missing.length === 0) return
  const [additions, contracts] = [missing.filter(one => !isContract(one)), missing.filter(isContract)]
  const run = (names: readonly string[]) => runMigrations(db, chosen(migrations, names))
  const is_empty = missing.length === Object.keys(migrations).length
  if (migrates === 'anybody' || (is_empty && migrates !== 'nobody')) return run(missing)
  // What the machine that starts has left of an earlier start is not another machine.
  const own = typeof migrates === 'string' ? null : migrates.lone_machine
  await refuseUnlessAllowed()
  if (additions.length > 0) await run(additions)
  if (contracts.length === 0 || migrates === 'nobody' || migrates === 'expand') return
  const older = await olderMachines(db, contracts, own)
  if (older.length === 0) return run(contracts)
  // A machine of this version runs with what a contract would take away, too.
  if (typeof migrates !== 'string') return
  throw new StartRefused(
    `${older.join(', ')} ${older.length === 1 ? 'runs' : 'run'} an older version: upgrade each machine, or stop it ` +
      'for good, then run strowger migrate --contract',
  )

  /** @throws StartRefused when additions are missing, and it is not allowed to make them */
  async function refuseUnlessAllowed(): Promise<void> {
    const [first] = additions
    if (first === undefined || migrates === 'expand' || migrates === 'both') return
    if (migrates === 'contract')
      throw new StartRefused(`${wording.name} lacks ${first}: run strowger migrate --expand first`)
    const of_older = `${wording.name} is of an older version of Strowger (it lacks ${first})`
    if (migrates === 'nobody') throw new StartRefused(`${of_older}: run strowger migrate`)
    const others = (await machinesWithNodes(db)).filter(id => id !== own)
    if (others.length > 0)
      throw new StartRefused(`${of_older}, and ${others.join(', ')} run on it: run strowger migrate --expand`)
  }
}

const chosen = (migrations: Migrations, names: readonly string[]): Migrations =>
  Object.fromEntries(Object.entries(migrations).filter(([name]) => names.includes(name)))

/** The machines but `own` that live and whose release uses what contracts take away, with its version. */
async function olderMachines(
  db: Kysely<Schema>,
  contracts: readonly string[],
  own: string | null,
): Promise<readonly string[]> {
  const machines = await db
    .selectFrom('machine')
    .select(['id', 'version', 'contracts', 'takes_calls', 'seen_at'])
    .execute()
  const silent_since = iso((await readNow(db)) - SILENT_MACHINE_MS)
  const apis_alone = machines.filter(({ takes_calls, seen_at }) => takes_calls === 0 && seen_at > silent_since)
  const living = new Set([...(await machinesWithNodes(db)), ...apis_alone.map(({ id }) => id)])
  living.delete(own ?? '')
  return [...living].flatMap(id => {
    const machine = machines.find(one => one.id === id)
    const [version, ...knows] = machine?.contracts.split(' ') ?? []
    const is_new = version === machine?.version && contracts.every(one => knows.includes(one))
    return is_new ? [] : [`${id} (${machine?.version ?? 'unknown'})`]
  })
}

/** The machines with a node that gives signs of life to the database, or to another machine. */
async function machinesWithNodes(db: Kysely<Schema>): Promise<readonly string[]> {
  const since = iso((await readNow(db)) - LOST_AFTER_MS)
  const rows = await db
    .selectFrom('node')
    .select('machine_id')
    .distinct()
    .where(eb => eb.or([eb('heartbeat_at', '>', since), eb('attested_at', '>', since)]))
    .orderBy('machine_id')
    .execute()
  return rows.map(row => row.machine_id)
}

/** The server's clock. */
async function readNow(db: Kysely<Schema>): Promise<number> {
  const { rows } = await sql<{ now_ms: number }>`${sql.raw(READ_NOW)}`.execute(db)
  return Number(rows[0]?.now_ms)
}

import { Kysely, sql } from 'kysely'
import type { BusBridge } from '../../runtime/bus.ts'
import { type Clock, systemClock } from '../../runtime/clock.ts'
import { databaseName, hostsOf } from '../../runtime/database-url.ts'
import { FollowedClock } from '../../runtime/followed-clock.ts'
import type { Log } from '../../runtime/log.ts'
import { StartRefused } from '../../runtime/start-refused.ts'
import { type State, StateError } from '../port.ts'
import type { Schema } from '../schema/index.ts'
import { postgresDialect } from './dialect.ts'
import { postgresEngine } from './engine.ts'
import { Pool } from './pool.ts'
import { PostgresRings } from './rings.ts'
import { type Migrates, migrateShared } from './shared-schema.ts'
import { READ_NOW } from './turns.ts'

interface Opening {
  /** `postgres://user:password@host1:port,host2:port/database`. */
  readonly database_url: string
  /** Who may migrate an older schema. Default: `nobody`. */
  readonly migrates?: Migrates
  /** How long a write waits for its turn before it fails as busy. */
  readonly busy_timeout_ms?: number
  /** The most connections of this process. */
  readonly connections?: number
  /** How long a statement may take. */
  readonly statement_ms?: number
  /** The clock of this machine. */
  readonly own_clock?: Clock
}

const BUSY_TIMEOUT_MS = 5000
const CONNECT_MS = 5000
const STATEMENT_MS = 30_000
const CONNECTIONS = 4
/** A migration of many rows takes minutes, and a second process waits for the first. */
const MIGRATION_MS = 30 * 60_000
const OLDEST_VERSION = 150_000

/** Returns connections to the database of a URL. @throws StartRefused */
export function poolOf(
  database_url: string,
  given: { readonly size?: number; readonly statement_ms?: number; readonly idle_ms?: number } = {},
): Pool {
  const hosts = hostsIn(database_url)
  return new Pool({ hosts, size: CONNECTIONS, connect_ms: CONNECT_MS, statement_ms: STATEMENT_MS, ...given })
}

/**
 * Opens the state in a PostgreSQL database. A schema of another version is refused unless `migrates` allows to bring
 * it to this one. @throws StateError, StartRefused
 */
export async function openPostgres(options: Opening): Promise<State> {
  const { database_url, migrates = 'nobody', busy_timeout_ms = BUSY_TIMEOUT_MS, connections, statement_ms } = options
  await bringUpToDate(database_url, migrates)
  const pool = poolOf(database_url, {
    ...(connections === undefined ? {} : { size: connections }),
    ...(statement_ms === undefined ? {} : { statement_ms }),
  })
  const engine = postgresEngine(pool, busy_timeout_ms)
  const db = new Kysely<Schema>({ dialect: postgresDialect({ engine, pool, busy_timeout_ms }) })
  const transaction: State['transaction'] = work => db.transaction().execute(work)
  const readNow = () =>
    pool.use(CONNECT_MS * hostsIn(database_url).length, async link =>
      Number((await link.run(READ_NOW)).rows[0]?.['now_ms']),
    )
  const clock = await FollowedClock.follow(readNow, options.own_clock ?? systemClock).catch(async error => {
    await pool.close()
    throw error
  })
  return {
    db,
    clock,
    transaction,
    shortTransaction: transaction,
    maintenance: {
      // The server keeps what its readers need.
      reads_wait: new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT),
      async copyTo() {
        throw new StateError('a database of PostgreSQL is copied by pg_dump', { code: 'NO_COPY', failure: null })
      },
      async faults() {
        const { rows } = await sql<{ name: string }>`
          select indexrelid::regclass::text as name from pg_index where not indisvalid order by 1`.execute(db)
        return rows.map(({ name }) => `the index ${name} is not valid`)
      },
      async bytes() {
        const { rows } = await sql<{ bytes: number }>`
          select pg_database_size(current_database()) as bytes`.execute(db)
        return rows[0]?.bytes ?? 0
      },
    },
    work: () => ({ ...pool.counts }),
    async probe() {
      await db.updateTable('configuration').set({ id: 1 }).where('id', '=', 1).execute()
    },
    async close() {
      clock.stop()
      await db.destroy()
      // Kysely closes only what it has used.
      await pool.close()
    },
  }
}

/** Reports whether a database has no tables. @throws StateError */
export async function isEmpty(database_url: string): Promise<boolean> {
  const pool = poolOf(database_url, { size: 1 })
  try {
    const { rows } = await pool.use(CONNECT_MS, link => link.run(TABLES))
    return rows[0]?.['tables'] === 0
  } finally {
    await pool.close()
  }
}

const TABLES = `select count(*) as tables from pg_class
  where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p', 'v', 'm')`

/** Opens the way of rings between machines. It connects when it can. @throws StartRefused */
export const openRings = (database_url: string, log: Log): BusBridge =>
  new PostgresRings({ hosts: hostsIn(database_url), log })

function hostsIn(database_url: string): NonNullable<ReturnType<typeof hostsOf>> {
  const hosts = hostsOf(database_url)
  if (!hosts) throw new StartRefused('the database URL is not of the form postgres://user:password@host:port/database')
  return hosts
}

/** Migrates over a connection of its own, whose statements may take long. */
async function bringUpToDate(database_url: string, migrates: Migrates): Promise<void> {
  const pool = poolOf(database_url, { size: 1, statement_ms: MIGRATION_MS, idle_ms: MIGRATION_MS })
  const engine = postgresEngine(pool, MIGRATION_MS)
  const db = new Kysely<Schema>({ dialect: postgresDialect({ engine, pool, busy_timeout_ms: MIGRATION_MS }) })
  try {
    await refuseUnfit(db)
    await migrateShared(db, databaseName(database_url), migrates)
  } finally {
    await db.destroy()
  }
}

async function refuseUnfit(db: Kysely<Schema>): Promise<void> {
  const { rows } = await sql<{ version: number; encoding: string }>`
    select current_setting('server_version_num')::int as version, current_setting('server_encoding') as encoding
    `.execute(db)
  const [server] = rows
  if (!server || server.version < OLDEST_VERSION)
    throw new StartRefused(
      `PostgreSQL 15 or newer is needed, and the server is version ${Math.floor((server?.version ?? 0) / 10_000)}`,
    )
  if (server.encoding !== 'UTF8') throw new StartRefused(`the database has the encoding ${server.encoding}, not UTF8`)
}

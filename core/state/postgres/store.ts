import { Kysely, sql } from 'kysely'
import { StartRefused } from '../../runtime/start-refused.ts'
import { migrate } from '../maintenance/migrate.ts'
import { type State, StateError } from '../port.ts'
import type { Schema } from '../schema/index.ts'
import { postgresDialect } from './dialect.ts'
import { postgresEngine } from './engine.ts'
import { hostsOf } from './hosts.ts'
import { Pool } from './pool.ts'

interface Opening {
  /** `postgres://user:password@host1:port,host2:port/database`. */
  readonly database_url: string
  /** How long a write waits for its turn before it fails as busy. */
  readonly busy_timeout_ms?: number
  /** The most connections of this process. */
  readonly connections?: number
  /** How long a statement may take. */
  readonly statement_ms?: number
}

const BUSY_TIMEOUT_MS = 5000
const CONNECT_MS = 5000
const STATEMENT_MS = 30_000
const CONNECTIONS = 4
/** A migration of many rows takes minutes, and a second process waits for the first. */
const MIGRATION_MS = 30 * 60_000
const OLDEST_VERSION = 150_000

/** Opens the state in a PostgreSQL database and migrates its schema to this version. @throws StateError */
export async function openPostgres(options: Opening): Promise<State> {
  const { busy_timeout_ms = BUSY_TIMEOUT_MS, connections: size = CONNECTIONS, statement_ms = STATEMENT_MS } = options
  const hosts = hostsOf(options.database_url)
  if (!hosts) throw new StartRefused('the database URL is not of the form postgres://user:password@host:port/database')
  await bringUpToDate(hosts)
  const pool = new Pool({ hosts, size, connect_ms: CONNECT_MS, statement_ms })
  const engine = postgresEngine(pool, busy_timeout_ms)
  const db = new Kysely<Schema>({ dialect: postgresDialect({ engine, pool, busy_timeout_ms }) })
  const transaction: State['transaction'] = work => db.transaction().execute(work)
  return {
    db,
    transaction,
    shortTransaction: transaction,
    maintenance: {
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
    work: () => ({ ...pool.counts, messages: pool.counts.statements }),
    async probe() {
      await db.updateTable('configuration').set({ id: 1 }).where('id', '=', 1).execute()
    },
    close: () => db.destroy(),
  }
}

/** Migrates over a connection of its own, whose statements may take long. */
async function bringUpToDate(hosts: NonNullable<ReturnType<typeof hostsOf>>): Promise<void> {
  const pool = new Pool({ hosts, size: 1, connect_ms: CONNECT_MS, statement_ms: MIGRATION_MS })
  const engine = postgresEngine(pool, MIGRATION_MS)
  const db = new Kysely<Schema>({ dialect: postgresDialect({ engine, pool, busy_timeout_ms: MIGRATION_MS }) })
  try {
    await refuseUnfit(db)
    await migrate(db, 'the database')
  } finally {
    await db.destroy()
  }
}

async function refuseUnfit(db: Kysely<Schema>): Promise<void> {
  const { rows } = await sql<{ version: number; encoding: string }>`
    select current_setting('server_version_num')::int as version, current_setting('server_encoding') as encoding
    `.execute(db)
  const [server] = rows
  if (!server || server.version < OLDEST_VERSION) throw new StartRefused('PostgreSQL 15 or newer is needed')
  if (server.encoding !== 'UTF8') throw new StartRefused(`the database has the encoding ${server.encoding}, not UTF8`)
}

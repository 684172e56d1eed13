import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { freemem, tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { SERVER_FOLDER, startPostgres } from '../../bench/postgres-server.ts'
import type { State } from '../../core/state/index.ts'
import { openPostgres } from '../../core/state/postgres/store.ts'
import { withNumbers } from '../../core/state/postgres/values.ts'
import { atProcessEnd, type Test } from './harness/index.ts'
import { freePort } from './ports.ts'
import { PATIENCE_MS } from './wait.ts'

/** A PostgreSQL server of this process: Debian's programs, in a folder of its own. */
interface Server {
  readonly port: number
  /** Returns the URL of a database, or of the one that exists from the start. */
  url(database?: string): string
  /** How `create database` copies the files of its template. A copy through the log, the default, takes longer. */
  readonly copied: string
}

/** A database with the tables of all migrations and no rows. */
const EMPTY = 'empty'

let running: Promise<Server> | null = null

/** Returns the server of this process, which runs until its end. */
export function postgres(): Promise<Server> {
  running ??= start()
  return running
}

async function start(): Promise<Server> {
  const server = await newServer(atProcessEnd)
  const url = (database = 'postgres') => `postgres://strowger@127.0.0.1:${server.port}/${database}`
  // Versions before 15 know no other way.
  const sql = `select current_setting('server_version_num')::int as version`
  const [about] = await administer<{ version: number }>(url(), sql)
  const made = { port: server.port, url, copied: (about?.version ?? 0) < 150_000 ? '' : 'strategy file_copy' }
  await administer(made.url(), `create database ${EMPTY} template template0`)
  await (await openPostgres({ database_url: made.url(EMPTY), migrates: 'anybody' })).close()
  return made
}

/** Starts a server that is a standby of nothing, and so stays one until `promote`. */
export async function standby(t: Test) {
  const { port } = await newServer(undo => t.teardown(undo), {
    prepare: data => writeFileSync(join(data, 'standby.signal'), ''),
  })
  return { port, promote: () => administer(`postgres://strowger@127.0.0.1:${port}/postgres`, 'select pg_promote()') }
}

/** A server with an empty database, and its synchronous standby, which takes its place when the test says so. */
export async function primaryAndStandby(t: Test) {
  const undo = (one: () => Promise<void>): void => t.teardown(one)
  const primary = await newServer(undo)
  const second = await newServer(undo, { standby_of: primary.port })
  const urlOf = (port: number) => `postgres://strowger@127.0.0.1:${port}/postgres`
  await administer(urlOf(primary.port), `alter system set synchronous_standby_names = '*'`)
  await administer(urlOf(primary.port), 'select pg_reload_conf()')
  return {
    url: `postgres://strowger@127.0.0.1:${primary.port},127.0.0.1:${second.port}/postgres`,
    breakOff: primary.breakOff,
    promote: () => administer(urlOf(second.port), 'select pg_promote()'),
  }
}

/** A server with one empty database, which breaks off and comes back as the test says. */
export async function breakable(t: Test) {
  const { port, breakOff, comeBack } = await newServer(undo => t.teardown(undo))
  const urlOf = (name: string) => `postgres://strowger@127.0.0.1:${port}/${name}`
  let count = 0
  const made = async (name: string): Promise<string> => {
    await administer(urlOf('postgres'), `create database ${name} template template0`)
    return urlOf(name)
  }
  return { url: await made('voice'), another: () => made(`another_${++count}`), breakOff, comeBack }
}

/** Starts a server with an empty database outside of a test. `atEnd` gets what ends it. Returns the database's URL. */
export async function ownServer(atEnd: (undo: () => Promise<void>) => void): Promise<{ readonly url: string }> {
  const { port } = await newServer(atEnd)
  return { url: `postgres://strowger@127.0.0.1:${port}/postgres` }
}

/** The file system in memory. */
const MEMORY = '/dev/shm'
/** A database takes 12 MB and 830 files, and the tests of a process make up to a hundred. */
const ROOM_BYTES = 6 * 1024 ** 3

/**
 * Returns the folder for servers. In memory, where there is plenty, making and removing databases costs two thirds of
 * the CPU time and half of the time.
 */
function roomyFolder(): string {
  const left = existsSync(MEMORY) ? statfsSync(MEMORY) : { bavail: 0, bsize: 0 }
  if (Math.min(left.bavail * left.bsize, freemem(), process.constrainedMemory() || freemem()) < ROOM_BYTES)
    return tmpdir()
  removeLeft()
  return MEMORY
}

/** Removes the folders that killed test processes left: nobody else frees that memory. */
function removeLeft(): void {
  for (const name of readdirSync(MEMORY)) {
    const pid = name.startsWith(SERVER_FOLDER) ? name.slice(SERVER_FOLDER.length).split('-')[0] : undefined
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) rmSync(join(MEMORY, name), { recursive: true, force: true })
  }
}

/** Makes a server in a folder of its own and starts it. */
async function newServer(
  atEnd: (undo: () => Promise<void>) => void,
  made: Pick<Parameters<typeof startPostgres>[0], 'prepare' | 'standby_of'> = {},
) {
  const settings = { fsync: 'off', full_page_writes: 'off', autovacuum: 'off', shared_buffers: '32MB' }
  const server = await startPostgres({ port: await freePort(), settings, within: roomyFolder(), ...made })
  atEnd(server.remove)
  return server
}

/** Runs a statement outside of a transaction. Returns its rows. */
async function administer<Row extends object>(url: string, sql: string): Promise<readonly Row[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query<Row>(sql)
  await client.end()
  return rows
}

/** Makes a database with the tables of all migrations. Returns its URL. */
export async function postgresDatabase({ template = EMPTY } = {}): Promise<string> {
  const server = await postgres()
  const name = `t_${randomUUID().replaceAll('-', '')}`
  await administer(server.url(), `create database ${name} template ${template} ${server.copied}`)
  return server.url(name)
}

/** Opens the state in a database of its own. */
export async function postgresState(options: { readonly busy_timeout_ms?: number } = {}): Promise<State> {
  return openPostgres({ database_url: await postgresDatabase(), busy_timeout_ms: PATIENCE_MS, ...options })
}

interface Planner {
  /** What PostgreSQL has against a statement with `?` for its values; null when it can run it. */
  fault(sql: string): Promise<string | null>
  close(): Promise<void>
}

/** Opens a connection that plans statements and runs none. */
export async function planner(): Promise<Planner> {
  const client = new Client({ connectionString: (await postgres()).url(EMPTY) })
  await client.connect()
  return {
    async fault(sql) {
      try {
        await client.query(`prepare it as ${withNumbers(sql)}; deallocate it`)
        return null
      } catch (error) {
        return (error as Error).message
      }
    },
    close: () => client.end(),
  }
}

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { chownSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from 'pg'
import type { State } from '../../core/state/index.ts'
import { openPostgres } from '../../core/state/postgres/store.ts'
import { withNumbers } from '../../core/state/postgres/values.ts'
import { atProcessEnd, type Test } from './harness/index.ts'
import { freePort } from './ports.ts'
import { PATIENCE_MS, until } from './wait.ts'

/** A PostgreSQL server of this process: Debian's programs, in a folder of its own. */
interface Server {
  readonly port: number
  /** Returns the URL of a database, or of the one that exists from the start. */
  url(database?: string): string
}

const PROGRAMS = '/usr/lib/postgresql'
/** Servers refuse to run as root. Debian's package makes this user. */
const USER = 'postgres'
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
  const made = {
    port: server.port,
    url: (database = 'postgres') => `postgres://strowger@127.0.0.1:${server.port}/${database}`,
  }
  await administer(made.url(), `create database ${EMPTY} template template0`)
  await (await openPostgres({ database_url: made.url(EMPTY), migrates: 'anybody' })).close()
  return made
}

/** Starts a server that is a standby of nothing, and so stays one until `promote`. */
export async function standby(t: Test) {
  const { port } = await newServer(
    undo => t.teardown(undo),
    data => writeFileSync(join(data, 'standby.signal'), ''),
  )
  return { port, promote: () => administer(`postgres://strowger@127.0.0.1:${port}/postgres`, 'select pg_promote()') }
}

/** A server with one empty database, which breaks off and comes back as the test says. */
export async function breakable(t: Test) {
  const { port, breakOff, comeBack } = await newServer(undo => t.teardown(undo))
  const urlOf = (name: string) => `postgres://strowger@127.0.0.1:${port}/${name}`
  const made = async (name: string): Promise<string> => {
    await administer(urlOf('postgres'), `create database ${name} template template0`)
    return urlOf(name)
  }
  return { url: await made('voice'), another: () => made('another'), breakOff, comeBack }
}

/** Makes a server in a folder of its own and starts it. `prepare` changes its data before. */
async function newServer(atEnd: (undo: () => Promise<void>) => void, prepare?: (data: string) => void) {
  const bin = join(PROGRAMS, newest(readdirSync(PROGRAMS)), 'bin')
  const folder = mkdtempSync(join(tmpdir(), 'strowger-postgres-'))
  const user = unprivileged()
  if (user.uid !== undefined && user.gid !== undefined) chownSync(folder, user.uid, user.gid)
  const data = join(folder, 'data')
  // The server compares texts by the rules of a language, as those of operators do; ours must not be.
  const locale = ['--encoding=UTF8', '--locale=C.UTF-8', '--locale-provider=icu', '--icu-locale=en']
  const init = ['-D', data, '-U', 'strowger', '-A', 'trust', '--no-sync', '--no-instructions', ...locale]
  await promisify(execFile)(join(bin, 'initdb'), init, { ...user, cwd: folder })
  prepare?.(data)
  const port = await freePort()
  const settings = {
    ...{ listen_addresses: '127.0.0.1', port, unix_socket_directories: folder },
    ...{ fsync: 'off', full_page_writes: 'off', autovacuum: 'off', shared_buffers: '32MB' },
  }
  const given = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  let server: ChildProcess | null = null
  const run = async (): Promise<void> => {
    // The kernel ends the server with this process, which may be killed.
    const started = spawn('setpriv', ['--pdeathsig', 'QUIT', join(bin, 'postgres'), '-D', data, ...given], {
      ...user,
      cwd: folder,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    server = started
    await accepts(started)
  }
  const breakOff = async () => {
    if (server) await ended(server)
  }
  atEnd(async () => {
    await breakOff()
    rmSync(folder, { recursive: true, force: true })
  })
  await run()
  return { port, breakOff, comeBack: run }
}

const newest = (versions: readonly string[]): string =>
  versions.toSorted((one, other) => Number(other) - Number(one))[0] ?? 'none'

function unprivileged(): { readonly uid?: number; readonly gid?: number } {
  if (process.getuid?.() !== 0) return {}
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find(one => one.startsWith(`${USER}:`))
  const [, , uid, gid] = line?.split(':') ?? []
  return { uid: Number(uid), gid: Number(gid) }
}

/** Resolves when the server takes connections. */
async function accepts(server: ChildProcess): Promise<void> {
  let printed = ''
  server.stderr?.setEncoding('utf8').on('data', text => {
    printed += text
  })
  await until('PostgreSQL accepts connections', () => {
    if (server.exitCode !== null) throw new Error(`PostgreSQL has ended: ${printed}`)
    return /ready to accept (read-only )?connections/.test(printed)
  })
}

async function ended(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return
  const gone = new Promise(resolve => server.once('close', resolve))
  server.kill('SIGQUIT')
  await gone
}

/** Runs a statement outside of a transaction. */
async function administer(url: string, sql: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.query(sql)
  await client.end()
}

/** Makes a database with the tables of all migrations. Returns its URL. */
export async function postgresDatabase({ template = EMPTY } = {}): Promise<string> {
  const server = await postgres()
  const name = `t_${randomUUID().replaceAll('-', '')}`
  await administer(server.url(), `create database ${name} template ${template}`)
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

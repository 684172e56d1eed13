import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { chownSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const PROGRAMS = '/usr/lib/postgresql'
/** How the names of servers' folders begin, before the pid of the process that made them. */
export const SERVER_FOLDER = 'strowger-postgres-'
/** Servers refuse to run as root. Debian's package makes this user. */
const USER = 'postgres'

/** A PostgreSQL server: Debian's programs, in a folder of its own. Its user is `strowger`, without a password. */
interface PostgresServer {
  readonly port: number
  readonly pid: () => number
  /** Ends it at once, as a crash does. */
  breakOff(): Promise<void>
  /** Starts it again on its data. */
  comeBack(): Promise<void>
  /** Runs a statement as psql does. */
  tell(statement: string): Promise<void>
  /** Ends it and removes its folder. */
  remove(): Promise<void>
}

interface Making {
  readonly port: number
  readonly settings: Readonly<Record<string, string | number>>
  /** The folder in which its own is made; by default that of temporary files. */
  readonly within?: string
  /** The port of the primary whose standby it is, from a copy of its data. */
  readonly standby_of?: number
  /** Changes the data before the first start. */
  readonly prepare?: ((data: string) => void) | undefined
}

export async function startPostgres(making: Making): Promise<PostgresServer> {
  const { port, settings, within = tmpdir(), prepare, standby_of } = making
  const bin = join(PROGRAMS, newest(readdirSync(PROGRAMS)), 'bin')
  const folder = mkdtempSync(join(within, `${SERVER_FOLDER}${process.pid}-`))
  const user = unprivileged()
  if (user.uid !== undefined && user.gid !== undefined) chownSync(folder, user.uid, user.gid)
  const data = join(folder, 'data')
  // The server compares texts by the rules of a language, as those of operators do; ours must not be.
  const locale = ['--encoding=UTF8', '--locale=C.UTF-8', '--locale-provider=icu', '--icu-locale=en']
  const init = ['-D', data, '-U', 'strowger', '-A', 'trust', '--no-sync', '--no-instructions', ...locale]
  const copy = ['-D', data, '-U', 'strowger', '-h', '127.0.0.1', '-p', `${standby_of}`, '-R', '--no-sync', '-c', 'fast']
  const [program, words] = standby_of === undefined ? ['initdb', init] : ['pg_basebackup', copy]
  const all = { listen_addresses: '127.0.0.1', port, unix_socket_directories: folder, ...settings }
  const given = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  let server: ChildProcess | null = null
  const run = async (): Promise<void> => {
    // The kernel ends the server with this process, which may be killed. Ctrl-C is for this process alone.
    const started = spawn('setpriv', ['--pdeathsig', 'QUIT', join(bin, 'postgres'), '-D', data, ...given], {
      ...user,
      cwd: folder,
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    server = started
    await accepts(started)
  }
  const breakOff = async () => {
    if (server) await ended(server)
  }
  const remove = async () => {
    await breakOff()
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    await promisify(execFile)(join(bin, program), words, { ...user, cwd: folder })
    prepare?.(data)
    await run()
  } catch (error) {
    await remove()
    throw error
  }
  const tell = async (statement: string): Promise<void> => {
    const words = ['-h', '127.0.0.1', '-p', `${port}`, '-U', 'strowger', '-d', 'postgres', '-qc', statement]
    await promisify(execFile)(join(bin, 'psql'), words)
  }
  return { port, tell, pid: () => server?.pid ?? 0, breakOff, comeBack: run, remove }
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
function accepts(server: ChildProcess): Promise<void> {
  let printed = ''
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.once('exit', () => reject(new Error(`PostgreSQL has ended: ${printed}`)))
    server.stderr?.setEncoding('utf8').on('data', text => {
      printed = (printed + text).slice(-10_000)
      if (/ready to accept (read-only )?connections/.test(printed)) resolve()
    })
  })
}

async function ended(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return
  const gone = new Promise(resolve => server.once('close', resolve))
  server.kill('SIGQUIT')
  await gone
}

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { PORTS_REFUSED_BY_BROWSERS } from '../core/domain/network/browser-ports.ts'
import { TREE } from '../core/runtime/tree.ts'
import { DRACHTIO_PROGRAM, startDrachtioServer } from './drachtio-server.ts'

/** The file of the strowger command as users run it: bundled. */
export const MAIN = join(TREE, 'build/bundle/bin/main.js')
const UP_LIMIT_MS = 60_000

/** The part of the output of `bootstrap --json` that benchmarks use. */
export interface Made {
  readonly base_url: string
  readonly api_key: string
  readonly account_sid: string
  readonly auth_token: string
  readonly project_id: string
  readonly numbers: readonly string[]
  readonly console: { readonly email: string; readonly password: string | null }
}

interface Running {
  /** Its data folder; `stop` removes it. */
  readonly folder: string
  readonly sip_port: number
  /** Process ids by name, including the supervisor's. */
  readonly pids: Readonly<Record<string, number>>
  readonly made: Made
  /** Ends it and keeps its folder. */
  halt(): Promise<void>
  stop(): Promise<void>
}

/** Starts a whole platform as users start it, in its own folder and on its own ports. */
export async function startUp(subject: string, settings: Readonly<Record<string, string>> = {}): Promise<Running> {
  const folder = mkdtempSync(join(tmpdir(), `strowger-bench-${subject}-`))
  try {
    return await startIn(folder, settings)
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
}

/**
 * Starts a platform in a data folder that may have data already. `made` is what its first start has printed, `main` the
 * program of another release.
 */
export async function startIn(
  folder: string,
  settings: Readonly<Record<string, string>> = {},
  {
    made,
    limit_ms = UP_LIMIT_MS,
    main = MAIN,
  }: { readonly made?: Made; readonly limit_ms?: number; readonly main?: string } = {},
): Promise<Running> {
  const [http, sip_port, sips, ws] = [await lowPort(), await lowPort(), await lowPort(), await lowPort()]
  const own = {
    PATH: process.env['PATH'] ?? '',
    HOME: folder,
    STROWGER_DATA: folder,
    STROWGER_HTTP_PORT: String(http),
    STROWGER_SIP_PORT: String(sip_port),
    STROWGER_SIPS_PORT: String(sips),
    STROWGER_WS_PORT: String(ws),
    STROWGER_LOG: 'warn',
    ...settings,
  }
  const server = DRACHTIO_PROGRAM && (await startDrachtioServer(DRACHTIO_PROGRAM, own, await lowPort()))
  const env = { ...own, ...(server ? server.env : {}) }
  // The kernel ends it with this process, which may be killed; Ctrl-C reaches this process alone, which then ends it.
  const words = ['--pdeathsig', 'KILL', process.execPath, main, 'up']
  const up = spawn('setpriv', words, { env, stdio: ['ignore', 'pipe', 'inherit'], detached: true })
  const halt = async (): Promise<void> => {
    if (up.exitCode === null && up.signalCode === null) {
      const ended = once(up, 'exit')
      up.kill('SIGTERM')
      await ended
    }
    if (server) await server.stop()
  }
  const stop = async (): Promise<void> => {
    await halt()
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    await isUp(up, limit_ms)
    const base_url = `http://127.0.0.1:${http}`
    const told = made ? { ...made, base_url } : await bootstrapped(env)
    return { folder, sip_port, pids: pidsOf(folder), made: told, halt, stop }
  } catch (error) {
    // The folder may have what took hours to write.
    await halt()
    throw error
  }
}

/** Returns `wanted`, or any free port for 0. @throws when `wanted` is in use */
export async function freePort(wanted = 0): Promise<number> {
  const server = createServer()
  server.listen(wanted, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await new Promise(resolve => server.close(resolve))
  return port
}

const LOW_PORTS = { first: 1100, last: 1999 }
let next_low = LOW_PORTS.first + Math.floor(Math.random() * (LOW_PORTS.last - LOW_PORTS.first))

/** Returns a free port below the RTP ports of benchmarks, another one each time. */
export async function lowPort(): Promise<number> {
  for (let tries = 0; tries < LOW_PORTS.last - LOW_PORTS.first; tries++) {
    next_low = next_low < LOW_PORTS.last ? next_low + 1 : LOW_PORTS.first
    if (PORTS_REFUSED_BY_BROWSERS.has(next_low)) continue
    if (await freePort(next_low).then(Boolean, () => false)) return next_low
  }
  throw new Error('no port is free')
}

/** Reads the process ids that the supervisor has written. */
function pidsOf(folder: string): Record<string, number> {
  const run = join(folder, 'run')
  const files = readdirSync(run).filter(name => name.endsWith('.pid'))
  return Object.fromEntries(files.map(name => [name.slice(0, -4), Number(readFileSync(join(run, name), 'utf8'))]))
}

async function bootstrapped(env: Readonly<Record<string, string>>): Promise<Made> {
  const { stdout } = await promisify(execFile)(process.execPath, [MAIN, 'bootstrap', '--json'], { env })
  return JSON.parse(stdout)
}

async function isUp(up: ChildProcess, limit_ms: number): Promise<void> {
  const { stdout } = up
  if (!stdout) throw new Error('the platform prints nothing')
  let printed = ''
  const signal = AbortSignal.timeout(limit_ms)
  const gone = once(up, 'exit', { signal }).then(([code]) => {
    throw new Error(`the platform ended with exit code ${code} while it started`)
  })
  while (!printed.includes('Strowger is up'))
    printed += (await Promise.race([once(stdout, 'data', { signal }), gone]))[0]
  // From here on the process may end.
  gone.catch(() => undefined)
  stdout.resume()
}

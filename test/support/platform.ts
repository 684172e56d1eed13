import { type ChildProcess, spawn } from 'node:child_process'
import { MAIN } from '../../bench/up.ts'
import { PATIENCE_MS, until } from './wait.ts'

const KEPT_LOG_LINES = 400

/** `strowger up` as a process of its own. */
export interface Platform {
  readonly child: ChildProcess
  log(): string
  stop(): Promise<void>
}

/** Starts a platform and waits until it is up. `main` is the program of another release. */
export async function startPlatform(env: Readonly<Record<string, string>>, main = MAIN): Promise<Platform> {
  // A test file that is killed at its time limit runs no teardown. The kernel then kills the supervisor, even one that
  // a test has stopped, and its processes end with it.
  const command = ['--pdeathsig', 'KILL', process.execPath, main, 'up']
  const child = spawn('setpriv', command, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let printed = ''
  const lines: string[] = []
  child.stdout.on('data', chunk => {
    printed += chunk
  })
  child.stderr.on('data', chunk => {
    lines.push(
      ...String(chunk)
        .split('\n')
        .filter(line => line !== ''),
    )
    if (lines.length > KEPT_LOG_LINES) lines.splice(0, lines.length - KEPT_LOG_LINES)
  })
  const log = (): string => [printed, ...lines].join('\n')
  const exited = new Promise<void>(resolve => child.once('exit', () => resolve()))
  const platform: Platform = {
    child,
    log,
    async stop() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
      await exited
    },
  }
  try {
    // Five processes start in sequence.
    const isUp = () => printed.includes('Strowger is up') || childIsGone(child)
    await until('Strowger is up', isUp, 2 * PATIENCE_MS)
  } catch (error) {
    await platform.stop()
    throw new Error(`${error instanceof Error ? error.message : error}\n${log()}`)
  }
  return platform
}

function childIsGone(child: ChildProcess): false {
  const how = child.exitCode ?? child.signalCode
  if (how !== null) throw new Error(`the platform ended with ${how}`)
  return false
}

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from './harness/index.ts'
import type { World } from './world.ts'

/** Causes storage failures as they occur on real machines. */

const LOCKER = `
  import Database from 'better-sqlite3'
  const database = new Database(process.argv[1])
  database.pragma('busy_timeout = 10000')
  database.exec('begin immediate')
  process.stdout.write('locked')
  // The timer references the database. Otherwise the garbage collector would close it and release its lock.
  setInterval(() => database.open, 1000)
`

/** Takes the state's write lock from another process and holds it until `release` or the end of the test. */
export async function lockState(t: Test, w: World): Promise<{ release(): Promise<void> }> {
  const args = ['--input-type=module', '-e', LOCKER, join(w.data_dir, 'strowger.sqlite')]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  t.teardown(() => child.kill('SIGKILL'))
  await Promise.race([once(child.stdout, 'data'), exited.then(() => Promise.reject(new Error('nothing was locked')))])
  return {
    async release() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

/** Runs prlimit on another process, as that process's user: this needs no privilege of root. */
export function prlimit(pid: number, ...words: string[]): string {
  const user = /^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? ''
  const as = user === String(process.geteuid?.()) ? [] : ['--reuid', user, '--regid', user, '--clear-groups']
  return execFileSync('setpriv', [...as, 'prlimit', '--pid', String(pid), ...words]).toString()
}

/**
 * Simulates a full disk: no file of the process can grow (RLIMIT_FSIZE; Node.js ignores SIGXFSZ). `room` lifts the
 * limit.
 */
export function fillDisk(w: World, process_name: 'signaling' | 'control'): { room(): void } {
  const limit = (soft: string): void => {
    prlimit(w.pid(process_name), `--fsize=${soft}:`)
  }
  limit('1')
  return { room: () => limit('unlimited') }
}

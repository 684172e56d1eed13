import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { World } from './world.ts'

/** Causes storage failures as they occur on real machines. */

const LOCKER = `
  import Database from 'better-sqlite3'
  const database = new Database(process.argv[1])
  database.pragma('busy_timeout = 10000')
  database.exec('begin immediate')
  process.stdout.write('locked')
  // The timer holds on to the database: one that nobody can reach any more is collected, and its lock is gone.
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

/** Limits of another process, which its own user may change without any right of root. */
export function prlimit(pid: number, ...words: string[]): string {
  const user = /^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? ''
  const as = user === String(process.geteuid?.()) ? [] : ['--reuid', user, '--regid', user, '--clear-groups']
  return execFileSync('setpriv', [...as, 'prlimit', '--pid', String(pid), ...words]).toString()
}

/**
 * No file of the process can grow from now on (RLIMIT_FSIZE; Node.js ignores SIGXFSZ), as on a disk that is full;
 * `room` lifts it.
 */
export function fillDisk(w: World, process_name: 'signaling' | 'control'): { room(): void } {
  const limit = (soft: string): void => {
    prlimit(w.pid(process_name), `--fsize=${soft}:`)
  }
  limit('1')
  return { room: () => limit('unlimited') }
}

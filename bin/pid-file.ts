import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hasHub } from '../core/runtime/bus.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'

/** Writes a file atomically: a concurrent reader finds either the old text or the new one. */
export function writeWhole(file: string, text: string): void {
  writeFileSync(`${file}.new`, text, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

/** Returns the text of a file that another process may remove at any moment; null when it is not there. */
export function readIfThere(file: string): string | null {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** Writes a pid file atomically. */
export const writePid = (file: string, pid: number | undefined): void => writeWhole(file, `${pid}\n`)

export const supervisorFile = (run_dir: string): string => join(run_dir, 'supervisor.pid')

/** Returns the pid of the supervisor that runs on a data folder, or null. Ignores the file of a killed supervisor. */
export function runningSupervisor(run_dir: string): number | null {
  const text = readIfThere(supervisorFile(run_dir))
  if (text === null) return null
  const pid = Number(text)
  return pid !== process.pid && isSupervisor(pid) ? pid : null
}

function isSupervisor(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes('up')
  } catch {
    // No such process.
    return false
  }
}

const ELSEWHERE = 'a process of another container'

/**
 * Says which process runs the platform of a data folder; null when none does. In another container with the same folder
 * it has a pid of that container, so its bus is asked.
 */
export async function platformProcess(run_dir: string): Promise<string | null> {
  const pid = runningSupervisor(run_dir)
  if (pid !== null) return `process ${pid}`
  return (await hasHub(run_dir)) ? ELSEWHERE : null
}

/** Refuses a command that must see the process of the platform, when another container has it. @throws StartRefused */
export async function refuseElsewhere(run_dir: string): Promise<void> {
  if ((await platformProcess(run_dir)) !== ELSEWHERE) return
  throw new StartRefused(`the platform is ${ELSEWHERE}: run the command there, as with docker compose exec`)
}

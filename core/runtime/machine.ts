import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { lineOnce } from './private-files.ts'

/** The machine that a process runs on. A pid is valid only on its machine and until the next boot. */
export interface Machine {
  /** Created with the data folder. */
  readonly machine_id: string
  /** Id of this boot (random(4)); empty where the system has none. */
  readonly boot_id: string
}

const BOOT_ID = '/proc/sys/kernel/random/boot_id'

/** Returns the machine of a data folder, which must exist. */
export function machineOf(data_dir: string): Machine {
  const machine_id = lineOnce(join(data_dir, 'machine.id'), () => `mac_${randomBytes(8).toString('hex')}`)
  return { machine_id, boot_id: bootId() }
}

/** Returns the id of the machine's boot; empty where the system has none. */
export const bootId = (): string => (existsSync(BOOT_ID) ? readFileSync(BOOT_ID, 'utf8').trim() : '')

/** A process as recorded in its row of the state. */
export interface KnownProcess extends Machine {
  readonly pid: number
}

/** Formats a process for one column of a row. */
export const processName = ({ machine_id, boot_id, pid }: KnownProcess): string => [machine_id, boot_id, pid].join(' ')

export function processNamed(name: string): KnownProcess {
  const [machine_id = '', boot_id = '', pid] = name.split(' ')
  return { machine_id, boot_id, pid: Number(pid) }
}

/**
 * Reports whether a process is known to be gone. A process of another machine never is: only its heartbeats can tell.
 * `own_pid` is the pid of the caller; a row with the same pid belongs to an earlier process.
 */
export function isGone(known: KnownProcess, own: Machine, own_pid = process.pid): boolean {
  if (known.machine_id !== own.machine_id) return false
  if (known.boot_id !== own.boot_id || known.pid === own_pid) return true
  try {
    process.kill(known.pid, 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

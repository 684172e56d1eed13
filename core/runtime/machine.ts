import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { lineOnce } from './private-files.ts'

/** The machine that a process runs on. A pid means something only on its machine, and only until the next boot. */
export interface Machine {
  /** Made with the data folder. */
  readonly machine_id: string
  /** Of this boot (random(4)); empty where the system tells none. */
  readonly boot_id: string
}

const BOOT_ID = '/proc/sys/kernel/random/boot_id'

/** Of a data folder, which must be there. */
export function machineOf(data_dir: string): Machine {
  const machine_id = lineOnce(join(data_dir, 'machine.id'), () => `mac_${randomBytes(8).toString('hex')}`)
  return { machine_id, boot_id: bootId() }
}

/** Names the machine's boot; empty where the system tells none. */
export const bootId = (): string => (existsSync(BOOT_ID) ? readFileSync(BOOT_ID, 'utf8').trim() : '')

/** A process as its row in the state tells of it. */
export interface KnownProcess extends Machine {
  readonly pid: number
}

/** A process in one column of a row. */
export const processName = ({ machine_id, boot_id, pid }: KnownProcess): string => [machine_id, boot_id, pid].join(' ')

export function processNamed(name: string): KnownProcess {
  const [machine_id = '', boot_id = '', pid] = name.split(' ')
  return { machine_id, boot_id, pid: Number(pid) }
}

/**
 * Whether a process is known to be gone. One of another machine is never known to be: its heartbeats alone tell.
 * `own_pid` is the asking process's: a row of the same pid is of one before it.
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

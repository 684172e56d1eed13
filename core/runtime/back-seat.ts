import { execFileSync } from 'node:child_process'
import { readFileSync, readlinkSync } from 'node:fs'
import { availableParallelism } from 'node:os'

// Long work does not hold calls up: its thread has the least priority, and it waits while others use the cores.

/** Where Debian and others have chrt(1) of util-linux. */
export const CHRT = '/usr/bin/chrt'

/**
 * Puts the calling thread behind all others of the machine for good: SCHED_IDLE of sched(7). At a low nice value alone
 * a thread may finish its slice of some milliseconds before one that wakes up gets its core. Returns false, and changes
 * nothing, where the system has no `chrt` or does not allow it.
 */
export function takeBackSeat(chrt: string): boolean {
  try {
    // `PID/task/TID`, of the thread that asks.
    const [, , thread = ''] = readlinkSync('/proc/thread-self').split('/')
    execFileSync(chrt, ['--idle', '--pid', '0', thread], { env: {}, stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** Reports whether a thread that wakes up now finds no free core. False where the system does not tell. */
export function coresAreTaken(): boolean {
  try {
    return leavesNoCore(readFileSync('/proc/loadavg', 'latin1'), availableParallelism())
  } catch {
    return false
  }
}

/**
 * Reads in /proc/loadavg (proc(5), fourth field) whether the threads that run now, or wait for a core, leave none to
 * others. The caller's core counts as taken. With two cores one other thread is enough: they often are two halves of
 * one core, each of which is slower while both work.
 */
export function leavesNoCore(loadavg: string, cores: number): boolean {
  const running = Number(/ (\d+)\/\d+ \d+\n$/.exec(loadavg)?.[1] ?? 0)
  return running >= Math.max(2, cores)
}

import { execFileSync } from 'node:child_process'
import { readlinkSync } from 'node:fs'

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

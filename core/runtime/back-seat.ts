import { execFileSync } from 'node:child_process'
import { readFileSync, readlinkSync } from 'node:fs'

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

/**
 * Returns a function by which a thread asks whether another one took its core from it since it asked last
 * (`nonvoluntary_ctxt_switches` of proc(5)). False where the system does not tell.
 */
export function lostCore(): () => boolean {
  let counted = switches()
  return () => {
    const before = counted
    counted = switches()
    return counted !== before
  }
}

function switches(): number {
  try {
    const status = readFileSync('/proc/thread-self/status', 'utf8')
    return Number(/^nonvoluntary_ctxt_switches:\s+(\d+)/m.exec(status)?.[1] ?? 0)
  } catch {
    return 0
  }
}

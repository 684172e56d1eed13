import { readdirSync, readFileSync } from 'node:fs'

/** Units of the CPU times in /proc, which Linux fixes for programs. */
const TICK_MS = 10

interface Times {
  readonly parent: number
  /** CPU time of its own. */
  readonly own_ms: number
  /** CPU time of the children that it has waited for. */
  readonly waited_ms: number
}

/** Reads the times of a process; null when it has ended. */
function timesOf(pid: string): Times | null {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return null
    throw error
  }
  // proc(5): the fields after the name begin with the third. The fourth is the parent; utime, stime, cutime and cstime
  // are the 14th to 17th.
  const fields = text
    .replace(/^.*\) /s, '')
    .split(' ')
    .map(Number)
  const ticks = (field: number): number => (fields[field - 3] ?? 0) * TICK_MS
  return { parent: fields[1] ?? 0, own_ms: ticks(14) + ticks(15), waited_ms: ticks(16) + ticks(17) }
}

/** CPU time of the processes below this one that still run, and of the children that they have waited for. */
function belowUs_ms(): number {
  const all = new Map<number, Times>()
  for (const name of readdirSync('/proc')) {
    const times = /^\d+$/.test(name) ? timesOf(name) : null
    if (times) all.set(Number(name), times)
  }
  const isBelow = (pid: number): boolean => {
    const parent = all.get(pid)?.parent
    return parent !== undefined && (parent === process.pid || isBelow(parent))
  }
  return [...all].reduce((sum, [pid, { own_ms, waited_ms }]) => (isBelow(pid) ? sum + own_ms + waited_ms : sum), 0)
}

/**
 * CPU time of this process and of all that it has started. A platform that several files share runs on: what it did for
 * a file counts for that file.
 */
export function cpu_ms(): number {
  const { user, system } = process.cpuUsage()
  // To read all of /proc costs a millisecond or more, so only files with children do.
  const has_children = process.getActiveResourcesInfo().includes('ProcessWrap')
  return (user + system) / 1000 + (timesOf('self')?.waited_ms ?? 0) + (has_children ? belowUs_ms() : 0)
}

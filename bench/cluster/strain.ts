import { type FileHandle, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

// What the machine of a benchmark could not do, whoever used it: other programs may keep its disk and its cores for
// seconds, and then calls are refused by a platform without a fault. It is measured without the platform.

/** A sync, or some work, that took this long in place of a few milliseconds. */
const SLOW_MS = 100
/** An admission waits for some commits, and must be decided within 1.5 s. */
const TOO_MUCH_MS = 750
/** Shorter ones are not told. */
const TOLD_MS = 500
const LOOK_MS = 100
const WORK_MS = 2

const KINDS = ['disk', 'cores'] as const

interface Stall {
  /** On the monotonic clock. */
  readonly from_ms: number
  readonly to_ms: number
  readonly what: (typeof KINDS)[number]
}

export interface Strain {
  /** Whether the disk, or the cores, stood still for too long altogether between these two. */
  stalledIn(from_ms: number, to_ms: number): boolean
  /** Says how long the longest stalls were since the last question, or is empty. */
  told(): string
  stop(): Promise<void>
}

/** Observes the disk of the temporary folder, where the servers of benchmarks keep their files, and the cores. */
export async function watchStrain(): Promise<Strain> {
  const path = join(tmpdir(), `strowger-bench-strain-${process.pid}`)
  const file = await open(path, 'w')
  const stalls: Stall[] = []
  let [stopped, told] = [false, 0]
  const noted = (what: Stall['what'], from_ms: number): void => {
    const to_ms = performance.now()
    if (to_ms - from_ms >= SLOW_MS) stalls.push({ from_ms, to_ms, what })
  }
  const watch = async (what: Stall['what'], look: () => Promise<void> | void): Promise<void> => {
    while (!stopped) {
      const from_ms = performance.now()
      await look()
      noted(what, from_ms)
      await pause(LOOK_MS)
    }
  }
  const watching = Promise.all([watch('disk', () => synced(file)), watch('cores', work)])
  return {
    stalledIn: (from_ms, to_ms) =>
      KINDS.some(what => {
        const shares = stalls.map(one =>
          one.what === what ? Math.min(to_ms, one.to_ms) - Math.max(from_ms, one.from_ms) : 0,
        )
        return shares.reduce((sum, ms) => sum + Math.max(0, ms), 0) >= TOO_MUCH_MS
      }),
    told() {
      const found = KINDS.flatMap(what => {
        const longest_ms = Math.max(
          0,
          ...stalls.slice(told).flatMap(one => (one.what === what ? one.to_ms - one.from_ms : [])),
        )
        return longest_ms < TOLD_MS ? [] : [`its ${what} stood still for ${(longest_ms / 1000).toFixed(1)} s`]
      })
      told = stalls.length
      return found.length === 0 ? '' : ` (meanwhile the machine is overloaded: ${found.join(', ')})`
    },
    async stop() {
      stopped = true
      await watching
      await file.close()
      await rm(path)
    },
  }
}

async function synced(file: FileHandle): Promise<void> {
  await file.write('.', 0)
  await file.sync()
}

/** Needs a core for a few milliseconds of its own CPU time, however long it must wait for it. */
function work(): void {
  const begun = process.cpuUsage()
  for (;;) {
    const { user, system } = process.cpuUsage(begun)
    if (user + system >= WORK_MS * 1000) return
  }
}

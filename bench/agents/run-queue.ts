import { readdirSync, readFileSync } from 'node:fs'

/** How long threads wait for a CPU, which tells a loaded machine from slow work of our own (proc(5), schedstat). */

/**
 * Returns the milliseconds for which the main thread of a process and its packet threads have been ready without a CPU,
 * in all. Other threads are left out: what they wait for is rarely on the way, and would excuse too much.
 */
export function waitingOf(pid: number): () => number {
  const folder = `/proc/${pid}/task`
  const tasks = readdirSync(folder).filter(
    task => Number(task) === pid || readFileSync(`${folder}/${task}/comm`, 'utf8').startsWith('media-'),
  )
  return () => tasks.reduce((sum, task) => sum + waited_ns(`${folder}/${task}/schedstat`), 0) / 1e6
}

function waited_ns(file: string): number {
  try {
    return Number(readFileSync(file, 'utf8').split(' ')[1])
  } catch {
    // The thread has ended.
    return 0
  }
}

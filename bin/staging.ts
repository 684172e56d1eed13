import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** Folders for the time of a command. Their names have its pid. */
const PREFIX = '.strowger-'
const OURS = /^\.strowger-(\d+)-/
export const isStaging = (name: string): boolean => OURS.test(name)

/**
 * Runs work with a folder in `parent`, and removes it afterwards. Folders of commands that were killed meanwhile are
 * removed too: they hold copies of the database or whole releases.
 */
export async function inStaging<T>(parent: string, work: (folder: string) => Promise<T>): Promise<T> {
  for (const name of readdirSync(parent))
    if (isLeft(OURS.exec(name)?.[1])) rmSync(join(parent, name), { recursive: true, force: true })
  const folder = mkdtempSync(join(parent, `${PREFIX}${process.pid}-`))
  try {
    return await work(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function isLeft(pid: string | undefined): boolean {
  if (pid === undefined) return false
  try {
    process.kill(Number(pid), 0)
    return false
  } catch (error) {
    // Another user's process lives.
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

// Where the tests keep their files. In memory, where there is plenty, no test waits for a disk that others use too.
import { chmodSync, mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs'
import { freemem } from 'node:os'
import { join } from 'node:path'

const MEMORY = '/dev/shm'
const NAME = 'strowger-test-'
/** A whole run keeps less than a third of this at once. */
const ROOM_BYTES = 6 * 1024 ** 3

const isAlive = pid => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

/** Returns the folder for temporary files of this run; undefined where the system's serves better. */
export function scratchFolder({ memory = MEMORY, free = freemem() } = {}) {
  let names
  try {
    const { bavail, bsize } = statfsSync(memory)
    if (Math.min(bavail * bsize, free, process.constrainedMemory() || free) < ROOM_BYTES) return undefined
    names = readdirSync(memory)
  } catch (error) {
    if (error.code === 'ENOENT') return undefined
    throw error
  }
  // Nobody else frees the memory that a killed run left.
  for (const name of names) {
    const pid = name.startsWith(NAME) ? Number(name.slice(NAME.length).split('-')[0]) : 0
    if (pid > 0 && !isAlive(pid)) rmSync(join(memory, name), { recursive: true, force: true })
  }
  const folder = mkdtempSync(join(memory, `${NAME}${process.pid}-`))
  // Open to all users, as /tmp is: servers of tests have users of their own.
  chmodSync(folder, 0o1777)
  return folder
}

import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** The PATH of child programs. Our own PATH is not used, because children inherit nothing from our environment. */
export const PROGRAMS_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** Returns whether a program that `runBare` would find is installed. */
export const isInstalled = (program: string): boolean =>
  PROGRAMS_PATH.split(':').some(folder => existsSync(join(folder, program)))

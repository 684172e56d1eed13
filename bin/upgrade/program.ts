import { execFile } from 'node:child_process'
import { StartRefused } from '../../core/runtime/start-refused.ts'
import { terminal } from '../terminal.ts'

const MOST_BYTES = 64 * 1024 * 1024
/** Long enough for migrations and archives of a large installation. */
const LIMIT_MS = 3_600_000

/**
 * Runs a command of a version of Strowger, with the settings of this one, and others. Returns what it prints.
 * @throws StartRefused with what it says when it ends with another code than 0
 */
export const runVersion = (
  program: string,
  words: readonly string[],
  others: Readonly<Record<string, string>> = {},
): Promise<string> =>
  new Promise((resolve, reject) => {
    const options = { env: { ...terminal().env, ...others }, maxBuffer: MOST_BYTES, timeout: LIMIT_MS }
    execFile(program, [...words], options, (error, stdout, stderr) => {
      if (!error) resolve(stdout)
      else reject(new StartRefused(stderr.trim().replace(/^strowger: /, '') || error.message))
    })
  })

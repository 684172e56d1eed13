import {
  chmodSync,
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'

const FOLDER_MODE = 0o700
const FILE_MODE = 0o600
const STICKY = 0o1000

/** Makes every file that this process and its children create readable by their user only, from the first byte. */
export const writePrivately = (): void => void process.umask(0o077)

/**
 * Makes the folder and what lies above it, or takes the others' rights on it away: an older version may have made it.
 * A folder that belongs to somebody else, or is everybody's as /tmp is, stays as it is.
 */
export function makePrivateFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: FOLDER_MODE })
  const { mode, uid } = statSync(folder)
  if (uid === process.geteuid?.() && (mode & STICKY) === 0 && (mode & 0o777) !== FOLDER_MODE)
    chmodSync(folder, FOLDER_MODE)
}

/** The same for the database: SQLite gives the files that it puts beside one the rights of that one. */
export function makePrivateFile(file: string): void {
  if (!existsSync(file)) closeSync(openSync(file, 'a', FILE_MODE))
  const { mode, uid } = statSync(file)
  if (uid === process.geteuid?.() && (mode & 0o777) !== FILE_MODE) chmodSync(file, FILE_MODE)
}

/** The one line of a file, which is made when it is not there. Processes that start at once agree on one. */
export function lineOnce(file: string, make: () => string): string {
  if (!existsSync(file)) {
    // Whole before it has its name: nobody reads half of it.
    const part = `${file}.${process.pid}`
    writeFileSync(part, `${make()}\n`, { mode: FILE_MODE })
    try {
      linkSync(part, file)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    } finally {
      rmSync(part, { force: true })
    }
  }
  return readFileSync(file, 'utf8').trim()
}

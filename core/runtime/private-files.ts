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
 * Creates the folder and its parents, or removes other users' rights to it, because an older version may have created
 * it. Leaves a folder of another owner, or a shared folder like /tmp, unchanged.
 */
export function makePrivateFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: FOLDER_MODE })
  const { mode, uid } = statSync(folder)
  if (uid === process.geteuid?.() && (mode & STICKY) === 0 && (mode & 0o777) !== FOLDER_MODE)
    chmodSync(folder, FOLDER_MODE)
}

/** Does the same for the database file. SQLite copies its mode to the files that it creates next to it. */
export function makePrivateFile(file: string): void {
  if (!existsSync(file)) closeSync(openSync(file, 'a', FILE_MODE))
  const { mode, uid } = statSync(file)
  if (uid === process.geteuid?.() && (mode & 0o777) !== FILE_MODE) chmodSync(file, FILE_MODE)
}

/**
 * Returns the only line of a file and creates the file if missing. Processes that start concurrently get the same line.
 */
export function lineOnce(file: string, make: () => string): string {
  if (!existsSync(file)) {
    // The file is complete before it gets its name, so nobody reads half of it.
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

import { existsSync, readFileSync, statSync } from 'node:fs'
import { writeDurably } from '../../runtime/durable-files.ts'

// What the supervisor needs to know of the database: it loads no library for it.

/** The database's file name in the data folder. */
export const DATABASE_FILE = 'strowger.sqlite'

/**
 * Notes that the platform has stopped and that its database is whole. The note names the file's size and last change,
 * so that it says nothing about a file that something wrote later. Notes nothing when the log of the store is not
 * empty: some process did not stop cleanly.
 */
export function noteStop(file: string): void {
  const now = wholeFile(file)
  if (now !== null) writeDurably(noteOf(file), now)
}

const noteOf = (file: string): string => `${file}-stopped`

/** Reports whether a database file is as the last stop left it. */
export function isAsStopped(file: string): boolean {
  const note = noteOf(file)
  return existsSync(note) && readFileSync(note, 'utf8') === wholeFile(file)
}

/** Returns the size and the last change of a database file, as text; null while its log holds something. */
function wholeFile(file: string): string | null {
  const log = statSync(`${file}-wal`, { throwIfNoEntry: false })
  const main = statSync(file, { bigint: true, throwIfNoEntry: false })
  if (main === undefined || (log !== undefined && log.size > 0)) return null
  return `${main.size} ${main.mtimeNs}`
}

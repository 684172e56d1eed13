import { closeSync, existsSync, openSync, readFileSync, readSync, statSync } from 'node:fs'
import Database from 'better-sqlite3'
import { writeDurably } from '../../runtime/durable-files.ts'

/** Checks of a larger database skip the ladder's SIP messages: they are its largest part and hold no money. */
const WHOLE_BYTES = 512 * 1024 ** 2
const LADDER = 'sip_message'
/** One read of a file that is read through. */
const READ_BYTES = 1024 ** 2
/** The check stops after this many findings: one is enough. */
const MOST_FINDINGS = 1

/** Reports whether a file's first bytes are those of a SQLite database. */
export const isDatabase = (file: string): boolean =>
  readFileSync(file).subarray(0, HEADER.length).equals(Buffer.from(HEADER))

const HEADER = 'SQLite format 3'

/**
 * Notes that the platform has stopped and that its database is whole. The note names the file's size and last change,
 * so that it says nothing about a file that something wrote later. Notes nothing when the log of the store is not
 * empty: some process did not stop cleanly.
 */
export function noteStop(file: string): void {
  const now = wholeFile(file)
  if (now !== null) writeDurably(noteOf(file), now)
}

/**
 * Checks a database file. Returns SQLite's first finding; null when the file is sound or does not exist yet. A file
 * beyond `whole_bytes` is not checked when it is as a stop left it: the check takes minutes where the file is not in
 * memory.
 */
export function damageOf(file: string, whole_bytes = WHOLE_BYTES): string | null {
  if (!existsSync(file)) return null
  const { size } = statSync(file)
  if (size === 0) return null
  const large = size > whole_bytes
  if (large && isAsStopped(file)) return null
  try {
    if (large) readThrough(file)
    const database = new Database(file, { readonly: true })
    try {
      const parts = large ? tablesOf(database) : [MOST_FINDINGS]
      for (const part of parts) {
        const finding = database.pragma(`quick_check(${part})`, { simple: true })
        if (finding !== 'ok') return String(finding)
      }
      return null
    } finally {
      database.close()
    }
  } catch (error) {
    if (!isDamage(error)) throw error
    return (error as Error).message
  }
}

const noteOf = (file: string): string => `${file}-stopped`

function isAsStopped(file: string): boolean {
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

/**
 * Reads a file from its beginning to its end, so that the check finds its pages in memory. The check takes pages in the
 * order of tables: from a disk, 10 GB took more than ten minutes so, and one minute in the order of the file.
 */
function readThrough(file: string): void {
  const fd = openSync(file, 'r')
  try {
    const piece = Buffer.allocUnsafe(READ_BYTES)
    while (readSync(fd, piece) > 0);
  } finally {
    closeSync(fd)
  }
}

/** Reports whether SQLite failed because the file is damaged or no database. */
export function isDamage(error: unknown): boolean {
  const { code } = error as Error & { code?: string }
  return code?.startsWith('SQLITE_CORRUPT') === true || code === 'SQLITE_NOTADB'
}

function tablesOf(database: Database.Database): string[] {
  const names = database.prepare(`select name from sqlite_schema where type = 'table' and name <> ?`).pluck()
  return (names.all(LADDER) as string[]).map(name => `'${name}'`)
}

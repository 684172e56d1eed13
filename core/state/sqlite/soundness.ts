import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs'
import Database from 'better-sqlite3'
import { isAsStopped } from './database-file.ts'

/** Checks of a larger database skip the ladder's SIP messages: they are its largest part and hold no money. */
const WHOLE_BYTES = 512 * 1024 ** 2
const LADDER = 'sip_message'
/** One read of a file that is read through. */
const READ_BYTES = 1024 ** 2
/** The check stops after this many findings: one is enough. */
const MOST_FINDINGS = 1

/** The first bytes of a SQLite database. */
const HEADER = 'SQLite format 3'

/** Reports whether a file's first bytes are those of a SQLite database. It may be too large to be read whole. */
export function isDatabase(file: string): boolean {
  const fd = openSync(file, 'r')
  try {
    const first = Buffer.alloc(HEADER.length)
    readSync(fd, first)
    return first.equals(Buffer.from(HEADER))
  } finally {
    closeSync(fd)
  }
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

import { existsSync, readFileSync, statSync } from 'node:fs'
import Database from 'better-sqlite3'

/** Checks of a larger database skip the ladder's SIP messages: they are its largest part and hold no money. */
const WHOLE_BYTES = 512 * 1024 ** 2
const LADDER = 'sip_message'
/** The check stops after this many findings: one is enough. */
const MOST_FINDINGS = 1

/** Reports whether a file's first bytes are those of a SQLite database. */
export const isDatabase = (file: string): boolean =>
  readFileSync(file).subarray(0, HEADER.length).equals(Buffer.from(HEADER))

const HEADER = 'SQLite format 3'

/** Checks a database file. Returns SQLite's first finding; null when the file is sound or does not exist yet. */
export function damageOf(file: string): string | null {
  if (!existsSync(file)) return null
  const { size } = statSync(file)
  if (size === 0) return null
  try {
    const database = new Database(file, { readonly: true })
    try {
      const parts = size <= WHOLE_BYTES ? [MOST_FINDINGS] : tablesOf(database)
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

/** Reports whether SQLite failed because the file is damaged or no database. */
export function isDamage(error: unknown): boolean {
  const { code } = error as Error & { code?: string }
  return code?.startsWith('SQLITE_CORRUPT') === true || code === 'SQLITE_NOTADB'
}

function tablesOf(database: Database.Database): string[] {
  const names = database.prepare(`select name from sqlite_schema where type = 'table' and name <> ?`).pluck()
  return (names.all(LADDER) as string[]).map(name => `'${name}'`)
}

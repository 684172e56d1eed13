import { existsSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { copyDurably, removeDurably, renameDurably } from '../../runtime/durable-files.ts'
import { StartRefused } from '../../runtime/start-refused.ts'
import { DATABASE_FILE } from './database-file.ts'
import { isDamage } from './soundness.ts'

// A database is copied before a release migrates it, and set back when the release is not kept. Neither opens the
// state: its schema may be of another version.

/** Writes a copy of the database in `data_dir` to `copy`, whole or not at all. It takes the place of an older one. */
export function keepDatabase(data_dir: string, copy: string): void {
  const part = `${copy}.part`
  rmSync(part, { force: true })
  const database = new Database(join(data_dir, DATABASE_FILE), { fileMustExist: true })
  try {
    database.prepare('vacuum into ?').run(part)
  } finally {
    database.close()
  }
  renameDurably(part, copy)
}

/**
 * Puts a copy in the place of the database in `data_dir`, which is kept as `aside`. A power cut leaves the one or the
 * other whole. @throws StartRefused when a process has the database open
 */
export function setBackDatabase(data_dir: string, copy: string, aside: string): void {
  const file = join(data_dir, DATABASE_FILE)
  const log = `${file}-wal`
  // A log that remained would be applied to the copy.
  if (existsSync(file) && emptiedLog(file) && (statSync(log, { throwIfNoEntry: false })?.size ?? 0) > 0)
    throw new StartRefused(`${file} is in use: stop what uses it`)
  for (const part of ['', '-wal']) if (existsSync(file + part)) copyDurably(file + part, aside + part)
  for (const part of ['-wal', '-shm']) removeDurably(file + part)
  copyDurably(copy, file)
}

/** Moves what the log holds into the database. Returns false for a damaged one, which keeps its log. */
function emptiedLog(file: string): boolean {
  try {
    const database = new Database(file)
    try {
      database.pragma('wal_checkpoint(truncate)')
    } finally {
      database.close()
    }
    return true
  } catch (error) {
    if (!isDamage(error)) throw error
    return false
  }
}

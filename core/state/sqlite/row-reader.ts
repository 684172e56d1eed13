import { join } from 'node:path'
import { compiledForRanges } from '../maintenance/row-ranges.ts'
import type { RowReader } from '../port.ts'
import { compiler } from './compiler.ts'
import { DATABASE_FILE } from './database-file.ts'
import { stateErrorOf } from './errors.ts'
import { openConnection } from './steps.ts'
import { BUSY_TIMEOUT_MS } from './store.ts'
import { defineTextRules, sqliteText } from './text-rules.ts'

/** How long a read waits for a checkpoint at most: a checkpoint may fail, and its process may be gone. */
const WAITS_MS = 500

interface Options {
  /** The folder of the state, which is migrated. */
  readonly data_dir: string
  /** How many KiB of pages it keeps. */
  readonly cache_kib: number
  /** `Maintenance.reads_wait` of the process. */
  readonly reads_wait?: SharedArrayBuffer | undefined
}

/** Opens a reader, which blocks the calling thread while it reads, and while a checkpoint goes before it. */
export function openSqliteRows({ data_dir, cache_kib, reads_wait }: Options): RowReader {
  const wait = reads_wait ? new Int32Array(reads_wait) : null
  const file = join(data_dir, DATABASE_FILE)
  const { database } = openConnection({ file, busy_timeout_ms: BUSY_TIMEOUT_MS, reads_only: true, cache_kib })
  defineTextRules(database)
  const version = database.prepare('pragma data_version').pluck()
  let seen = version.get()
  return {
    lines(query) {
      const { sql, valuesOf } = compiledForRanges(range => query(compiler, sqliteText, range))
      const statement = orStateError(() => database.prepare(joined(sql)).raw())
      return async range => {
        if (wait !== null) Atomics.wait(wait, 0, 1, WAITS_MS)
        const row = orStateError(() => statement.get(...valuesOf(range)))
        const [rows, last_position, text] = row as [number, number | null, Buffer | null]
        return { rows, last_position, text: text ?? Buffer.alloc(0) }
      }
    },
    written() {
      const now = version.get()
      const changed = now !== seen
      seen = now
      return changed
    },
    async close() {
      database.close()
    },
  }
}

function orStateError<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw stateErrorOf(error)
  }
}

/** Joins the lines of a query within SQLite. A blob becomes a buffer at the cost of one copy. */
const joined = (sql: string): string =>
  `select count(*), max(position), cast(group_concat(line, '') as blob) from (${sql})`

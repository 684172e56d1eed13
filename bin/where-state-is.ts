import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { VARIABLES } from '../core/runtime/config.ts'
import { writeDurably } from '../core/runtime/durable-files.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { DATABASE_FILE, noteStop } from '../core/state/sqlite/database-file.ts'

/** Stands in the data folder of an installation whose state is in PostgreSQL. */
const MARK = 'state-is-in-postgresql'

/** Where an installation keeps its state: what is in its data folder, and what its settings name. */
interface Place {
  readonly data_dir: string
  readonly database_url: string | null
}

const URL_NAME = VARIABLES.database_url.name
const markOf = (data_dir: string): string => join(data_dir, MARK)

/** Reports whether a folder is that of an installation: its state is in it, or in PostgreSQL. */
export const hasState = (data_dir: string): boolean =>
  existsSync(join(data_dir, DATABASE_FILE)) || existsSync(markOf(data_dir))

/**
 * Refuses settings that name another place for the state than the one where it is: the installation would begin again
 * with nothing, or go on with what it had before its state was moved. @throws StartRefused
 */
export function refuseOtherPlace({ data_dir, database_url }: Place): void {
  const marked = existsSync(markOf(data_dir))
  if (database_url === null && marked)
    throw new StartRefused(
      `the state of ${data_dir} is in PostgreSQL: set ${URL_NAME}, or remove ${markOf(data_dir)} to leave it there`,
    )
  if (database_url !== null && !marked && existsSync(join(data_dir, DATABASE_FILE)))
    throw new StartRefused(
      `the state of ${data_dir} is in SQLite: move it with strowger migrate to-postgres, unset ${URL_NAME}, or set ` +
        'STROWGER_DATA to another folder',
    )
}

/** Writes down that the state is in PostgreSQL. */
export function markPlace({ data_dir, database_url }: Place): void {
  if (database_url === null || existsSync(markOf(data_dir))) return
  writeDurably(markOf(data_dir), 'The state of this installation is in the database of STROWGER_DATABASE_URL.\n')
}

/** Notes that the platform has stopped, when its database is a file. */
export function noteStopAt({ data_dir, database_url }: Place): void {
  if (database_url === null) noteStop(join(data_dir, DATABASE_FILE))
}

import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runBare } from '../core/runtime/bare-child.ts'
import { withoutPassword } from '../core/runtime/database-url.ts'
import { isInstalled } from '../core/runtime/installed-programs.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'

/** The file of an archive that holds a database of PostgreSQL, as pg_dump writes it. */
export const DUMP_FILE = 'strowger.dump'

const PASSWORD_FILE = '.pgpass'
/** What programs of PostgreSQL print of their work is of no use. */
const MOST_BYTES = 1024 * 1024

/** Writes one snapshot of the database to `DUMP_FILE` in `folder`; calls go on meanwhile. @throws StartRefused */
export async function dump(database_url: string, folder: string): Promise<void> {
  await runClient('pg_dump', database_url, folder, ['--format=custom', `--file=${join(folder, DUMP_FILE)}`])
}

/** Fills an empty database from `DUMP_FILE` in `folder`, wholly or not at all. @throws StartRefused */
export async function fill(database_url: string, folder: string): Promise<void> {
  const words = ['--single-transaction', '--exit-on-error', join(folder, DUMP_FILE)]
  await runClient('pg_restore', database_url, folder, words)
}

export const hasDump = (folder: string): boolean => existsSync(join(folder, DUMP_FILE))

/** Removes what `fill` has left in a folder. */
export function removeDump(folder: string): void {
  for (const name of [DUMP_FILE, PASSWORD_FILE]) rmSync(join(folder, name), { force: true })
}

/** Runs a program with a connection to the database. Everybody may list its words, so the password is in a file. */
async function runClient(program: string, database_url: string, folder: string, words: string[]): Promise<void> {
  if (!isInstalled(program)) throw new StartRefused(`${program} is not installed: apt-get install postgresql-client`)
  const { url, password } = withoutPassword(database_url)
  const options = ['target_session_attrs=read-write', 'connect_timeout=10']
  if (password !== null) {
    const file = join(folder, PASSWORD_FILE)
    writeFileSync(file, `*:*:*:*:${password.replace(/[\\:]/g, '\\$&')}\n`, { mode: 0o600 })
    options.push(`passfile=${encodeURIComponent(file)}`)
  }
  const place = `--dbname=${url}${url.includes('?') ? '&' : '?'}${options.join('&')}`
  const end = await runBare(program, ['--no-owner', '--no-privileges', '--no-password', place, ...words], {
    max_bytes: MOST_BYTES,
  })
  if (!end.ok) throw new StartRefused(end.detail)
}

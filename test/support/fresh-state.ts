import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TREE } from '../../core/runtime/tree.ts'
import { DATABASE_FILE, openState, type State } from '../../core/state/index.ts'
import { onPostgres } from './engine.ts'

/** Where the test processes of a build share a database that was migrated and not written to. */
const SHARED = join(TREE, 'build/test-state')

let empty: Promise<Buffer> | null = null

/**
 * Puts an empty database into a folder. Migrations cost more than most tests, so only the first process of a build runs
 * them.
 */
export async function putEmptyDatabase(data_dir: string): Promise<void> {
  empty ??= emptyDatabase()
  writeFileSync(join(data_dir, DATABASE_FILE), await empty, { mode: 0o600 })
}

/** Opens the state in an empty folder, or in an empty database of PostgreSQL. */
export async function freshState(options: Parameters<typeof openState>[0]): Promise<State> {
  // The driver is loaded where it is used.
  if (onPostgres()) return (await import('./postgres.ts')).postgresState(options)
  await putEmptyDatabase(options.data_dir)
  return openState(options)
}

async function emptyDatabase(): Promise<Buffer> {
  // tsc writes its file of this name whenever a source has changed.
  const name = `${statSync(join(TREE, 'build/.tsbuildinfo')).mtimeMs}.sqlite`
  try {
    return readFileSync(join(SHARED, name))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  const made = await migrated()
  mkdirSync(SHARED, { recursive: true })
  for (const old of readdirSync(SHARED))
    if (old.endsWith('.sqlite') && old !== name) rmSync(join(SHARED, old), { force: true })
  const whole = join(SHARED, `${process.pid}.new`)
  writeFileSync(whole, made)
  renameSync(whole, join(SHARED, name))
  return made
}

async function migrated(): Promise<Buffer> {
  const data_dir = mkdtempSync(join(tmpdir(), 'strowger-empty-'))
  try {
    const copy = join(data_dir, 'copy')
    const state = await openState({ data_dir, here: true })
    await state.maintenance.copyTo(copy)
    await state.close()
    return readFileSync(copy)
  } finally {
    rmSync(data_dir, { recursive: true, force: true })
  }
}

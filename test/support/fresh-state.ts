import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DATABASE_FILE, openState, type State } from '../../core/state/index.ts'

/** The database of the first state of this process, before anything was written. */
let empty: Buffer | null = null

/**
 * Opens the state in an empty folder. Only the first of a process runs the migrations; the others begin with a copy of
 * its database, because migrations cost more than most tests.
 */
export async function freshState(options: Parameters<typeof openState>[0]): Promise<State> {
  const file = join(options.data_dir, DATABASE_FILE)
  if (empty !== null) {
    writeFileSync(file, empty, { mode: 0o600 })
    return openState(options)
  }
  const state = await openState(options)
  const copy = `${file}.empty`
  await state.maintenance.copyTo(copy)
  empty = readFileSync(copy)
  rmSync(copy)
  return state
}

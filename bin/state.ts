import { AsyncLocalStorage } from 'node:async_hooks'
import { connectBus, type Topic } from '../core/runtime/bus.ts'
import { iso } from '../core/runtime/clock.ts'
import type { Config } from '../core/runtime/config.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { keepDatabase, missingMigration, openState, type State } from '../core/state/index.ts'
import { refuseForeignKey } from '../core/state/maintenance/key-proof.ts'
import { presentConfig } from './installation.ts'

const opened = new AsyncLocalStorage<State>()

/** Runs commands on a state that is open already, and stays so. */
export const onState = <T>(state: State, work: () => Promise<T>): Promise<T> => opened.run(state, work)

type Place = Pick<Config, 'data_dir' | 'database_url'>

/**
 * Refuses data of an older version. Opening it would migrate it, under the version that runs perhaps, and the way back
 * to that version would be gone. @throws StartRefused
 */
export function refuseOlder({ data_dir, database_url }: Place): void {
  // PostgreSQL's database is migrated by a start alone, whoever opens it.
  const missing = database_url === null ? missingMigration(data_dir) : null
  if (missing === null) return
  throw new StartRefused(
    `${data_dir} is of an older version of Strowger (it lacks the schema ${missing}): use the command of that version, ` +
      'or start this one, which brings the data up to date. A backup can be made before',
  )
}

/**
 * Runs a command on the state of this installation. The platform may be running or stopped. Only a command that
 * `migrates` brings data of an older version up to date. @throws StartRefused
 */
export async function withState<T>(
  work: (state: State, config: Config) => Promise<T>,
  { migrates = false }: { readonly migrates?: boolean } = {},
): Promise<T> {
  const config = presentConfig()
  if (!opened.getStore() && !migrates) refuseOlder(config)
  return onOpened(config, state => work(state, config), { migrates })
}

/**
 * Runs a command with a way to copy the database of this installation to a file. Data of an older version is copied as
 * it is: a backup is the way back from its migration.
 */
export async function withCopy(
  work: (copyTo: (file: string) => Promise<void>, config: Config) => Promise<void>,
): Promise<void> {
  const config = presentConfig()
  const { data_dir, database_url } = config
  if (!opened.getStore() && database_url === null && missingMigration(data_dir) !== null)
    return work(async file => keepDatabase(data_dir, file), config)
  return onOpened(config, state => work(file => state.maintenance.copyTo(file), config))
}

async function onOpened<T>(
  config: Config,
  work: (state: State) => Promise<T>,
  { migrates = false }: { readonly migrates?: boolean } = {},
): Promise<T> {
  const given = opened.getStore()
  if (given) return work(given)
  const state = await openState({ ...config, here: true, migrates: migrates ? 'expand' : 'nobody' })
  try {
    await refuseForeignKey(state, config.master_key, iso(state.clock.now()))
    return await work(state)
  } finally {
    await state.close()
  }
}

/** Wakes the listeners of the running platform, if any, because rows changed. */
export async function ring(config: Config, topic: Topic): Promise<void> {
  const bus = connectBus(config.run_dir)
  bus.ring(topic)
  await bus.close()
}

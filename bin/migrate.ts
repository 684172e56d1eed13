import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Command } from 'commander'
import { readSettings, VARIABLES } from '../core/runtime/config.ts'
import { databaseName } from '../core/runtime/database-url.ts'
import { machineOf } from '../core/runtime/machine.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { countRunningCalls } from '../core/state/calls/running-calls.ts'
import { copyToPostgres, DATABASE_FILE, openState, type State } from '../core/state/index.ts'
import { brokenInvariants } from '../core/state/maintenance/invariants.ts'
import { executedMigrations } from '../core/state/maintenance/migrate.ts'
import { CONTRACTS } from '../core/state/migrations/index.ts'
import { ownFiles } from '../core/state/nodes/machines.ts'
import { auditTrails, verifyChain } from '../core/state/people/audit.ts'
import { databaseGiven } from './given-database.ts'
import { requirePresent, thisInstallation } from './installation.ts'
import { platformProcess } from './pid-file.ts'
import { orSayWhy } from './say.ts'
import { give, progress, tell } from './terminal.ts'
import { markPlace, refuseOtherPlace } from './where-state-is.ts'

interface Json {
  readonly json?: true
}

interface Phases extends Json {
  readonly expand?: true
  readonly contract?: true
}

export function migrateCommand(): Command {
  const command = new Command('migrate')
    .option('--expand', 'only what adds, while machines of the version before run')
    .option('--contract', 'only what takes away, when no machine of an older version runs')
    .option('--json', 'as JSON')
    .action((options: Phases) => orSayWhy(() => migrate(options)))
  command
    .command('to-postgres')
    .description('copy the state of a drained installation from SQLite to an empty database, and compare all rows')
    .argument('[url]', `the database, or @FILE with its URL; by default ${VARIABLES.database_url.name}`)
    .option('--json', 'as JSON')
    .action((url: string | undefined, _options: Json, own: Command) =>
      orSayWhy(() => move(url, own.optsWithGlobals<Json>().json === true)),
    )
  return command
}

/**
 * Brings the schema of the state to this version. Machines that share a database are upgraded one by one between its
 * two phases (decision 1086).
 */
async function migrate({ expand, contract, json }: Phases): Promise<void> {
  const found = thisInstallation()
  const config = readSettings(found.env)
  const { database_url, data_dir } = config
  if (expand && contract) throw new StartRefused('--expand and --contract are two steps: without both, all is migrated')
  if (database_url === null) requirePresent(found)
  else refuseOtherPlace(config)
  const migrates = expand ? 'expand' : contract ? 'contract' : 'both'
  const state = await openState({ data_dir, database_url, here: true, migrates })
  try {
    const migrations = await executedMigrations(state.db)
    const left = CONTRACTS.filter(name => !migrations.includes(name))
    const database = database_url === null ? data_dir : databaseName(database_url)
    if (json) give(`${JSON.stringify({ database, migrations, left })}\n`)
    else if (left.length > 0)
      tell(`${database} has what this version needs; when all machines run it: strowger migrate --contract\n`)
    else tell(`${database} has the schema of this version\n`)
  } finally {
    await state.close()
  }
}

/** Moves the state from SQLite to PostgreSQL. Until the end nothing counts but SQLite, whose file is not changed. */
async function move(given: string | undefined, json: boolean): Promise<void> {
  const { data_dir, run_dir, database_url: named } = readSettings(thisInstallation().env)
  const database_url = given === undefined ? named : databaseGiven(given)
  if (database_url === null) throw new StartRefused(`name the database, or set ${VARIABLES.database_url.name}`)
  refuseOtherPlace({ data_dir, database_url: null })
  if (!existsSync(join(data_dir, DATABASE_FILE))) throw new StartRefused(`${data_dir} has no ${DATABASE_FILE}`)
  const running = await platformProcess(run_dir)
  if (running !== null) throw new StartRefused(`the platform runs (${running}): strowger drain --wait`)
  const before = await factsOf(await openState({ data_dir, here: true }))
  if (before.running_calls > 0)
    throw new StartRefused(
      `calls are in progress (${before.running_calls}): start the platform, and run strowger drain --wait`,
    )
  const tables = await copyToPostgres({
    data_dir,
    database_url,
    onTable: ({ name, rows }) => progress(`${name}: ${rows} rows are the same`),
  })
  const after = await factsOf(await openState({ data_dir, database_url }))
  if (JSON.stringify(before) !== JSON.stringify(after))
    throw new StartRefused(
      `${databaseName(database_url)} does not agree with itself as SQLite does; nothing was moved: ` +
        `${JSON.stringify(before)} before, ${JSON.stringify(after)} after`,
    )
  await nameMachineOfFiles(data_dir, database_url)
  markPlace({ data_dir, database_url })
  const rows = tables.reduce((sum, table) => sum + table.rows, 0)
  if (json) give(`${JSON.stringify({ database: databaseName(database_url), tables })}\n`)
  else
    tell(
      `${rows} rows of ${tables.length} tables are in ${databaseName(database_url)}. Set ` +
        `${VARIABLES.database_url.name} and start the platform; ${join(data_dir, DATABASE_FILE)} stays as it is\n`,
    )
}

/** Rows of before machines had ids name none: the machines that come later would take their files for their own. */
async function nameMachineOfFiles(data_dir: string, database_url: string): Promise<void> {
  const state = await openState({ data_dir, database_url })
  try {
    await ownFiles(state, machineOf(data_dir).machine_id)
  } finally {
    await state.close()
  }
}

/** What a state says of itself: its running calls, what does not agree, and the heads of its audit trails. */
async function factsOf(state: State) {
  try {
    const { db } = state
    const trails = (await auditTrails(db)).map(async ({ id }) => ({ id, ...(await verifyChain(db, id)) }))
    return {
      running_calls: await countRunningCalls(db),
      broken: await brokenInvariants(db),
      trails: await Promise.all(trails),
    }
  } finally {
    await state.close()
  }
}

import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runBare } from '../../core/runtime/bare-child.ts'
import { iso } from '../../core/runtime/clock.ts'
import { type Config, VARIABLES } from '../../core/runtime/config.ts'
import { databaseName } from '../../core/runtime/database-url.ts'
import { StartRefused } from '../../core/runtime/start-refused.ts'
import { DATABASE_FILE, isEmptyDatabase, openState, type State } from '../../core/state/index.ts'
import { type DecidedAgain, decisionsAgain } from '../../core/state/maintenance/decisions-again.ts'
import { brokenInvariants } from '../../core/state/maintenance/invariants.ts'
import { executedMigrations } from '../../core/state/maintenance/migrate.ts'
import { printTable } from '../operator-print.ts'
import { dump, fill, removeDump } from '../postgres-dump.ts'
import { inStaging } from '../staging.ts'
import { type Column, shortId } from '../table.ts'
import { progress, tell } from '../terminal.ts'
import { markPlace } from '../where-state-is.ts'
import { runVersion } from './program.ts'

/** What a release says of a data folder after it has migrated it. */
interface Rehearsal {
  readonly migrations: readonly string[]
  /** Sentences: what is damaged, or does not agree. */
  readonly broken: readonly string[]
  readonly decisions: readonly DecidedAgain[]
}

interface Difference {
  readonly before: DecidedAgain | null
  readonly after: DecidedAgain | null
}

const DAY_MS = 86_400_000
const MOST_BYTES = 64 * 1024 * 1024
/** Long enough for migrations of a large database. */
const LIMIT_MS = 3_600_000

/** Examines a data folder, which the open state has migrated. */
export async function rehearse(state: State): Promise<Rehearsal> {
  return {
    migrations: await executedMigrations(state.db),
    broken: [...(await state.maintenance.faults()), ...(await brokenInvariants(state.db))],
    decisions: await decisionsAgain(state.db, iso(state.clock.now() - DAY_MS)),
  }
}

/** What the check of a release found. */
interface Findings {
  readonly migrations: readonly string[]
  /** What the new version finds broken, and this one does not. */
  readonly broken: readonly string[]
  readonly decisions: number
  readonly differences: readonly Difference[]
}

/**
 * Has the release's program migrate a copy of the data, and compares what both versions say of it. The copy of a
 * database of PostgreSQL fills the empty one of `copy_url`, which stays.
 * @throws StartRefused
 */
export const check = (state: State, config: Config, program: string, copy_url: string | null): Promise<Findings> =>
  inStaging(config.run_dir, async data_dir => {
    progress('copying the data')
    const copy = { data_dir, database_url: copy_url }
    if (config.database_url === null) await state.maintenance.copyTo(join(data_dir, DATABASE_FILE))
    else await copyDatabase(config.database_url, copy)
    progress('asking this version about the calls of the last day')
    const before = await onCopy(copy, rehearse)
    progress('asking the new version')
    writeFileSync(join(data_dir, 'master.key'), `${config.master_key.toString('hex')}\n`, { mode: 0o600 })
    const after = await rehearsedBy(program, copy)
    return {
      migrations: after.migrations.filter(name => !before.migrations.includes(name)),
      broken: after.broken.filter(sentence => !before.broken.includes(sentence)),
      decisions: after.decisions.length,
      differences: differencesOf(before.decisions, after.decisions),
    }
  })

/** Where a copy of the data is. */
interface Copy {
  readonly data_dir: string
  readonly database_url: string | null
}

/** @throws StartRefused */
async function copyDatabase(from: string, { data_dir, database_url }: Copy): Promise<void> {
  if (database_url === null)
    throw new StartRefused(
      'name an empty database for the rehearsal: --copy postgres://…, or --copy @FILE with its URL (createdb)',
    )
  if (!(await isEmptyDatabase(database_url)))
    throw new StartRefused(`the database ${databaseName(database_url)} is not empty: make a new one (createdb)`)
  await dump(from, data_dir)
  await fill(database_url, data_dir)
  removeDump(data_dir)
  markPlace({ data_dir, database_url })
}

export const isGood = ({ broken, differences }: Findings): boolean => broken.length === 0 && differences.length === 0

/** Runs work with a release's program; one that had to be unpacked is removed afterwards. @throws StartRefused */
export const withProgram = <T>(release: string, run_dir: string, work: (program: string) => Promise<T>): Promise<T> =>
  inStaging(run_dir, async staging => work(await unpacked(release, join(staging, 'release'))))

async function onCopy<T>(copy: Copy, work: (state: State) => Promise<T>): Promise<T> {
  const state = await openState({ ...copy, here: true })
  try {
    return await work(state)
  } finally {
    await state.close()
  }
}

/** Makes the release's files present in `folder`. Returns its command. @throws StartRefused */
export async function unpacked(release: string, folder: string): Promise<string> {
  if (!existsSync(release)) throw new StartRefused(`there is no file ${release}`)
  mkdirSync(folder)
  progress('unpacking the release')
  if (statSync(release).isDirectory()) return commandIn([release])
  const words = release.endsWith('.deb') ? ['dpkg-deb', '-x', release, folder] : ['tar', '-xzf', release, '-C', folder]
  const [command = '', ...rest] = words
  const end = await runBare(command, rest, { max_bytes: MOST_BYTES, limit_ms: LIMIT_MS })
  if (!end.ok) throw new StartRefused(`${release} cannot be unpacked: ${end.detail}`)
  return commandIn([folder, join(folder, 'usr/lib/strowger'), ...readdirSync(folder).map(name => join(folder, name))])
}

function commandIn(folders: readonly string[]): string {
  const found = folders.map(folder => join(folder, 'bin/strowger')).find(existsSync)
  if (found === undefined) throw new StartRefused(`${folders[0]} is no release: it has no bin/strowger`)
  return found
}

/** Lets a release migrate and examine a data folder. @throws StartRefused with what it says when it cannot */
export async function rehearsedBy(program: string, { data_dir, database_url }: Copy): Promise<Rehearsal> {
  const of_copy = database_url === null ? {} : { [VARIABLES.database_url.name]: database_url }
  try {
    return reportIn(await runVersion(program, ['--data', data_dir, 'upgrade', '--rehearse'], of_copy))
  } catch (error) {
    if (!(error instanceof StartRefused)) throw error
    throw new StartRefused(`the release cannot take over this data: ${error.message}`)
  }
}

/** Reads what `upgrade --rehearse` prints. @throws StartRefused */
function reportIn(printed: string): Rehearsal {
  try {
    return JSON.parse(printed) as Rehearsal
  } catch {
    throw new StartRefused(`its rehearsal printed no report, but: ${printed.trim().slice(0, 200) || 'nothing'}`)
  }
}

function differencesOf(before: readonly DecidedAgain[], after: readonly DecidedAgain[]): Difference[] {
  const then = new Map(after.map(one => [one.sid, one]))
  const known = new Set(before.map(({ sid }) => sid))
  return [
    ...before.map(one => ({ before: one, after: then.get(one.sid) ?? null })),
    ...after.filter(({ sid }) => !known.has(sid)).map(one => ({ before: null, after: one })),
  ].filter(one => decisionText(one.before) !== decisionText(one.after))
}

const decisionText = (one: DecidedAgain | null): string => {
  if (one === null) return 'unknown'
  if (!one.admitted) return `refused: ${one.reason}`
  const { max_duration_seconds: most, rate_minor: rate } = one
  return ['admitted', ...(most === null ? [] : [`≤ ${most} s`]), ...(rate === null ? [] : [`rate ${rate}`])].join(', ')
}

export function tellFindings({ migrations, broken, differences, decisions }: Findings): void {
  tell(`migrations: ${migrations.join(', ') || 'none'}\n`)
  if (broken.length === 0) tell('checks: as before, nothing new is broken\n')
  else tell(`broken:\n${broken.map(one => `  ${one}\n`).join('')}`)
  tell(`decisions of the last day: ${decisions} asked again, ${differences.length} differ\n`)
  if (differences.length > 0) printTable(differences, COLUMNS)
}

const of = (one: Difference): DecidedAgain | null => one.before ?? one.after
const COLUMNS: readonly Column<Difference>[] = [
  { title: 'CALL', text: one => shortId(of(one)?.sid ?? '') },
  { title: 'BEFORE', text: ({ before }) => decisionText(before), least: 12 },
  { title: 'AFTER', text: ({ after }) => decisionText(after), least: 12 },
  { title: 'FROM', text: one => of(one)?.from ?? '', rank: 1 },
  { title: 'TO', text: one => of(one)?.to ?? '', rank: 1 },
]
